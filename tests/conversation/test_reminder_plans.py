"""What is asked of reminders, and what compaction walks along, goes by indexes, however much there is."""

import re

import pytest

from botservice.background import queries
from botservice.conversation import reminder_queries as reminding

OF_CONTEXT = "USING INDEX ix_reminders_context_id_id (context_id=?)"


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (reminding._NEXT_DUE, OF_CONTEXT),
        (reminding._WAITING, OF_CONTEXT),
        (queries._WHOLE_TURNS, "USING INDEX ix_turns_uncompacted (id>?)"),
        (queries._OLDEST_EVENTS, "USING INTEGER PRIMARY KEY (rowid>?)"),
    ],
)
async def test_nothing_is_looked_through_row_by_row(sqlite_storage, statement, index):
    def explain(connection):
        query = re.sub(r"\(__\[POSTCOMPILE_\w+\]\)", "('web', 'telegram')", str(statement.compile(connection)))
        values = (1,) * query.count("?")
        return [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values)]

    plan = await sqlite_storage.read(explain)
    assert any(index in line for line in plan), plan
    assert not any(line.startswith("SCAN") for line in plan), plan
