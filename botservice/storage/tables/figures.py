"""The table of what turns took."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from botservice.storage.tables.columns import Id
from botservice.storage.tables.metadata import metadata

# Sums over the calls of models for a turn, those of other agents within it too; it outlives the turn's steps. cost is
# in billionths of the currency. lasted_ms: from when the turn came until its last
# call was over. model: the first that answered, or was asked in vain. tools: the names of those that were called, each
# between blanks.
turn_figures = Table(
    "turn_figures",
    metadata,
    Column("turn_id", Id, ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    *(
        Column(name, Id, nullable=False, server_default="0")
        for name in (
            *("calls", "failed_calls", "input_tokens", "output_tokens", "cached_tokens", "cost", "model_ms"),
            "lasted_ms",
        )
    ),
    Column("first_token_ms", Integer),
    Column("model", Text),
    Column("tools", Text, nullable=False),
    Index("ix_turn_figures_cost", "cost", "turn_id"),
    Index("ix_turn_figures_lasted_ms", "lasted_ms", "turn_id"),
)
