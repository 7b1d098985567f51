"""Forgetting: a message, a chat, or a person with all that is theirs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, delete, select, update

from botservice.errors import StorageError
from botservice.messages import Author, Role
from botservice.people.bringing_over import bring_over_contexts
from botservice.people.clearing import clear_work, forget_work
from botservice.people.erasing import Erasure, delete_turns, erase_chat, erase_messages, first_turn_of
from botservice.people.facts import drop_unsaid, facts_from
from botservice.people.identities import find_identity, identities_of
from botservice.people.names import person_name
from botservice.people.own_messages import contexts_of
from botservice.people.personas import forget_personas
from botservice.people.quotes import erase_quotes, find_quotes
from botservice.people.said import Said, read_said
from botservice.people.usage import forget_usage
from botservice.storage import Storage
from botservice.storage.access_tables import access_codes, access_refusals, budget_rates
from botservice.storage.metadata import metadata
from botservice.storage.orphans import loosen_all_files
from botservice.storage.people_tables import persons
from botservice.storage.references import find_contexts_repeating
from botservice.storage.slack_tables import feedback
from botservice.storage.tables import contexts, messages


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted of a person.

    Attributes:
        contexts: Conversations that went whole, because nobody else wrote in them.
        messages: Their messages in conversations with others, which stay.
    """

    contexts: int
    messages: int


@dataclass(frozen=True, slots=True)
class Here:
    """The conversation in which somebody asks to be forgotten, and the turn in which they do: these stay, empty."""

    context_id: int
    turn_id: int


@dataclass(frozen=True, slots=True)
class _Written:
    """What a person wrote in a conversation.

    Attributes:
        is_alone: Whether nobody else wrote there.
    """

    context_id: int
    message_ids: Sequence[int]
    is_alone: bool


async def forget_person(storage: Storage, person: Author, *, here: Here | None = None) -> Forgotten:
    """Delete all that is a person's, on every platform that they have linked.

    Whole conversations go where nobody else wrote. In the others their messages go, the answers to them, what others
    quote, forward or share of them, and what the agent noted since the first of them; what others said stays. What is
    known of them goes, and who they are.

    Raises:
        StorageError: nothing is kept of this person.
    """
    now = storage.now()
    accounts = await storage.read(lambda connection: _accounts(connection, person))
    await bring_over_contexts(storage, await storage.read(lambda connection: contexts_of(connection, accounts)))
    written = await storage.read(lambda connection: _find_written(connection, accounts), is_long=True)
    known = await storage.read(lambda connection: find_identity(connection, person))
    if not written and known is None:
        raise StorageError(f"there is no message of {person.platform}:{person.id}, nor anything else")
    gone, deleted = 0, 0
    for each in written:
        await _clear(storage, each, here)
        deleted += await storage.write(lambda connection, each=each: _erase(connection, each, accounts, here, now))  # type: ignore[misc]  # bound at once
        gone += each.is_alone
    await storage.write(
        lambda connection: _forget_accounts(connection, accounts, None if known is None else known.person_id, now)
    )
    await storage.scrub()
    return Forgotten(gone, deleted)


async def forget_chat(storage: Storage, context_id: int, *, here: Here | None = None) -> None:
    """Delete a conversation with everything that belongs to it; where it is asked for there, it goes on, empty."""

    def forget(connection: Connection) -> None:
        known = facts_from(connection, context_id)
        _erase_whole(connection, context_id, here, storage.now())
        _erase_facts(connection, known)

    await _clear(storage, _Written(context_id, (), is_alone=True), here)
    await storage.write(forget)
    await storage.scrub()


async def forget_messages(
    storage: Storage,
    context_id: int,
    message_ids: Collection[int],
    *,
    of: Collection[Author] = (),
    here: Here | None = None,
) -> int:
    """Delete messages of people with all that came of them, also in other chats; return how many there were.

    Args:
        of: Whose words others may not go on quoting in this chat, whichever message they are from.
    """
    await bring_over_contexts(storage, [context_id])
    await _clear(storage, _Written(context_id, list(message_ids), is_alone=False), here)

    def forget(connection: Connection) -> int:
        known = facts_from(connection, context_id, message_ids)
        said = read_said(connection, context_id, message_ids)
        elsewhere = find_contexts_repeating(connection, [Author(*each) for each in said.authors]) - {context_id}
        for other in sorted(elsewhere):
            _erase_said(connection, other, said, None, storage.now())
        all_of_it = read_said(connection, context_id, message_ids, of)
        count = _erase_said(connection, context_id, all_of_it, here, storage.now())
        _erase_facts(connection, known)
        return count

    count = await storage.write(forget)
    await storage.scrub()
    return count


