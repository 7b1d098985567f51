"""Converting a database of 0.17.0, once, to the tables of 1.0; the processes of 0.17.0 have to be stopped.

It is done in small transactions, and each keeps how far it is: a process that is killed in between leaves a database
that `botservice migrate` goes on with, and on which no release starts until it is whole.
"""

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    Row,
    Table,
    bindparam,
    case,
    column,
    func,
    or_,
    select,
    table,
    text,
)

from botservice.core.message_references import Reference, ReferenceKind
from botservice.core.messages import Author, Role
from botservice.core.progress import Progress
from botservice.storage.conversion_records import convert_log, convert_prompt, convert_step
from botservice.storage.message_references import keep_references
from botservice.storage.tables.columns import Compressed, Places
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON, is_one_of
from botservice.storage.tables.conversations import messages

# Messages that stood in one text with what they quote or forward, as they are kept since 1.0

_FORWARD: Final = "[forwarded from "
_QUOTES: Final = {"[in reply to ": ReferenceKind.REPLY, "[about a message of ": ReferenceKind.ABOUT}
_SAID, _SAID_END = ': "', '"]'
_SHARE: Final = re.compile(r"^\[shared(?: from |: )", re.MULTILINE)
_SHARE_END: Final = "]\n["
_YOU: Final = "you"
_CUT: Final = "…"
_NEAR: Final = 1_000  # positions before a message in which the one is looked for that it quotes
_TELLING: Final = 12  # characters that hardly two people say alike
# What releases before references were kept have written of a person.
OLDER: Final = (
    select(*messages.c["id", "context_id", "position", "text", "own_text", "attachments", "author_platform"])
    .where(
        MESSAGE_IS_OF_A_PERSON,
        messages.c.said_by_others.is_(None),
        or_(messages.c.text.startswith("[", autoescape=True), messages.c.text.contains("\n[shared", autoescape=True)),
    )
    .order_by(messages.c.id)
)


@dataclass(frozen=True, slots=True)
class Taken:
    """A text, split into the author's words and others'.

    Attributes:
        text: What its author wrote and sent.
        own_text: What of that are their own words, or None if that is all of it.
    """

    text: str
    references: tuple[Reference, ...] = ()
    own_text: str | None = None


def take_apart(text: str, *, has_files: bool) -> Taken:
    """Split a stored text into its author's words and others', as far as that can be told.

    What was read in files stood behind it in brackets as well, and nothing says of whom it is.
    """
    if text.startswith(_FORWARD):
        return Taken("", (_forward(text),))
    rest, references = _quote(text)
    rest, shares = _shares(rest)
    own = rest.partition("\n[")[0] if has_files else rest
    return Taken(rest, (*references, *shares), None if own == rest else own)


def _forward(text: str) -> Reference:
    heading, _, said = text.partition("\n")
    name = heading.removeprefix(_FORWARD).removesuffix("]")
    return Reference(ReferenceKind.FORWARD, Author(name=name), said)


def _quote(text: str) -> tuple[str, tuple[Reference, ...]]:
    """Return a text without the message that it begins with, which it replies to or asks about, and that message."""
    begin = next((each for each in _QUOTES if text.startswith(each)), None)
    if begin is None:
        return text, ()
    heading = text.partition("\n")[0]
    name, is_quoted, _ = heading.removeprefix(begin).partition(_SAID)
    if not is_quoted:
        name, said, end = name.removesuffix("]"), "", len(heading)
        if not heading.endswith("]"):
            return text, ()
    else:
        end = text.rfind(_SAID_END + "\n")
        end = len(text) - len(_SAID_END) if text.endswith(_SAID_END) else end
        if end < 0:
            return text, ()
        said = text[len(begin) + len(name) + len(_SAID) : end]
        end += len(_SAID_END)
    return text[end:].removeprefix("\n"), (_made(_QUOTES[begin], name, said),)


def _shares(text: str) -> tuple[str, tuple[Reference, ...]]:
    """Return a text without the messages that it shares, which stood behind it, and these."""
    begins = [found.start() for found in _SHARE.finditer(text)]
    if not begins:
        return text, ()
    kept, shares = [text[: begins[0]].rstrip("\n")], []
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        share, found, files = text[begin:end].rstrip("\n").partition(_SHARE_END)
        heading, _, said = share.removesuffix("]").partition(": ")
        shares.append(_made(ReferenceKind.SHARE, heading.partition(" from ")[2], said.replace("\n  ", "\n")))
        kept.append(f"[{files}" if found else "")
    return "\n".join(part for part in kept if part), tuple(shares)


