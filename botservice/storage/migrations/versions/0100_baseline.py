"""All tables, as they are since 1.0."""

from pathlib import Path

from alembic import op

from botservice.storage.tables import make_observing_triggers, make_triggers

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and their triggers in an empty database."""
    connection = op.get_bind()
    statements = Path(__file__).with_name(f"baseline.{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in statements.split("\n\n"):
        connection.exec_driver_sql(statement)
    make_triggers(connection)
    make_observing_triggers(connection)
    # The oldest version whose program works on these tables. A migration that takes something away raises it.
    op.execute("INSERT INTO schema_compatibility (oldest_version) VALUES ('0100')")
