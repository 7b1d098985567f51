"""Forgetting: a message, a chat, or a person with all that is theirs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection, bindparam, delete, not_, select, update

from botservice.budgets.usage import forget_usage
from botservice.errors import StorageError
from botservice.messages import Author, Role
from botservice.people.facts import drop_unsaid, facts_from, facts_of
from botservice.people.identities import Identity, find_identity, identities_of
from botservice.people.names import person_name
from botservice.privacy.accounting import Forgotten, take_stock
from botservice.privacy.bringing_over import bring_over_contexts
from botservice.privacy.carried import carried, find_contexts_carrying, newest_reference, telling, told_in
from botservice.privacy.clearing import clear_work, forget_work
from botservice.privacy.erasing import Erasure, delete_turns, erase_chat, erase_messages, first_turn_of
from botservice.privacy.exports import drop_exports
from botservice.privacy.names_left import forget_chat_notices, forget_notices, note_forgotten, rename_events
from botservice.privacy.own_messages import contexts_of, own_message_ids
from botservice.privacy.personas import forget_personas
from botservice.privacy.quotes import LookedThrough, erase_quotes, find_quotes, look_through
from botservice.privacy.returning import note_people, note_words
from botservice.privacy.rights import IS_NEEDED
from botservice.privacy.said import Said, read_said
from botservice.storage import Storage
from botservice.storage.orphans import loosen_all_files
from botservice.storage.references import find_contexts_repeating
from botservice.storage.tables.access import access_codes, access_refusals
from botservice.storage.tables.conversations import contexts, messages, turns
from botservice.storage.tables.metadata import metadata
from botservice.storage.tables.people import persons
from botservice.storage.tables.slack import feedback

_MOST_ROUNDS: Final = 5
# Where others listen, it may be somebody else who waits to be heard there for the first time.
_OTHERS_WAIT: Final = (
    select(turns.c.id)
    .join(contexts, contexts.c.id == turns.c.context_id)
    .where(contexts.c.id == bindparam("context"), contexts.c.is_shared, turns.c.status == "queued")
    .limit(1)
)
_FOR_UPDATE: Final = select(contexts.c.id).with_for_update()


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
    known of them goes, and who they are: that goes last, so that whoever is cut off finds what is left when it is asked
    again.

    Raises:
        StorageError: nothing is kept of this person; or they went on being heard, and it has to be asked again.
    """
    accounts = await storage.read(lambda connection: _accounts(connection, person))
    await bring_over_contexts(storage, await storage.read(lambda connection: contexts_of(connection, accounts)))
    context_ids = await storage.read(lambda connection: _find_contexts(connection, accounts), is_long=True)
    known = await storage.read(lambda connection: find_identity(connection, person))
    if not context_ids and known is None:
        raise StorageError(f"there is no message of {person.platform}:{person.id}, nor anything else")
    but_turn = None if here is None else here.turn_id
    await storage.write(lambda connection: note_people(connection, accounts, but_turn, storage.now()))
    told = await _read_told(storage, context_ids, accounts)
    seen, gone = await _forget_carried(storage, told)
    for _ in range(_MOST_ROUNDS):
        for context_id in context_ids:
            gone += await _forget_in(storage, context_id, accounts, here)
        # What they wrote in the meantime is theirs as well.
        context_ids, last = await storage.write(
            lambda connection: _forget_whom(connection, accounts, known, here, storage.now())
        )
        gone += last
        if not context_ids:
            _, carried_since = await _forget_carried(storage, told, after=seen)
            await storage.scrub()
            return gone + carried_since
    raise StorageError("whoever is to be forgotten was heard again and again meanwhile: ask again, to forget the rest")


async def forget_chat(storage: Storage, context_id: int, *, here: Here | None = None) -> Forgotten:
    """Delete a conversation with everything that belongs to it; where it is asked for there, it goes on, empty."""

    def forget(connection: Connection) -> Forgotten:
        _lock(connection, context_id)
        before, now = take_stock(connection, context_id), storage.now()
        drop_exports(connection, context_id, now)
        known = facts_from(connection, context_id)
        whole = _erase_whole(connection, context_id, here, now)
        _erase_facts(connection, known)
        return replace(before - take_stock(connection, context_id), contexts=whole)

    await _clear(storage, _Written(context_id, (), is_alone=True), here)
    gone = await storage.write(forget)
    await storage.scrub()
    return gone


