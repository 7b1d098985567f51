"""The beginning of a turn: who is let in, what is said, which command is obeyed, what enters the history."""
