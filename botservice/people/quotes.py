"""Words that repeat what is to be forgotten, in places that stay."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, Text, delete, func, select, type_coerce, update

from botservice.history.word_blocks import forget_words
from botservice.messages import Author, Role
from botservice.quoting import quote_inside
from botservice.storage.blobs import read_blobs
from botservice.storage.chunks import chunks
from botservice.storage.tables import blobs, contexts, deliveries, messages, prompt_log, steps, tool_calls, vectors

_GONE: Final = "[deleted]"
# How transports repeat in a message what it replies to.
_REPLY, _REPLY_END = "[in reply to ", '"]'
_TEXT_BLOB = re.compile(r'"\$text": ?"([0-9a-f]{64})"')
_SEAL: Final = '"encrypted_content":'
_RECORDS: Final = (steps.c.data, prompt_log.c.content, tool_calls.c.result, deliveries.c.payload)


@dataclass(frozen=True, slots=True)
class Quotes:
    """Messages that repeat others.

    Attributes:
        answers: Of the assistant; they go with what they repeat.
        replies: Of people, with their texts without it.
    """

    answers: Collection[int] = ()
    replies: Mapping[int, str] = field(default_factory=dict)


def find_quotes(connection: Connection, context_id: int, message_ids: Collection[int], *, shortest: int) -> Quotes:
    """Return what repeats one of these messages of a context.

    Args:
        shortest: Answers that repeat fewer characters say too little to tell.
    """
    texts: list[str] = []
    first: int | None = None
    for chunk in chunks(sorted(message_ids)):
        query = select(messages.c.text, messages.c.position).where(
            messages.c.context_id == context_id, messages.c.id.in_(chunk)
        )
        for row in connection.execute(query):
            first = row.position if first is None else min(first, row.position)
            texts.append(row.text.strip())
    if not texts:
        return Quotes()
    later = select(messages.c.id, messages.c.role, messages.c.text).where(
        messages.c.context_id == context_id, messages.c.position > first
    )
    long_ones = [text for text in texts if len(text) >= shortest]
    answers: list[int] = []
    replies: dict[int, str] = {}
    for message_id, role, text in connection.execute(later):
        if message_id in message_ids:
            continue
        if role == Role.USER.value:
            words = _without_reply(text, texts)
            if words is not None:
                replies[message_id] = words
        elif any(each in text for each in long_ones):
            answers.append(message_id)
    return Quotes(answers, replies)


def erase_replies(connection: Connection, context_id: int, replies: Mapping[int, str]) -> None:
    """Give messages of people the texts that do not repeat what is forgotten; they are counted and embedded anew."""
    if not replies:
        return
    forget_words(connection, context_id, list(replies))
    for message_id, text in replies.items():
        change = update(messages).where(messages.c.context_id == context_id, messages.c.id == message_id)
        connection.execute(change.values(text=text, token_count=None, token_encoding=None))
        connection.execute(delete(vectors).where(vectors.c.message_id == message_id))
    version = update(contexts).where(contexts.c.id == context_id)
    connection.execute(version.values(deletion_version=contexts.c.deletion_version + 1))


def _without_reply(text: str, forgotten: Collection[str]) -> str | None:
    """Return a message without the part of a forgotten one that it replies to; None where it holds none."""
    begin, end = text.find(_REPLY), text.rfind(_REPLY_END)
    who, _, said = text[begin : max(begin, end)].partition(': "')
    quoted = said.removesuffix("…").strip() if begin >= 0 and "\n" not in who else ""
    if not quoted or not any(quoted in each or quoted in quote_inside(each) for each in forgotten):
        return None
    return f"{text[:begin]}[in reply to somebody]{text[end + len(_REPLY_END) :]}"


def erase_quotes(connection: Connection, authors: Collection[Author], text: str) -> None:
    """Take a text out of the record of the agent's work in every chat of some authors: its prompts and its steps."""
    for context_id in sorted(_contexts_of(connection, authors)):
        erase_from_records(connection, context_id, text)


def erase_from_records(connection: Connection, context_id: int, text: str) -> None:
    """Take a text out of the record of the agent's work in one chat."""
    for column in _RECORDS:
        kept = type_coerce(column, Text)
        for spelling in _spellings(text):
            change = update(column.table).where(
                column.table.c.context_id == context_id,
                func.instr(kept, spelling) > 0
                if connection.dialect.name == "sqlite"
                else func.strpos(kept, spelling) > 0,
            )
            connection.execute(change.values({column: func.replace(kept, spelling, _GONE)}))
    _erase_long_texts(connection, context_id, text)
    _erase_seals(connection, context_id)


def _spellings(text: str) -> list[str]:
    """Return how a text may stand in a record: as it is, in JSON, and in JSON within JSON, as arguments of tools do."""
    once = [json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)]
    twice = [json.dumps(each, ensure_ascii=is_ascii)[1:-1] for each in once for is_ascii in (True, False)]
    return list(dict.fromkeys([*twice, *once, text]))


def _erase_long_texts(connection: Connection, context_id: int, text: str) -> None:
    """Delete the long texts of prompts that hold a text; what is left of such a prompt says that it was deleted."""
    contents = select(type_coerce(prompt_log.c.content, Text)).where(prompt_log.c.context_id == context_id)
    digests = {each for content in connection.execute(contents).scalars() for each in _TEXT_BLOB.findall(content)}
    for chunk in chunks(digests):
        found = read_blobs(connection, context_id, chunk)
        gone = [digest for digest, data in found.items() if text.encode("utf-8", "surrogatepass") in data]
        connection.execute(delete(blobs).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(gone)))


def _erase_seals(connection: Connection, context_id: int) -> None:
    """Take out of the steps what their model gave sealed: nobody here can tell what it repeats."""
    kept = select(steps.c.id, steps.c.data).where(
        steps.c.context_id == context_id, steps.c.data.contains(_SEAL, autoescape=True)
    )
    for row in connection.execute(kept).all():
        record = json.loads(row.data)
        if record.pop("model_items", None) is not None:
            change = update(steps).where(steps.c.id == row.id)
            connection.execute(change.values(data=json.dumps(record, separators=(",", ":"))))


def _contexts_of(connection: Connection, authors: Collection[Author]) -> set[int]:
    found: set[int] = set()
    for author in authors:
        query = select(messages.c.context_id).where(
            messages.c.author_platform == author.platform, messages.c.author_id == author.id
        )
        found.update(connection.execute(query.distinct()).scalars())
    return found
