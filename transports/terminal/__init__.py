"""The terminal: one person in front of it, in this process or in another one on the same machine."""
