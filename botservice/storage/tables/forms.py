"""The table of the forms of messages that a conversation does not take."""

from sqlalchemy import Column, ForeignKey, Table, Text

from botservice.storage.tables.columns import Id, Timestamp
from botservice.storage.tables.metadata import metadata

# A form that a platform refused in a conversation, such as "rich": it is not tried there again.
refused_forms = Table(
    "refused_forms",
    metadata,
    Column("context_id", Id, ForeignKey("contexts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("form", Text, primary_key=True),
    Column("refused_at", Timestamp, nullable=False),
)
