"""The words that are to be forgotten, and recognising what repeats them: by the author, or else by the words alone.

By the words alone is known what others forward of an account that hides itself, and an answer that repeats a person.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, select

from botservice.core.messages import Author, Role
from botservice.core.references import Reference
from botservice.privacy.affected_turns import turns_of
from botservice.privacy.own_messages import is_alone, own_message_ids
from botservice.storage.chunks import select_among
from botservice.storage.references import decode_references
from botservice.storage.tables.conversations import deliveries, message_references, messages

SHORTEST_QUOTE: Final = 12  # characters: fewer say too little to tell who has said them
_SPOKEN = select(
    *messages.c["id", "position", "text", "said_by_others", "external_id"],
    *messages.c["author_platform", "author_id", "author_name"],
)
_HELD = messages.c.said_by_others
_ANSWERS = select(messages.c.id).where(messages.c.role != Role.USER.value)
_UNNAMED = (
    select(messages.c.context_id, _HELD)
    .join(message_references, message_references.c.message_id == messages.c.id)
    .where(
        message_references.c.external_id.is_(None) | _HELD.contains('"kind":"share"', autoescape=True),
        message_references.c.person_id.is_(None) | _HELD.contains('"is_of_assistant":true', autoescape=True),
    )
)


@dataclass(frozen=True, slots=True)
class ForgottenWords:
    """The words that are to be forgotten.

    Attributes:
        of: Accounts of which everything is to go, whichever message of theirs it is.
        message_ids: Messages that go.
        positions: Where these stand, by context.
        authors: Platforms and ids of who wrote them.
        names: What these were called.
        external_ids: What platforms call these messages.
        texts: What was said, also what nothing but a quote tells of.
        answers: What platforms call the assistant's messages that go as well.
        answer_texts: What these say.
        shortest: Characters of a quote of the assistant that tell what is quoted.
    """

    of: Collection[tuple[str | None, str | None]] = ()
    message_ids: Collection[int] = ()
    positions: Mapping[int, Collection[int]] = field(default_factory=dict)
    authors: Collection[tuple[str | None, str | None]] = ()
    names: Collection[str] = ()
    external_ids: Collection[str] = ()
    texts: Collection[str] = ()
    answers: Collection[str] = ()
    answer_texts: Collection[str] = ()
    shortest: int = 1

    def is_repeated_by(self, reference: Reference) -> bool:
        """Return whether what a message holds of another is to go."""
        if reference.is_erased:
            return False
        if reference.is_of_assistant:
            return reference.external_id in self.answers or _overlap(
                reference.text, self.answer_texts, shortest=self.shortest
            )
        author = reference.author or Author()
        if author.id is None:  # the platform hides who it is, or an older version has not kept it
            is_named = author.name in self.names and (bool(self.of) or _overlap(reference.text, self.texts))
            return is_named or _overlap(reference.text, [*self.texts, *self.answer_texts], shortest=SHORTEST_QUOTE)
        account = (author.platform, author.id)
        return account in self.of or (
            account in self.authors
            and (reference.external_id in self.external_ids or _overlap(reference.text, self.texts))
        )

    def with_texts(self, texts: Iterable[str]) -> "ForgottenWords":
        """Return this with more that was said."""
        return replace(self, texts=_told([*self.texts, *texts]))

    def with_answers(self, connection: Connection, context_id: int, answer_ids: Collection[int]) -> "ForgottenWords":
        """Return this with the answers to it in a conversation, and with those that repeat it."""
        rows = [
            *_answers(connection, context_id, messages.c.id, answer_ids),
            *_answers(
                connection, context_id, messages.c.answers_turn_id, turns_of(connection, context_id, self.message_ids)
            ),
        ]
        texts = _told([*self.texts, *(row.text for row in rows)])
        telling = [each for each in texts if len(each) >= SHORTEST_QUOTE]
        turn_ids = {row.answers_turn_id for row in rows if row.answers_turn_id is not None}
        return replace(self, answers=_sent_in(connection, turn_ids), answer_texts=telling)


def read_words(
    connection: Connection, context_id: int, message_ids: Collection[int], of: Collection[Author] = ()
) -> ForgottenWords:
    """Read the words of messages of people in a conversation.

    Args:
        of: Whose words are to go wherever they are repeated, whichever message they are from.
    """
    spoken = _SPOKEN.where(messages.c.context_id == context_id)
    rows = select_among(connection, spoken, messages.c.id, message_ids)
    return ForgottenWords(
        of={(each.platform, each.id) for each in of},
        message_ids={row.id for row in rows},
        positions={context_id: [row.position for row in rows]},
        authors={(row.author_platform, row.author_id) for row in rows if row.author_id is not None},
        names={row.author_name for row in rows if row.author_name},
        external_ids={row.external_id for row in rows if row.external_id is not None},
        texts=_told(text for row in rows for text in _own_texts(row)),
    )


@dataclass(slots=True)
class CarriedWords:
    """Words that others may have carried elsewhere, and up to which reference of all chats they were looked for."""

    words: ForgottenWords = ForgottenWords()
    seen: int = 0


def telling_words_of(connection: Connection, context_id: int, accounts: Collection[Author]) -> Collection[str]:
    """Return what some accounts said in a conversation, and the answers to it, of texts that only they would say.

    Where nobody else writes, all is an answer to them: also that of which no turn tells so any more.
    """
    ids = [number for each in accounts for number in own_message_ids(connection, context_id, each)]
    said = read_words(connection, context_id, ids)
    if not is_alone(connection, context_id, accounts):
        return telling_words(connection, context_id, said)
    answers = connection.execute(_ANSWERS.where(messages.c.context_id == context_id)).scalars().all()
    return said.with_answers(connection, context_id, answers).answer_texts


def telling_words(connection: Connection, context_id: int, said: ForgottenWords) -> Collection[str]:
    """Return of what is to be forgotten in a conversation, and of the answers to it, what tells whose it is."""
    return said.with_answers(connection, context_id, ()).answer_texts


def without_author(texts: Collection[str]) -> ForgottenWords:
    """Return words that are to be forgotten wherever no author is named."""
    return ForgottenWords(texts=texts, answer_texts=texts, shortest=SHORTEST_QUOTE)


def find_contexts_carrying(connection: Connection, said: ForgottenWords, *, after: int = 0) -> list[int]:
    """Return the conversations into which some words were carried."""
    if not said.texts:
        return []
    unnamed = _UNNAMED.where(message_references.c.id > after) if after else _UNNAMED
    found = {
        row.context_id
        for row in connection.execute(unnamed)
        if any(said.is_repeated_by(each) for each in decode_references(row.said_by_others))
    }
    return sorted(found)


def newest_reference(connection: Connection) -> int:
    """Return the id of the newest reference of all chats: later ones have higher ids."""
    newest: int = connection.execute(select(func.coalesce(func.max(message_references.c.id), 0))).scalar_one()
    return newest


def _own_texts(row: Any) -> list[str]:
    """Return a person's words in a message, including those that they quote or forward of themselves."""
    author = (row.author_platform, row.author_id)
    held = decode_references(row.said_by_others)
    return [row.text, *(each.text for each in held if each.author and (each.author.platform, each.author.id) == author)]


def _overlap(said: str, texts: Collection[str], *, shortest: int = 1) -> bool:
    """Return whether one of the texts holds most of the repeated words, not counting a mention of the bot."""
    said = _without_cut(said)
    if len(said) < shortest:
        return False
    return any(said in each or (len(each) >= SHORTEST_QUOTE and each in said) for each in texts)


def _told(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for text in texts if (each := _without_cut(text))))


def _answers(connection: Connection, context_id: int, column: ColumnElement[Any], values: Collection[int]) -> list[Any]:
    query = select(messages.c.text, messages.c.answers_turn_id).where(messages.c.context_id == context_id)
    return select_among(connection, query, column, values)


def _sent_in(connection: Connection, turn_ids: Collection[int]) -> set[str]:
    """Return the platforms' ids of the messages that turns have sent."""
    sent = select(deliveries.c.external_id).where(deliveries.c.external_id.is_not(None))
    return {row.external_id for row in select_among(connection, sent, deliveries.c.turn_id, turn_ids)}


def _without_cut(said: str) -> str:
    """Return a quotation without its sign that it was cut."""
    return said.removesuffix("…").strip()
