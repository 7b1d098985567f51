"""The conversation: what was said, what of it stands in a prompt, and how it is found again."""
