"""The table of what Telegram was told of a bot."""

from sqlalchemy import Column, Table, Text

from botservice.storage.tables.columns import Id, Timestamp
from botservice.storage.tables.metadata import metadata

# The menus of commands that a bot has at Telegram, as the digest of all of them.
telegram_menus = Table(
    "telegram_menus",
    metadata,
    Column("bot_id", Id, primary_key=True, autoincrement=False),
    Column("digest", Text, nullable=False),
    Column("set_at", Timestamp, nullable=False),
)
