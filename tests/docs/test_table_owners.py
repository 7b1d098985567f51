"""Each table is written by its owner, as docs/architecture.md names it, and by no other person without a reason."""

import ast
import functools
import re
from pathlib import Path

import pytest
from docs.table_writers import ANY, ROOT, TABLES, Module, find_writers
from sqlalchemy import TextClause

from botservice.core.states import DeliveryStatus, Outcome, PendingStatus, ReminderStatus, TurnStatus
from botservice.storage.tables import conditions

PAGE = (ROOT / "docs" / "architecture.md").read_text()
OWNERS = PAGE.partition("## Table owners")[2].partition("\n## ")[0]
ALL = set(TABLES.values()) | {ANY}

# Who writes to tables of others, and why. A room with its slash is all of its modules.
OTHERS = {
    "botservice/privacy/": (ALL, "forgets, whatever table it stands in"),
    "botservice/background/queries.py": (
        {"approvals", "deliveries", "events", "pending_calls", "prompt_log", "reminders", "steps", "turns"},
        "empties and deletes what is old enough",
    ),
    "botservice/storage/copying.py": (ALL, "copies a whole database into another one"),
    "botservice/turns/merge_queries.py": (ALL, "moves all that one conversation has to another"),
    "botservice/storage/tables/triggers_sql/": (ALL, "what the database does itself, so that nobody can forget to"),
    "botservice/storage/postgres_building.py": ({"contexts"}, "counts messages that came before their counter"),
    "botservice/storage/statements.py": (
        {ANY},
        "makes the statement that replaces a row, of the table that it is given",
    ),
    "botservice/storage/conversion.py": ({"schema_compatibility"}, "converts the tables of 0.17.0"),
    "botservice/storage/message_references.py": ({"messages"}, "says who is quoted in the row of the message"),
    "botservice/history/queries.py": ({"contexts"}, "numbers messages under the lock of their context"),
    "botservice/history/edit_queries.py": ({"contexts", "vectors"}, "an edit makes caches and meanings out of date"),
    "botservice/history/note_queries.py": (
        {"observed"},
        "numbers notes, and has a stretch read again where one is deleted",
    ),
    "botservice/people/queries.py": ({"contexts"}, "keeps who was seen in a context"),
    "botservice/turns/backlog_queries.py": (
        {"deliveries", "pending_calls", "turns"},
        "puts off what is due in a context",
    ),
}


def named_owners():
    """Return for each table the modules that its row of the page names."""
    found = {}
    for row in OWNERS.splitlines():
        for name in re.findall(r"`(\w+\*?)`", row):
            tables = [each for each in ALL if each == name or (name.endswith("*") and each.startswith(name[:-1]))]
            found |= {each: set(re.findall(r"`([\w/.]+\.(?:py|sql))`", row)) for each in tables}
    return found


@functools.cache  # not where the module is imported: every worker would read all sources then
def writers():
    return find_writers()


def other_writers():
    owners = named_owners()
    return {(module, table) for table, modules in writers().items() for module in modules - owners.get(table, set())}


def is_allowed(module, table):
    return any(module.startswith(room) and table in tables for room, (tables, _) in OTHERS.items())


def test_a_table_is_written_by_its_owner_alone():
    strange = sorted((module, table) for module, table in other_writers() if not is_allowed(module, table))
    assert strange == [], "write it through its owner, or say in OTHERS why not"


def test_who_may_write_to_tables_of_others_still_does():
    written = {room: {table for module, table in other_writers() if module.startswith(room)} for room in OTHERS}
    idle = [room for room, (tables, _) in OTHERS.items() if not written[room] or tables not in (ALL, written[room])]
    assert idle == [], "take out of OTHERS what is not written any more"


def test_an_owner_that_is_named_writes_its_table():
    by_migrations = {"schema_compatibility"}
    owners = named_owners()
    assert [table for table in set(TABLES.values()) - by_migrations if not writers()[table] & owners[table]] == []


@pytest.mark.parametrize(
    "source",
    [
        "insert(turns).values(id=1)",
        "turns.update()",
        "sqlite.dialect.insert(turns)",
        "text('DELETE FROM turns WHERE id = 1')",
        "for table in (turns, steps):\n    delete(table)",
        "for column in (turns.c.id, steps.c.id):\n    update(column.table)",
        "BOTH = (turns, steps)\nchanges = [update(table) for table, value in zip(BOTH, 'ab')]",
        "def upsert(table):\n    insert(table)\nupsert(turns)",
    ],
)
def test_a_write_is_found_in_whatever_words(tmp_path: Path, source):
    path = tmp_path / "module.py"
    path.write_text(source)
    assert "turns" in {*Module(path).written()}
    assert ANY not in {*Module(path).written()}


def test_what_is_only_read_is_not_written(tmp_path: Path):
    path = tmp_path / "module.py"
    path.write_text("select(turns)\nfound.update(turns=1)\nconnection.execute(text('SELECT 1 FROM turns'))")
    assert [*Module(path).written()] == []


