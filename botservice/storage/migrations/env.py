"""Runs the migrations on the connection, and in the transaction, that the caller opened."""

from alembic import context

from botservice.storage.tables.conversations import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
