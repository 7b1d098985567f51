"""The words that are to be forgotten, and what repeats them: by the author, or else by the words alone.

By the words alone is known what others forward of an account that hides itself, and an answer that repeats a person.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from botservice.core.message_references import Reference
from botservice.core.messages import Author
from botservice.core.quoting import quote_inside
from botservice.privacy.queries import (
    find_answers_holding,
    find_sent,
    find_silent,
    is_alone,
    own_message_ids,
    prepare_messages,
    read_answers,
    read_unnamed,
)
from botservice.privacy.turn_queries import answers_of, turns_of, turns_of_only
from botservice.storage.database import Connection
from botservice.storage.message_references import decode_references, read_references
from botservice.storage.statements import sure_up_to

SHORTEST_QUOTE: Final = 12  # characters: fewer say too little to tell who has said them

Repeating = tuple[int, int, tuple[Reference, ...]]
"""A message's id and position, and what it holds of others."""


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
        answering = turns_of(connection, context_id, self.message_ids)
        rows = read_answers(connection, context_id, ids=answer_ids, turn_ids=answering)
        texts = _told([*self.texts, *(row.text for row in rows)])
        telling = [each for each in texts if len(each) >= SHORTEST_QUOTE]
        turn_ids = {row.answers_turn_id for row in rows if row.answers_turn_id is not None}
        return replace(self, answers=find_sent(connection, turn_ids), answer_texts=telling)


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


def read_words(
    connection: Connection, context_id: int, message_ids: Collection[int], of: Collection[Author] = ()
) -> ForgottenWords:
    """Read the words of messages of people in a conversation.

    Args:
        of: Whose words are to go wherever they are repeated, whichever message they are from.
    """
    rows = prepare_messages(connection, context_id, message_ids)
    return ForgottenWords(
        of={(each.platform, each.id) for each in of},
        message_ids={row.id for row in rows},
        positions={context_id: [row.position for row in rows]},
        authors={(row.author_platform, row.author_id) for row in rows if row.author_id is not None},
        names={row.author_name for row in rows if row.author_name},
        external_ids={row.external_id for row in rows if row.external_id is not None},
        texts=_told(text for row in rows for text in _own_texts(row)),
    )


def telling_words_of(connection: Connection, context_id: int, accounts: Collection[Author]) -> Collection[str]:
    """Return what some accounts said in a conversation, and the answers to it, of texts that only they would say.

    Where no other person writes, all is an answer to them: also that of which no turn tells so any more.
    """
    ids = [number for each in accounts for number in own_message_ids(connection, context_id, each)]
    said = read_words(connection, context_id, ids)
    if not is_alone(connection, context_id, accounts):
        return telling_words(connection, context_id, said)
    return said.with_answers(connection, context_id, find_answers_holding(connection, context_id)).answer_texts


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
    unnamed = read_unnamed(connection, sure_up_to(connection, after))
    return sorted({context_id for context_id, held in unnamed if any(map(said.is_repeated_by, held))})


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
            searched, quoted = said.texts, _spellings(said.texts)
            found = find_answers_holding(connection, context_id, quoted, after=min(positions))
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
    silent = find_silent(connection, erased)
    return answers_of(connection, context_id, turns_of_only(connection, context_id, silent)) if silent else []


def _repeated(repeating: Sequence[Repeating], said: ForgottenWords) -> list[tuple[int, Reference]]:
    """Return the repetitions of a person's words, each with its message's position."""
    return [
        (position, reference)
        for _, position, references in repeating
        for reference in references
        if said.is_repeated_by(reference)
    ]


def _spellings(texts: Collection[str]) -> set[str]:
    """Return how texts stand in answers that repeat them."""
    return {spelt for text in texts if len(text) >= SHORTEST_QUOTE for spelt in (text, quote_inside(text))}


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


def _without_cut(said: str) -> str:
    """Return a quotation without its sign that it was cut."""
    return said.removesuffix("…").strip()