MAKES_STATEMENTS = re.compile(r"^\s*(?:from|import) (?:sqlalchemy|botservice\.storage\.tables)\b", re.MULTILINE)
IS_THE_DATABASE = "storage"  # the layer that executes statements, and that has the tables
WITH_QUERIES = (
    "transports",
    *(
        f"botservice/{each.name}"
        for each in sorted((ROOT / "botservice").iterdir())
        if (each / "__init__.py").is_file() and each.name != IS_THE_DATABASE
    ),
)


def statements_elsewhere(package: Path):
    """Return the modules of a package that make statements and are no queries."""
    paths = [path for path in package.rglob("*.py") if not path.name.endswith("queries.py")]
    return [str(path.relative_to(package)) for path in paths if MAKES_STATEMENTS.search(path.read_text())]


@pytest.mark.parametrize("package", WITH_QUERIES)
def test_the_statements_of_a_package_stand_in_its_queries(package):
    remedy = "make it a function of queries.py; storage/database.py has Connection and Row"
    assert statements_elsewhere(ROOT / package) == [], remedy


@pytest.mark.parametrize(
    "source",
    [
        "from sqlalchemy import select",
        "import sqlalchemy as sa",
        "def read():\n    from sqlalchemy.exc import SQLAlchemyError",
        "from botservice.storage.tables.conversations import turns",
    ],
)
def test_a_statement_outside_of_queries_is_found(tmp_path: Path, source):
    for name in ("queries.py", "turn_queries.py", "worker.py"):
        (tmp_path / name).write_text(source)
    assert statements_elsewhere(tmp_path) == ["worker.py"]


CONDITIONS = [each for each in vars(conditions).values() if isinstance(each, TextClause)]


OF_A_COLUMN = re.compile(r"(\w+)\.(\w+) IS (NOT )?NULL")


def ways_to_write(condition):
    """Return a condition as a text, and as it is made of a column."""
    found = OF_A_COLUMN.fullmatch(condition.text)
    made = [] if found is None else [f"{found[1]}.c.{found[2]}.{'is_not' if found[3] else 'is_'}(None)"]
    return [condition.text, *made]


def test_a_condition_is_written_once():
    home = Path(conditions.__file__)
    paths = [path for room in ("botservice", "transports") for path in (ROOT / room).rglob("*.py") if path != home]
    sources = {path: path.read_text() for path in paths if "migrations" not in path.parts}
    ways = [each for condition in CONDITIONS for each in ways_to_write(condition)]
    copies = [(path.name, each) for path, source in sources.items() for each in ways if each in source]
    assert copies == [], f"take it from {home.name}"


STATES = {each.value for kind in (TurnStatus, Outcome, DeliveryStatus, PendingStatus, ReminderStatus) for each in kind}
STATE_COLUMNS = {"status", "outcome"}
COLUMN_OF_A_STATE = re.compile(
    r"\b(?:(?:turns|deliveries|pending_calls|reminders)\.c\.(?:status|outcome)|messages\.c\.role)"
)
TESTS_A_COLUMN = {"in_", "not_in", "is_distinct_from", "is_not_distinct_from"}


def is_state(node):
    return isinstance(node, ast.Constant) and node.value in STATES


def named(node):
    """Return the last name of an attribute, of a key, or of a keyword."""
    return getattr(node, "attr", None) or getattr(node, "arg", None) or getattr(node, "value", None)


def states_written_again(source):
    """Yield what in a source says a state as a text, or compares the column of one, each as it is written there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_of_column = any(COLUMN_OF_A_STATE.fullmatch(ast.unparse(each)) for each in sides)
            is_of_text = any(map(is_state, sides)) and any(named(each) in STATE_COLUMNS for each in sides)
            if is_of_column or is_of_text:
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in TESTS_A_COLUMN:
            if COLUMN_OF_A_STATE.fullmatch(ast.unparse(node.func.value)):
                yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and named(node) in STATE_COLUMNS and is_state(node.value):
            yield ast.unparse(node)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (ast.unparse(node) for key, value in pairs if named(key) in STATE_COLUMNS and is_state(value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (node.value for each in STATES if re.search(rf"(?:=|<>|WHEN|IN \(|,) *'{each}'", node.value))


def test_a_state_is_said_by_its_enum_and_compared_by_its_condition():
    homes = {Path(conditions.__file__)}
    paths = [path for room in ("botservice", "transports") for path in (ROOT / room).rglob("*.py") if path not in homes]
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in paths if "migrations" not in path.parts}
    again = [(name, each) for name, source in sources.items() for each in states_written_again(source)]
    assert again == [], "use the enum of core/states.py, and in a statement the condition of conditions.py"


@pytest.mark.parametrize(
    "source",
    [
        "turns.c.status == TurnStatus.QUEUED.value",
        "select(turns).where(turns.c.outcome.in_(['failed']))",
        "row.status != 'running'",
        "update(deliveries).values(status='pending')",
        "{'status': 'waiting', 'attempts': 0}",
        "text(\"SELECT 1 FROM turns WHERE status = 'done'\")",
        "text(\"SELECT 1 FROM turns WHERE status IN ('queued', 'running')\")",
    ],
)
def test_a_state_that_is_written_again_is_found(source):
    assert [*states_written_again(source)]