def _made(kind: ReferenceKind, name: str, said: str) -> Reference:
    said = said.replace('" ]', _SAID_END)
    if name == _YOU:
        return Reference(kind, None, said, is_of_assistant=True)
    return Reference(kind, Author(name=name) if name else None, said)


def convert_messages(connection: Connection, rows: Sequence[Row[*tuple[Any, ...]]]) -> None:
    """Turn the quotes and forwards in rows of `OLDER` into references."""
    for row in rows:
        taken = take_apart(row.text, has_files=bool(row.attachments))
        if not taken.references:
            continue
        found = [_identified(connection, row, _with_files(row, each)) for each in taken.references]
        own = _own(row, taken)
        keep_references(connection, row.context_id, row.id, found, text=taken.text, own_text=own)


def _with_files(row: Row[*tuple[Any, ...]], reference: Reference) -> Reference:
    """Return a reference with the files that are surely its: all of a forwarded message."""
    is_whole = reference.kind is ReferenceKind.FORWARD
    return replace(reference, file_count=len(row.attachments or ())) if is_whole else reference


def _own(row: Row[*tuple[Any, ...]], taken: Taken) -> str | None:
    own: str | None = taken.own_text if row.own_text is None else row.own_text
    return None if own == taken.text else own


def _identified(connection: Connection, row: Row[*tuple[Any, ...]], reference: Reference) -> Reference:
    """Return a reference with who said it, where the message is found that it repeats; their name alone otherwise."""
    said = reference.text.removesuffix(_CUT).strip()
    name = None if reference.author is None else reference.author.name
    role = Role.ASSISTANT if reference.is_of_assistant else Role.USER
    find = func.instr if connection.dialect.name == "sqlite" else func.strpos
    query = (
        select(messages.c.author_platform, messages.c.author_id, messages.c.author_name, messages.c.external_id)
        .where(
            messages.c.context_id == row.context_id,
            messages.c.position < row.position,
            messages.c.position >= row.position - _NEAR,
            is_one_of("messages.role", role),
            find(messages.c.text, said) > 0,
        )
        .order_by(case((messages.c.author_name == name, 0), else_=1), messages.c.position.desc())
        .limit(1)
    )
    found = connection.execute(query).one_or_none() if said else None
    if found is None or (found.author_name != name and len(said) < _TELLING):
        author = reference.author and Author(row.author_platform, None, name)
        return replace(reference, author=author)
    author = Author(found.author_platform, found.author_id, name or found.author_name)
    return replace(reference, author=None if reference.is_of_assistant else author, external_id=found.external_id)


# The conversion, step by step

OLD_VERSION: Final = "0028"
"""The version of 0.17.0's tables."""
OLD_VERSION_TABLE: Final = "alembic_version"
CONVERSION_TABLE: Final = "botservice_conversion"
"""How far a conversion is. It is there until the database is whole."""
TURNS_AT_ONCE: Final = 50
_MESSAGES_AT_ONCE: Final = 200
# A process of 0.17.0 that connects again in between does not find its columns any more, and can write no step.
# SQLite adds no column without a default to a table that has rows.
_BEGUN: Final = (
    "ALTER TABLE steps RENAME COLUMN data TO old_data",
    "ALTER TABLE steps ADD COLUMN data {bytes} DEFAULT '' NOT NULL",
    "ALTER TABLE steps ADD COLUMN prompt TEXT",
    "ALTER TABLE prompt_log RENAME COLUMN content TO old_content",
    "ALTER TABLE prompt_log ADD COLUMN content {bytes} DEFAULT '' NOT NULL",
)
_FINISHED: Final = (
    "ALTER TABLE steps DROP COLUMN old_data",
    "ALTER TABLE steps DROP COLUMN prompt_ranges",
    "ALTER TABLE prompt_log DROP COLUMN old_content",
)
_BYTES: Final = {"sqlite": "BLOB", "postgresql": "BYTEA"}
_PROGRESS: Final = Table(
    CONVERSION_TABLE,
    MetaData(),
    Column("turn_id", BigInteger, nullable=False),
    Column("message_id", BigInteger, nullable=False),
)
"""Up to which turn and which message everything is converted."""
_steps: Final = table(
    "steps",
    *map(column, ("id", "turn_id", "old_data", "prompt_ranges")),
    column("prompt", Places),
    column("data", Compressed),
)
_logs: Final = table(
    "prompt_log", *map(column, ("turn_id", "seq", "context_id", "old_content")), column("content", Compressed)
)
_turns: Final = table("turns", column("id"))
_NEXT_TURNS: Final = (
    select(_turns.c.id).where(_turns.c.id > bindparam("after")).order_by(_turns.c.id).limit(bindparam("most"))
)
_NEXT_MESSAGES: Final = OLDER.where(messages.c.id > bindparam("after")).limit(_MESSAGES_AT_ONCE)
_PAUSE_SECONDS: Final = 0.001  # or SQLite's readers would find no moment between two transactions


