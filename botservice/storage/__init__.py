"""Where everything is kept: SQLite on one machine, Postgres for many."""