async def forget_messages(
    storage: Storage, context_id: int, message_ids: Collection[int] | Author, *, here: Here | None = None
) -> Forgotten:
    """Delete messages of people with all that came of them, also in other chats.

    Args:
        message_ids: Which; or whose: all that an author wrote there, and what others quote of them there.
    """
    author = message_ids if isinstance(message_ids, Author) else None

    def find(connection: Connection) -> Collection[int]:
        return message_ids if author is None else own_message_ids(connection, context_id, author)  # type: ignore[return-value]  # one or the other

    def forget(connection: Connection) -> Forgotten:
        _lock(connection, context_id)
        ids, now = find(connection), storage.now()
        known = facts_from(connection, context_id, ids)
        said = read_said(connection, context_id, ids)
        elsewhere = find_contexts_repeating(connection, [Author(*each) for each in said.authors]) - {context_id}
        gone = Forgotten()
        for other in sorted(elsewhere):
            gone += _erase_said(connection, other, said, None, now)
        words = carried(telling(connection, context_id, said))
        # What was looked through before is not looked through again while all others wait, unless it says more now.
        since = seen if set(words.texts) <= set(told.texts) else 0
        for other in find_contexts_carrying(connection, words, after=since):
            gone += _erase_said(connection, other, words, None, now)
        all_of_it = said if author is None else read_said(connection, context_id, ids, [author])
        gone += _erase_said(connection, context_id, all_of_it, here, now)
        _erase_facts(connection, known)
        note_words(connection, context_id, author or said.external_ids, None if here is None else here.turn_id, now)
        return gone

    await bring_over_contexts(storage, [context_id])
    ids = await storage.read(find, is_long=True)
    told = await storage.read(lambda connection: _tell(connection, context_id, ids), is_long=True)
    seen, carried_before = await _forget_carried(storage, told)
    await _clear(storage, _Written(context_id, list(ids), is_alone=False), here)
    gone = carried_before + await storage.write(forget)
    await storage.scrub()
    return gone


def _tell(connection: Connection, context_id: int, message_ids: Collection[int]) -> Said:
    return carried(telling(connection, context_id, read_said(connection, context_id, message_ids)))


async def _read_told(storage: Storage, context_ids: Sequence[int], accounts: Sequence[Author]) -> Said:
    """Return the words of some accounts by which others may carry them elsewhere, before they are gone."""
    told: set[str] = set()
    for context_id in context_ids:
        told.update(await storage.read(partial(told_in, context_id=context_id, accounts=accounts), is_long=True))
    return carried(told)


async def _forget_carried(storage: Storage, said: Said, *, after: int = 0) -> tuple[int, Forgotten]:
    """Delete what others carried elsewhere without its author's name; return how far they were looked through."""

    def find(connection: Connection) -> tuple[int, list[int]]:
        return newest_reference(connection), find_contexts_carrying(connection, said, after=after)

    seen, found = await storage.read(find, is_long=True)
    gone = Forgotten()
    for context_id in found:
        gone += await storage.write(partial(_erase_carried, context_id=context_id, said=said, now=storage.now()))
    return seen, gone


def _erase_carried(connection: Connection, context_id: int, said: Said, now: datetime) -> Forgotten:
    _lock(connection, context_id)
    return _erase_said(connection, context_id, said, None, now)


async def _forget_in(storage: Storage, context_id: int, accounts: Sequence[Author], here: Here | None) -> Forgotten:
    """Delete what is some accounts' of one conversation, or all of it where nobody else wrote."""
    written = await storage.read(lambda connection: _find_written(connection, context_id, accounts), is_long=True)
    await _clear(storage, written, here)
    looked: LookedThrough | None = None
    if not written.is_alone:
        looked = await storage.read(partial(_look_through, written=written, accounts=accounts), is_long=True)
    return await storage.write(lambda connection: _erase(connection, context_id, accounts, looked, here, storage.now()))


