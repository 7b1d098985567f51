"""Forgetting: a message, a chat, or a person with all that is theirs."""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection, bindparam, delete, not_, select, update

from botservice.errors import StorageError
from botservice.messages import Author, Role
from botservice.people.accounting import Forgotten, take_stock
from botservice.people.erasing import Erasure, delete_unused_blobs, erase_chat, erase_messages
from botservice.people.exports import drop_exports
from botservice.people.facts import facts_from, facts_of
from botservice.people.identities import Identity, find_identity, identities_of
from botservice.people.names import person_name
from botservice.people.names_left import forget_chat_notices, forget_notices, note_forgotten, rename_events
from botservice.people.own_messages import own_message_ids
from botservice.people.personas import forget_personas
from botservice.people.quotes import erase_quotes, find_quotes
from botservice.people.rights import IS_RIGHT
from botservice.people.usage import forget_usage
from botservice.storage import Storage
from botservice.storage.access_tables import access_codes, access_refusals
from botservice.storage.metadata import metadata
from botservice.storage.people_tables import persons
from botservice.storage.slack_tables import feedback
from botservice.storage.tables import contexts, messages

T = TypeVar("T")
State = tuple[int, int]

_SHORTEST_QUOTE: Final = 12  # characters
_TRIES: Final = 5
_MOST_ROUNDS: Final = 5
_STATE = select(contexts.c.last_position, contexts.c.deletion_version).where(contexts.c.id == bindparam("context"))


@dataclass(frozen=True, slots=True)
class Here:
    """The conversation in which somebody asks to be forgotten, and the turn in which they do: these stay, empty."""

    context_id: int
    turn_id: int


class _Changed(Exception):
    """A conversation has changed since it was read."""


async def forget_person(storage: Storage, person: Author, *, here: Here | None = None) -> Forgotten:
    """Delete all that is a person's, on every platform that they have linked.

    Whole conversations go where nobody else wrote. In the others their messages go, the answers to them, and what the
    agent noted since the first of them; what others said stays. What is known of them goes, and who they are: that goes
    last, so that whoever is cut off finds what is left when it is asked again.

    Raises:
        StorageError: nothing is kept of this person.
    """
    accounts = await storage.read(lambda connection: _accounts(connection, person))
    context_ids = await storage.read(lambda connection: _find_contexts(connection, accounts))
    known = await storage.read(lambda connection: find_identity(connection, person))
    if not context_ids and known is None:
        raise StorageError(f"there is no message of {person.platform}:{person.id}, nor anything else")
    gone = Forgotten()
    for _ in range(_MOST_ROUNDS):
        for context_id in context_ids:
            gone += await _forget_in(storage, context_id, accounts, here)
        # What they wrote in the meantime is theirs as well.
        context_ids, last = await storage.write(
            lambda connection: _forget_whom(connection, accounts, known, here, storage.now())
        )
        gone += last
        if not context_ids:
            break
    await storage.scrub()
    return gone


async def forget_chat(storage: Storage, context_id: int, *, here: Here | None = None) -> Forgotten:
    """Delete a conversation with everything that belongs to it; where it is asked for there, it goes on, empty."""

    def forget(connection: Connection) -> Forgotten:
        before, now = take_stock(connection, context_id), storage.now()
        drop_exports(connection, context_id, now)
        known = facts_from(connection, context_id)
        whole = _erase_whole(connection, context_id, here, now)
        _erase_facts(connection, known)
        return replace(before - take_stock(connection, context_id), contexts=whole)

    gone = await storage.write(forget)
    await storage.scrub()
    return gone


async def forget_messages(
    storage: Storage, context_id: int, message_ids: Collection[int] | Author, *, here: Here | None = None
) -> Forgotten:
    """Delete messages of people with all that came of them.

    Args:
        message_ids: Which; or whose: all that an author wrote there.
    """

    def find(connection: Connection) -> Erasure:
        ids = own_message_ids(connection, context_id, message_ids) if isinstance(message_ids, Author) else message_ids
        return _erasure(connection, context_id, ids, here)

    gone = await _erase_as_found(storage, context_id, find, _erase)
    await storage.scrub()
    return gone


