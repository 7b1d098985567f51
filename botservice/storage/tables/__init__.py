"""The tables. The migrations make them; a test holds both against each other."""