async def _clear(storage: Storage, written: _Written, here: Here | None) -> None:
    """Clear what is over of the turns that are to go, or to forget; the rest is done in one transaction."""
    now, but_turn = storage.now(), None if here is None else here.turn_id
    if written.is_alone:
        await clear_work(storage, written.context_id, 0, partial(delete_turns, now=now), but_turn=but_turn)
        return
    erasure = Erasure(written.context_id, written.message_ids)
    first = await storage.read(lambda connection: first_turn_of(connection, erasure), is_long=True)
    if first is not None:
        await clear_work(storage, written.context_id, first, partial(forget_work, now=now), but_turn=but_turn)


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


def _find_written(connection: Connection, accounts: Sequence[Author]) -> list[_Written]:
    by_context: dict[int, list[int]] = {}
    for account in accounts:
        query = select(messages.c.context_id, messages.c.id).where(
            messages.c.author_platform == account.platform, messages.c.author_id == account.id
        )
        for row in connection.execute(query):
            by_context.setdefault(row.context_id, []).append(row.id)
    for account in accounts:  # who gave commands alone has said nothing, and yet has a chat
        identity = find_identity(connection, account)
        if identity is not None:
            seen = select(contexts.c.id).where(contexts.c.only_identity_id == identity.id)
            for context_id in connection.execute(seen).scalars():
                by_context.setdefault(context_id, [])
    for context_id in find_contexts_repeating(connection, accounts):
        by_context.setdefault(context_id, [])
    own = {(each.platform, each.id) for each in accounts}
    return [
        _Written(context_id, ids, is_alone=_is_alone(connection, context_id, own))
        for context_id, ids in by_context.items()
    ]


def _is_alone(connection: Connection, context_id: int, own: Collection[tuple[str | None, str | None]]) -> bool:
    """Return whether nobody but these accounts wrote in a context; somebody without an account is somebody else."""
    query = (
        select(messages.c.author_platform, messages.c.author_id)
        .where(messages.c.context_id == context_id, messages.c.role == Role.USER.value)
        .distinct()
    )
    return all((row.author_platform, row.author_id) in own for row in connection.execute(query))


def _erase(
    connection: Connection, written: _Written, accounts: Sequence[Author], here: Here | None, now: datetime
) -> int:
    if written.is_alone:
        _erase_whole(connection, written.context_id, here, now)
        return 0
    said = read_said(connection, written.context_id, written.message_ids, accounts)
    return _erase_said(connection, written.context_id, said, here, now)


def _erase_said(connection: Connection, context_id: int, said: Said, here: Here | None, now: datetime) -> int:
    """Take what somebody said, and what repeats it, out of a conversation that stays; return how many messages went."""
    quotes = find_quotes(connection, context_id, said)
    own = said.message_ids if context_id in said.positions else ()
    if not own and not quotes.held:
        return 0
    turn_id = here.turn_id if here is not None and here.context_id == context_id else None
    count = erase_messages(connection, Erasure(context_id, own, quotes, turn_id), now)
    _erase_facts(connection, drop_unsaid(connection, quotes.held))
    return count


def _erase_whole(connection: Connection, context_id: int, here: Here | None, now: datetime) -> None:
    if here is not None and here.context_id == context_id:
        erase_chat(connection, context_id, but_turn=here.turn_id, now=now)
    else:
        connection.execute(delete(contexts).where(contexts.c.id == context_id))


def _forget_accounts(connection: Connection, accounts: Sequence[Author], person_id: int | None, now: datetime) -> None:
    """Forget who somebody is, and what is kept under their name; what they may do is the owner's to say, and stays."""
    for account in accounts:
        name = person_name(account)
        forget_usage(connection, account, now)
        connection.execute(delete(access_codes).where(access_codes.c.person == name))
        connection.execute(delete(access_refusals).where(access_refusals.c.subject == name))
        connection.execute(delete(budget_rates).where(budget_rates.c.subject == name))
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
                    loosen_all_files(connection, context_id)
    if person_id is not None:
        for account in accounts:
            identity = find_identity(connection, account)
            seen = update(contexts).where(contexts.c.only_identity_id == (None if identity is None else identity.id))
            connection.execute(seen.values(only_identity_id=None))
        connection.execute(delete(persons).where(persons.c.id == person_id))