def convert(
    connection: Connection,
    version: str,
    progress: Progress,
    *,
    check_alone: Callable[[], None],
    stamp: Callable[[], None],
) -> None:
    """Convert a database of 0.17.0, or go on where an earlier process was killed.

    Args:
        version: That of the converted tables.
        check_alone: Raises where a process works on the database.
        stamp: Writes, in the open transaction, which version the tables have.
    """
    check_alone()
    with connection.begin():
        if not _has_begun(connection):
            _begin(connection, version)
    check_alone()  # from here on, none of 0.17.0 starts
    last_turn = _last_id(connection, "turns")
    while _convert_next_turns(connection, last_turn, progress) or _convert_next_messages(connection, progress):
        time.sleep(_PAUSE_SECONDS)
    check_alone()
    with connection.begin():
        for statement in _FINISHED:
            connection.exec_driver_sql(statement)
        _PROGRESS.drop(connection)
        stamp()


def _has_begun(connection: Connection) -> bool:
    version: str = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    return version != OLD_VERSION


def _begin(connection: Connection, version: str) -> None:
    """Add the columns, and have 0.17.0 say that the database is too new for it."""
    for statement in _BEGUN:
        connection.exec_driver_sql(statement.format(bytes=_BYTES[connection.dialect.name]))
    _PROGRESS.create(connection)
    connection.execute(_PROGRESS.insert(), {"turn_id": 0, "message_id": 0})
    connection.execute(text("DELETE FROM schema_compatibility"))
    connection.execute(
        text("INSERT INTO schema_compatibility (oldest_version) VALUES (:version)"), {"version": version}
    )
    connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def _last_id(connection: Connection, name: str) -> int:
    with connection.begin():
        return int(connection.execute(text(f"SELECT coalesce(max(id), 0) FROM {name}")).scalar_one())  # noqa: S608 - ours


def _convert_next_turns(connection: Connection, last_id: int, progress: Progress) -> bool:
    """Convert the records of the next few turns, and return whether there were any."""
    with connection.begin():
        after = connection.execute(select(_PROGRESS.c.turn_id)).scalar_one()
        ids = list(connection.execute(_NEXT_TURNS, {"after": after, "most": TURNS_AT_ONCE}).scalars())
        if ids:
            _convert_turns(connection, ids)
            connection.execute(_PROGRESS.update().values(turn_id=ids[-1]))
            progress(ids[-1], last_id, "turns")
    return bool(ids)


def _convert_turns(connection: Connection, ids: list[int]) -> None:
    places: dict[int, Any] = {}
    logged: dict[int, list[Any]] = {}
    of_turns = (
        select(*_logs.c["turn_id", "seq", "context_id", "old_content"])
        .where(_logs.c.turn_id.in_(ids))
        .order_by(_logs.c.turn_id, _logs.c.seq)
    )
    for row in connection.execute(of_turns):
        logged.setdefault(row.turn_id, []).append(row)
    new_logs = []
    for turn_id, rows in logged.items():
        content, places[turn_id] = convert_log((row.seq, row.old_content) for row in rows)
        here = {"turn_id": turn_id, "seq": 0, "context_id": rows[0].context_id}
        new_logs.append({**here, "old_content": "", "content": content})
    if new_logs:
        connection.execute(_logs.delete().where(_logs.c.turn_id.in_(list(logged))))
        connection.execute(_logs.insert(), new_logs)
    old = select(*_steps.c["id", "turn_id", "old_data", "prompt_ranges"]).where(_steps.c.turn_id.in_(ids))
    new_steps = []
    for row in connection.execute(old).all():
        prompt = None
        if row.prompt_ranges is not None:
            prompt = convert_prompt(json.loads(row.prompt_ranges), places.get(row.turn_id, {}))
        data = convert_step(row.old_data)
        new_steps.append({"row": row.id, "old_data": "", "prompt_ranges": None, "prompt": prompt, "data": data})
    if new_steps:
        connection.execute(_steps.update().where(_steps.c.id == bindparam("row")), new_steps)


def _convert_next_messages(connection: Connection, progress: Progress) -> bool:
    """Convert the next few messages of releases before references were kept, and return whether there were any."""
    with connection.begin():
        after = connection.execute(select(_PROGRESS.c.message_id)).scalar_one()
        rows = connection.execute(_NEXT_MESSAGES, {"after": after}).all()
        if rows:
            convert_messages(connection, rows)
            connection.execute(_PROGRESS.update().values(message_id=rows[-1].id))
            progress(rows[-1].id, rows[-1].id, "messages of earlier releases")
    return bool(rows)
