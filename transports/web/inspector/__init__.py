"""The inspector: what is kept of every conversation, as pages for the owner."""
