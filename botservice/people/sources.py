"""What a fact rests on: the message in which its person said it, in their own words."""

from typing import Final

from sqlalchemy import Connection, bindparam, literal_column, select

from botservice.messages import Author, Role
from botservice.people.wording import is_said_in
from botservice.storage.statements import execute
from botservice.storage.tables import messages

_NEWEST = 30  # messages of people in a chat that are looked at
_OWN = 6  # of them, those of the person

# How messages that were stored by earlier versions repeat the words of others, or what stands in a file.
_FORWARDED: Final = "[forwarded from "
_REPLY, _REPLY_END = "[in reply to ", '"]'
_SAID = (
    select(
        messages.c.id,
        messages.c.text,
        messages.c.own_text,
        messages.c.attachments,
        messages.c.author_platform,
        messages.c.author_id,
    )
    .where(
        messages.c.context_id == bindparam("context"),
        # Literally, because that is what the partial index is chosen by.
        messages.c.role == literal_column(f"'{Role.USER.value}'"),
    )
    .order_by(messages.c.position.desc())
    .limit(_NEWEST)
)


def find_source(connection: Connection, context_id: int, author: Author, text: str) -> tuple[int, str] | None:
    """Return the newest message of an author in a context that says all of a fact, and the author's words in it.

    None where none does. What it quotes, forwards or shares of others does not count, nor what stands in files.
    """
    said = [
        row
        for row in execute(connection, _SAID, {"context": context_id}).all()
        if row.author_platform == author.platform and row.author_id == author.id
    ]
    for row in said[:_OWN]:
        own = _without_others(row.text, has_files=bool(row.attachments)) if row.own_text is None else row.own_text
        if is_said_in(text, own):
            return row.id, own
    return None


def _without_others(text: str, *, has_files: bool) -> str:
    """Return a message of which it is not stored what is its author's, without what may be somebody else's."""
    if text.startswith(_FORWARDED):
        return ""
    own = _without_reply(text)
    return own.partition("\n[")[0] if has_files else own


def _without_reply(text: str) -> str:
    begin, end = text.find(_REPLY), text.rfind(_REPLY_END)
    return text[:begin] + text[end + len(_REPLY_END) :] if 0 <= begin < end else text
