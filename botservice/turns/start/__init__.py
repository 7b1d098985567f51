"""Beginning a turn: reading its events, admission, commands, and storing the question."""
