"""What is done with SQLite files alone."""