async def _forget_in(storage: Storage, context_id: int, accounts: Sequence[Author], here: Here | None) -> Forgotten:
    """Delete what is some accounts' of one conversation, or all of it where nobody else wrote."""
    own = {(each.platform, each.id) for each in accounts}

    def find(connection: Connection) -> Erasure | None:
        if _is_alone(connection, context_id, own):
            return None
        ids = [number for each in accounts for number in own_message_ids(connection, context_id, each)]
        return _erasure(connection, context_id, ids, here)

    def erase(connection: Connection, found: Erasure | None, now: datetime) -> int:
        rename_events(connection, context_id, accounts)
        if found is not None:
            erase_messages(connection, found, now)
            return 0
        forget_chat_notices(connection, context_id)
        note_forgotten(connection, context_id, now)
        return _erase_whole(connection, context_id, here, now)

    return await _erase_as_found(storage, context_id, find, erase)


async def _erase_as_found(
    storage: Storage,
    context_id: int,
    find: Callable[[Connection], T],
    erase: Callable[[Connection, T, datetime], int],
) -> Forgotten:
    """Erase what is found in a conversation, and nothing that is said there between the two escapes.

    Finding may take long, and everybody who writes would wait: it is done beforehand, and anew where anything has
    changed since. Where that never ends, all of it is one transaction.
    """
    for _ in range(_TRIES):
        state, found = await storage.read(lambda connection: (_state(connection, context_id), find(connection)))
        with contextlib.suppress(_Changed):
            return await storage.write(partial(_erase_unless_changed, context_id, state, found, erase, storage.now()))
    return await storage.write(lambda c: _erase_unless_changed(context_id, None, find(c), erase, storage.now(), c))


def _erase_unless_changed(
    context_id: int,
    state: State | None,
    found: T,
    erase: Callable[[Connection, T, datetime], int],
    now: datetime,
    connection: Connection,
) -> Forgotten:
    """Erase what was found, and return what that was.

    Raises:
        _Changed: it is not any more as it was.
    """
    if state is not None and _state(connection, context_id) != state:
        raise _Changed
    before = take_stock(connection, context_id)
    drop_exports(connection, context_id, now)
    whole = erase(connection, found, now)
    # Erasing has locked the conversation: on Postgres something may have been said before that.
    after = _state(connection, context_id)
    if state is not None and after is not None and after[0] != state[0]:
        raise _Changed
    return replace(before - take_stock(connection, context_id), contexts=whole)


def _state(connection: Connection, context_id: int) -> State | None:
    """Return what changes whenever anything is said, changed or deleted in a conversation."""
    row = connection.execute(_STATE, {"context": context_id}).one_or_none()
    return None if row is None else (row.last_position, row.deletion_version)


def _erasure(connection: Connection, context_id: int, message_ids: Collection[int], here: Here | None) -> Erasure:
    quotes = find_quotes(connection, context_id, message_ids, shortest=_SHORTEST_QUOTE)
    turn_id = here.turn_id if here is not None and here.context_id == context_id else None
    return Erasure(context_id, message_ids, quotes, turn_id)


def _erase(connection: Connection, found: Erasure, now: datetime) -> int:
    known = facts_from(connection, found.context_id, found.message_ids)
    erase_messages(connection, found, now)
    _erase_facts(connection, known)
    return 0


def _erase_facts(connection: Connection, known: Mapping[int, Sequence[str]]) -> None:
    """Take facts that are gone out of the prompts of every chat of their persons."""
    for person_id, texts in known.items():
        authors = [each.author for each in identities_of(connection, person_id)]
        for text in texts:
            erase_quotes(connection, authors, text)


