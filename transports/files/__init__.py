"""What every platform's files have in common: how they are read, and where they lie once they are stored."""
