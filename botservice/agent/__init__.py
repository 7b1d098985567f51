"""The agent: what to do next, as a function of what is stored, and the tools that a model may call."""