def _accounts(connection: Connection, person: Author) -> list[Author]:
    """Return all accounts of a person; the one that is named, where they never wrote to this version."""
    identity = find_identity(connection, person)
    if identity is None:
        return [person]
    return [each.author for each in identities_of(connection, identity.person_id)]


def _find_contexts(connection: Connection, accounts: Sequence[Author], *, but: int | None = None) -> list[int]:
    """Return the conversations in which some accounts were seen; but one is not looked at."""
    found: set[int] = set()
    for account in accounts:
        wrote = select(messages.c.context_id).where(
            messages.c.author_platform == account.platform, messages.c.author_id == account.id
        )
        found.update(connection.execute(wrote.distinct()).scalars())
        identity = find_identity(connection, account)
        if identity is not None:  # who gave commands alone has said nothing, and yet has a chat
            seen = select(contexts.c.id).where(contexts.c.only_identity_id == identity.id)
            found.update(connection.execute(seen).scalars())
    return sorted(found - {but})


def _is_alone(connection: Connection, context_id: int, own: Collection[tuple[str | None, str | None]]) -> bool:
    """Return whether nobody but these accounts wrote in a context; somebody without an account is somebody else."""
    query = (
        select(messages.c.author_platform, messages.c.author_id)
        .where(messages.c.context_id == context_id, messages.c.role == Role.USER.value)
        .distinct()
    )
    return all((row.author_platform, row.author_id) in own for row in connection.execute(query))


def _erase_whole(connection: Connection, context_id: int, here: Here | None, now: datetime) -> int:
    """Erase a conversation, and return how many went whole: one, unless another process was faster."""
    if here is not None and here.context_id == context_id:
        erase_chat(connection, context_id, but_turn=here.turn_id, now=now)
        return 1
    return connection.execute(delete(contexts).where(contexts.c.id == context_id)).rowcount


def _forget_whom(
    connection: Connection, accounts: Sequence[Author], known: Identity | None, here: Here | None, now: datetime
) -> tuple[list[int], Forgotten]:
    """Forget who somebody is, unless they were seen since: then return where."""
    left = _find_contexts(connection, accounts, but=None if here is None else here.context_id)
    if left:
        return left, Forgotten()
    person_id = None if known is None else known.person_id
    facts = [] if person_id is None else facts_of(connection, person_id)
    _forget_accounts(connection, accounts, person_id, now)
    return [], Forgotten(facts=len(facts))


def _forget_accounts(connection: Connection, accounts: Sequence[Author], person_id: int | None, now: datetime) -> None:
    """Forget who somebody is, and what is kept under their name; what they may do is the owner's to say, and stays."""
    for account in accounts:
        name = person_name(account)
        forget_usage(connection, account, now)
        connection.execute(delete(access_codes).where(access_codes.c.person == name))
        # That they asked today stays until tomorrow, or they could ask without end.
        connection.execute(delete(access_refusals).where(access_refusals.c.subject == name, not_(IS_RIGHT)))
        forget_notices(connection, "person", name)
        forget_personas(connection, name)
        is_own = (feedback.c.platform == account.platform) & (feedback.c.person_id == account.id)
        connection.execute(delete(feedback).where(is_own))
        for table in metadata.sorted_tables:
            if table is not messages and {"author_platform", "author_id", "context_id"} <= set(table.c.keys()):
                is_theirs = (table.c.author_platform == account.platform) & (table.c.author_id == account.id)
                touched = set(
                    connection.execute(delete(table).where(is_theirs).returning(table.c.context_id)).scalars()
                )
                for context_id in touched:
                    delete_unused_blobs(connection, context_id)
    if person_id is not None:
        for account in accounts:
            identity = find_identity(connection, account)
            seen = update(contexts).where(contexts.c.only_identity_id == (None if identity is None else identity.id))
            connection.execute(seen.values(only_identity_id=None))
        connection.execute(delete(persons).where(persons.c.id == person_id))
