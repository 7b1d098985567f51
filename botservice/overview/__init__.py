"""Read what is stored, for the command line and the inspector."""
