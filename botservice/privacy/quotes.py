"""Finding and deleting what repeats forgotten words in messages that stay."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, delete, select, update

from botservice.core.messages import Role
from botservice.core.quoting import quote_inside
from botservice.core.references import Reference, keep_files
from botservice.history.search_queries import forget_words
from botservice.privacy.affected_turns import answers_of, turns_of_only
from botservice.privacy.repeated_words import SHORTEST_QUOTE, ForgottenWords
from botservice.storage.chunks import select_among
from botservice.storage.references import decode_references, keep_references, read_references
from botservice.storage.tables.conversations import contexts, messages, vectors

Repeating = tuple[int, int, tuple[Reference, ...]]
"""A message's id and position, and what it holds of others."""

_SILENT = select(messages.c.id).where(messages.c.text == "")
_FILES = select(messages.c.said_by_others, messages.c.attachments).where(messages.c.id == bindparam("message"))


@dataclass(frozen=True, slots=True)
class Quotes:
    """What repeats what is to be forgotten, in one conversation.

    Attributes:
        answers: Messages of the assistant; they go with what they repeat.
        held: Messages of people, with what they may go on holding of others. Their own words stay.
        said: All that they repeat: also what was found to repeat the rest.
    """

    answers: Collection[int] = ()
    held: Mapping[int, Sequence[Reference]] = field(default_factory=dict)
    said: ForgottenWords = field(default_factory=ForgottenWords)


def find_quotes(connection: Connection, context_id: int, said: ForgottenWords) -> Quotes:
    """Find what repeats a person's words, by looking through the whole conversation."""
    repeating = [each for each in read_references(connection, context_id) if each[0] not in said.message_ids]
    gone = _repeated(repeating, said)
    positions = [*said.positions.get(context_id, ()), *(position for position, _ in gone)]
    if not positions:
        return Quotes(said=said)
    answers: list[int] = []
    searched: Collection[str] | None = None
    while True:  # answers repeat quotes, and what quotes those answers is repeated again
        known = len(said.texts), len(answers)
        said = said.with_texts(reference.text for _, reference in gone)
        if said.texts != searched:
            searched, found = said.texts, answers_repeating(connection, context_id, said, after=min(positions))
            answers = [each for each in found if each not in said.message_ids]
        said = said.with_answers(connection, context_id, answers)
        gone = _repeated(repeating, said)
        if known == (len(said.texts), len(answers)):
            break
    held = {
        message_id: [each.erased() if said.is_repeated_by(each) else each for each in references]
        for message_id, _, references in repeating
        if any(map(said.is_repeated_by, references))
    }
    return Quotes([*answers, *_answers_to_nothing_else(connection, context_id, held)], held, said)


def _answers_to_nothing_else(
    connection: Connection, context_id: int, held: Mapping[int, Sequence[Reference]]
) -> list[int]:
    """Return the answers to messages of which nothing is left: all that they held was forwarded or shared."""
    erased = [message_id for message_id, references in held.items() if all(each.is_erased for each in references)]
    silent = [row.id for row in select_among(connection, _SILENT, messages.c.id, erased)]
    return answers_of(connection, context_id, turns_of_only(connection, context_id, silent)) if silent else []


def _repeated(repeating: Sequence[Repeating], said: ForgottenWords) -> list[tuple[int, Reference]]:
    """Return the repetitions of a person's words, each with its message's position."""
    return [
        (position, reference)
        for _, position, references in repeating
        for reference in references
        if said.is_repeated_by(reference)
    ]


def answers_repeating(connection: Connection, context_id: int, said: ForgottenWords, *, after: int) -> list[int]:
    """Return the answers behind a position that repeat what a person said."""
    quoted = {spelt for text in said.texts if len(text) >= SHORTEST_QUOTE for spelt in (text, quote_inside(text))}
    later = select(messages.c.id, messages.c.text).where(
        messages.c.context_id == context_id, messages.c.position > after, messages.c.role != Role.USER.value
    )
    return [row.id for row in connection.execute(later).all() if any(each in row.text for each in quoted)]


def erase_references(connection: Connection, context_id: int, held: Mapping[int, Sequence[Reference]]) -> int:
    """Remove forgotten words from messages of people, to be counted and embedded anew.

    Returns how many files went with that.
    """
    if not held:
        return 0
    forget_words(connection, context_id, list(held))
    gone = 0
    for message_id, references in held.items():
        row = connection.execute(_FILES, {"message": message_id}).one()
        before = decode_references(row.said_by_others)
        left = {id(each) for each, now in zip(before, references, strict=True) if not now.is_erased}
        files = keep_files(row.attachments or (), before, lambda each, left=left: id(each) in left)  # type: ignore[misc]  # bound at once
        gone += len(row.attachments or ()) - len(files)
        counts = {"token_count": None, "token_encoding": None}
        keep_references(connection, context_id, message_id, references, attachments=files or None, **counts)
        connection.execute(delete(vectors).where(vectors.c.message_id == message_id))
    version = update(contexts).where(contexts.c.id == context_id)
    connection.execute(version.values(deletion_version=contexts.c.deletion_version + 1))
    return gone
