"""Messages that stood in one text with what they quote or forward, as they are kept since 1.0. See `conversion`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, Row, case, func, or_, select

from botservice.core.message_references import Reference, ReferenceKind
from botservice.core.messages import Author, Role
from botservice.storage.message_references import keep_references
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import messages

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
            messages.c.role == role.value,
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
