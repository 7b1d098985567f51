"""Finding what is to be deleted from a conversation, before the transaction that others wait for.

A conversation may be long, and everybody waits for who writes. So all of it is looked through by who reads, and who
writes only looks at what came since: where that is of any concern, it is looked through anew.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Row, bindparam, func, select

from botservice.core.messages import Role
from botservice.privacy.affected_turns import find_seen, turns_brought_by
from botservice.privacy.erasing import Erasure
from botservice.privacy.quotes import answers_repeating, find_quotes
from botservice.privacy.repeated_words import ForgottenWords
from botservice.storage.ranges import sure_up_to
from botservice.storage.references import read_references
from botservice.storage.tables.conversations import contexts, message_references, messages

_STATE: Final = select(
    contexts.c.deletion_version,
    contexts.c.last_position,
    select(func.coalesce(func.max(message_references.c.id), 0)).scalar_subquery().label("last_reference"),
).where(contexts.c.id == bindparam("context"))


@dataclass(frozen=True, slots=True)
class Survey:
    """What is to be deleted from a conversation that stays, as found at one moment.

    Attributes:
        state: How far the conversation had come by then, or None if it was gone.
        said: What is to be forgotten there.
        erasure: What goes with it.
    """

    state: Row[int, int, int] | None
    said: ForgottenWords
    erasure: Erasure

    @property
    def finds_something(self) -> bool:
        """Whether there is anything to delete."""
        return bool(self.erasure.message_ids or self.erasure.quotes.held)


def survey_context(connection: Connection, context_id: int, said: ForgottenWords) -> Survey:
    """Find what is deleted with a person's messages, by looking through the whole conversation."""
    state = connection.execute(_STATE, {"context": context_id}).one_or_none()
    quotes = find_quotes(connection, context_id, said)
    own = said.message_ids if context_id in said.positions else ()
    seen = find_seen(connection, context_id, own, quotes.held)
    return Survey(state, said, Erasure(context_id, own, quotes, seen=seen))


def is_current(connection: Connection, survey: Survey, message_ids: Collection[int]) -> bool:
    """Return whether what was found is still all: no newer message repeats or answers it."""
    context_id, quotes = survey.erasure.context_id, survey.erasure.quotes
    state = connection.execute(_STATE, {"context": context_id}).one_or_none()
    if survey.state is None or state is None:
        return survey.state is state
    if set(message_ids) != set(survey.erasure.message_ids) or state.deletion_version != survey.state.deletion_version:
        return False
    after = survey.state.last_position
    if state.last_position > after and (
        answers_repeating(connection, context_id, quotes.said, after=after) or _is_answered_since(connection, survey)
    ):
        return False
    after = sure_up_to(connection, survey.state.last_reference)
    later = read_references(connection, context_id, after=after)
    known = {*survey.erasure.message_ids, *quotes.held}
    return not any(
        quotes.said.is_repeated_by(each)
        for message_id, _, references in later
        if message_id not in known
        for each in references
    )


def _is_answered_since(connection: Connection, survey: Survey) -> bool:
    assert survey.state is not None, "the conversation is there"  # noqa: S101 - an invariant
    later = select(messages.c.answers_turn_id).where(
        messages.c.context_id == survey.erasure.context_id,
        messages.c.position > survey.state.last_position,
        messages.c.role != Role.USER.value,
    )
    answered: Sequence[int | None] = connection.execute(later).scalars().all()
    own = turns_brought_by(connection, survey.erasure.message_ids) if answered else ()
    return any(each in own for each in answered)
