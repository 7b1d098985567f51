"""What is done on Postgres alone."""
