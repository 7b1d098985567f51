"""Language models: what is asked of them, and the ones that are ready."""
