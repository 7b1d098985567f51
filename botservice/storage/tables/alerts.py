"""The table of what an operator was told."""

from sqlalchemy import Boolean, Column, Table, Text

from botservice.storage.tables.columns import Timestamp
from botservice.storage.tables.metadata import metadata

# One row for each kind of alert. is_on: it was told, and not yet that it is over. since: from when on what it is about
# went wrong; told_at: when it was told last, for all processes together.
alerts = Table(
    "alerts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("is_on", Boolean, nullable=False),
    Column("since", Timestamp),
    Column("told_at", Timestamp),
)
