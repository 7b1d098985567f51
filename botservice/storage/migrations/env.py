"""Runs the migrations on the connection, and in the transaction, that the caller opened."""

from collections.abc import Collection, Mapping
from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo

from botservice.storage.tables.columns import metadata


def reach(ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]) -> None:  # noqa: ARG001 - as alembic calls it
    """Say which version is reached."""
    context.config.attributes["progress"](step.up_revision_id)


connection = context.config.attributes["connection"]
own_schema = (
    None if connection.dialect.name == "sqlite" else connection.exec_driver_sql("SELECT current_schema()").scalar()
)
context.configure(
    connection=connection,
    version_table=context.config.attributes["version_table"],
    version_table_schema=own_schema,  # not whichever the search path has first: another schema may have one as well
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
    on_version_apply=reach,
)
context.run_migrations()
