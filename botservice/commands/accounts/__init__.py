"""Commands about a person's accounts: other platforms, and browsers."""