def _look_through(connection: Connection, written: _Written, accounts: Sequence[Author]) -> LookedThrough | None:
    said = read_said(connection, written.context_id, written.message_ids, accounts)
    return look_through(connection, written.context_id, said)


def _lock(connection: Connection, context_id: int) -> None:
    """Have nothing more be said in a conversation until all of it is done: on SQLite, others do not write meanwhile."""
    connection.execute(_FOR_UPDATE.where(contexts.c.id == context_id))


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


def _find_contexts(connection: Connection, accounts: Sequence[Author], *, but: int | None = None) -> list[int]:
    """Return the conversations in which some accounts were seen, or are repeated; but one is not looked at."""
    found = find_contexts_repeating(connection, accounts)
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


def _find_written(connection: Connection, context_id: int, accounts: Sequence[Author]) -> _Written:
    own = {(each.platform, each.id) for each in accounts}
    ids = [number for each in accounts for number in own_message_ids(connection, context_id, each)]
    return _Written(context_id, ids, is_alone=_is_alone(connection, context_id, own))


def _is_alone(connection: Connection, context_id: int, own: Collection[tuple[str | None, str | None]]) -> bool:
    """Return whether nobody but these accounts wrote in a context; somebody without an account is somebody else."""
    query = (
        select(messages.c.author_platform, messages.c.author_id)
        .where(messages.c.context_id == context_id, messages.c.role == Role.USER.value)
        .distinct()
    )
    return all((row.author_platform, row.author_id) in own for row in connection.execute(query))


def _erase(
    connection: Connection,
    context_id: int,
    accounts: Sequence[Author],
    looked: LookedThrough | None,
    here: Here | None,
    now: datetime,
) -> Forgotten:
    _lock(connection, context_id)
    rename_events(connection, context_id, accounts)
    written = _find_written(connection, context_id, accounts)
    if not written.is_alone:
        said = read_said(connection, context_id, written.message_ids, accounts)
        return _erase_said(connection, context_id, said, here, now, looked)
    before = take_stock(connection, context_id)
    drop_exports(connection, context_id, now)
    forget_chat_notices(connection, context_id)
    note_forgotten(connection, context_id, now)
    whole = _erase_whole(connection, context_id, here, now)
    return replace(before - take_stock(connection, context_id), contexts=whole)


def _erase_said(
    connection: Connection,
    context_id: int,
    said: Said,
    here: Here | None,
    now: datetime,
    looked: LookedThrough | None = None,
) -> Forgotten:
    """Take what somebody said, and what repeats it, out of a conversation that stays; return what was deleted."""
    quotes = find_quotes(connection, context_id, said, looked=None if looked is None else [looked])
    own = said.message_ids if context_id in said.positions else ()
    if not own and not quotes.held:
        return Forgotten()
    before = take_stock(connection, context_id)
    drop_exports(connection, context_id, now)
    turn_id = here.turn_id if here is not None and here.context_id == context_id else None
    erase_messages(connection, Erasure(context_id, own, quotes, turn_id), now)
    _erase_facts(connection, drop_unsaid(connection, quotes.held))
    return before - take_stock(connection, context_id)


def _erase_whole(connection: Connection, context_id: int, here: Here | None, now: datetime) -> int:
    """Erase a conversation, and return how many went whole: one, unless another process was faster."""
    if here is not None and here.context_id == context_id:
        erase_chat(connection, context_id, but_turn=here.turn_id, now=now)
        return 1
    if connection.execute(_OTHERS_WAIT, {"context": context_id}).first() is not None:
        erase_chat(connection, context_id, but_turn=None, now=now)
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
        connection.execute(delete(access_refusals).where(access_refusals.c.subject == name, not_(IS_NEEDED)))
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
                    loosen_all_files(connection, context_id)
    if person_id is not None:
        for account in accounts:
            identity = find_identity(connection, account)
            seen = update(contexts).where(contexts.c.only_identity_id == (None if identity is None else identity.id))
            connection.execute(seen.values(only_identity_id=None))
        connection.execute(delete(persons).where(persons.c.id == person_id))
