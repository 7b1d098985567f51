"""Forgetting: a message, a chat, or a person with all that is theirs.

A transaction takes what is forgotten out of a chat, with the rows of the turns that may have read it, so that a turn
that is under way stores nothing more. The rest of the records is queued in that transaction (see `cleaning`).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from botservice.core.errors import StorageError
from botservice.core.messages import Author
from botservice.people.fact_queries import drop_facts, drop_unsaid, facts_from
from botservice.people.identities import Identity
from botservice.people.queries import find_identity
from botservice.privacy import account_queries, queries, record_queries, right_queries, turn_queries
from botservice.privacy.cleaning import bites, clean_all, clean_and_scrub, do_in_bites, queue_facts
from botservice.privacy.forgotten_counts import NOWHERE, Forgotten, Here
from botservice.privacy.late_messages import note_people, note_words
from botservice.privacy.queries import Erasure
from botservice.privacy.quotes import (
    ForgottenWords,
    find_contexts_carrying,
    find_quotes,
    read_words,
    telling_words,
    telling_words_of,
    without_author,
)
from botservice.storage.database import Connection, Storage
from botservice.storage.message_references import find_contexts_repeating
from botservice.storage.statements import chunks, sure_up_to

T = TypeVar("T")

_MOST_ROUNDS: Final = 5


@dataclass(slots=True)
class _Carried:
    """The words by which it is known what others carried into other chats, and up to which reference they were sought.

    Once the words are deleted, nobody finds that any more. So each transaction that deletes some of them first deletes
    what was carried since they were sought: other chats go on meanwhile, and this process may end.
    """

    words: ForgottenWords = field(default_factory=ForgottenWords)
    seen: int = 0


async def forget_person(storage: Storage, person: Author, *, here: Here = NOWHERE) -> Forgotten:
    """Delete all that is a person's, on every platform that they have linked.

    Whole conversations go where no other person wrote. In others go their messages, the answers to them, what others
    quote, forward or share of them, and what the agent noted since the first of them; what others said stays. What is
    known of them goes, and who they are: that goes last, so that a process that is cut off finds what is left when it
    is asked again.

    Raises:
        StorageError: nothing is kept of this person; or they went on writing, and it has to be asked again.
    """
    await clean_all(storage, here.claim)  # an earlier process may have been cut off before that

    def find(connection: Connection) -> tuple[list[Author], list[int], Identity | None, bool]:
        accounts, known = account_queries.accounts_of(connection, person), find_identity(connection, person)
        is_in_ledger = account_queries.are_in_ledger(connection, accounts)
        return accounts, account_queries.contexts_with(connection, accounts), known, is_in_ledger

    accounts, context_ids, known, is_in_ledger = await storage.read(find, is_long=True)
    if not context_ids and known is None and not is_in_ledger:
        raise StorageError(f"there is no message of {person.platform}:{person.id}, nor anything else")
    await storage.write(lambda connection: note_people(connection, accounts, here.turn_id, storage.now()))
    told = _Carried()
    gone = await _forget_told(storage, context_ids, accounts, told)
    for _ in range(_MOST_ROUNDS):
        for context_id in context_ids:
            gone += await _forget_told(storage, [context_id], accounts, told)
            gone += await _forget_in(storage, context_id, accounts, told, here)
        # What they wrote in the meantime is theirs as well.
        context_ids, last = await storage.write(
            lambda connection: account_queries.forget_whom(connection, accounts, known, here.context_id, storage.now())
        )
        gone += last
        if not context_ids:
            _, carried_since = await _forget_carried(storage, told.words, after=told.seen)
            await clean_and_scrub(storage, here.claim)
            return gone + carried_since
    raise StorageError("this person went on writing while everything was deleted: ask again, to delete the rest")


async def forget_chat(storage: Storage, context_id: int, *, here: Here = NOWHERE) -> Forgotten:
    """Delete a conversation with everything that belongs to it; where it is asked for there, it goes on, empty."""

    def forget_facts(connection: Connection) -> Forgotten:
        known, count = facts_from(connection, context_id), queries.count_facts(connection, context_id)
        queue_facts(connection, known, storage.now())
        drop_facts(connection, [each.id for each in known])
        return Forgotten(facts=count)

    def forget(connection: Connection) -> Forgotten:
        queries.lock_chat(connection, context_id)
        facts, now = forget_facts(connection), storage.now()
        right_queries.drop_exports(connection, context_id, now)
        return facts + queries.delete_chat(connection, context_id, but_turn=here.turn_in(context_id), now=now)

    gone = await storage.write(forget_facts)  # first: they are found by what was said there
    gone += await _empty(storage, context_id, here, _Carried())
    gone += await storage.write(forget)
    await clean_and_scrub(storage, here.claim)
    return gone


async def forget_messages(
    storage: Storage, context_id: int, message_ids: Collection[int] | Author, *, here: Here = NOWHERE
) -> Forgotten:
    """Delete messages of people with all that came of them, also in other chats.

    Args:
        message_ids: Which; or whose: all that an author wrote there, and what others quote of them there.
    """
    author = message_ids if isinstance(message_ids, Author) else None

    def find(connection: Connection) -> ForgottenWords:
        ids = message_ids if author is None else queries.own_message_ids(connection, context_id, author)
        return read_words(connection, context_id, ids, () if author is None else [author])  # type: ignore[arg-type]  # one or the other

    def tell(connection: Connection) -> tuple[ForgottenWords, ForgottenWords]:
        said = replace(find(connection), of=())
        return said, without_author(telling_words(connection, context_id, said))

    def forget_elsewhere(connection: Connection, said: ForgottenWords) -> Forgotten:
        now = storage.now()
        queue_facts(connection, facts_from(connection, context_id, said.message_ids), now)
        note_words(connection, context_id, author or said.external_ids, here.turn_id, now)
        return _erase_elsewhere(connection, context_id, replace(said, of=()), told, seen, now)

    said, told = await storage.read(tell, is_long=True)
    seen, gone = await _forget_carried(storage, told)
    authors = [Author(*each) for each in said.authors]
    repeating = await storage.read(lambda connection: find_contexts_repeating(connection, authors), is_long=True)
    for other in sorted(repeating - {context_id}):
        gone += await _take_out(storage, other, lambda _: said)
    gone += await _take_out(storage, context_id, find, here, forget_elsewhere)
    await clean_and_scrub(storage, here.claim)
    return gone


async def _take_out(
    storage: Storage,
    context_id: int,
    find: Callable[[Connection], ForgottenWords],
    here: Here = NOWHERE,
    before: Callable[[Connection, ForgottenWords], Forgotten] = lambda _, __: Forgotten(),
) -> Forgotten:
    """Take words, and what repeats them, out of a chat that stays.

    A long chat is looked through by a reader, because all others wait for the writer. The writer looks through it again
    only where anything was said or deleted there since: a turn may have repeated the words.

    Args:
        before: What is done in the same transaction, before the words are gone.
    """

    def look(connection: Connection) -> tuple[object, ForgottenWords, Erasure]:
        state, said = queries.read_state(connection, context_id), find(connection)
        return state, said, _find_erasure(connection, context_id, said, here)

    def forget(connection: Connection) -> Forgotten:
        queries.lock_chat(connection, context_id)
        is_as_found = queries.read_state(connection, context_id) == found[0]
        _, said, erasure = found if is_as_found else look(connection)
        return before(connection, said) + _erase(connection, erasure, storage.now())

    found = await storage.read(look, is_long=True)
    return await storage.write(forget)


async def _forget_in(
    storage: Storage, context_id: int, accounts: Sequence[Author], told: _Carried, here: Here
) -> Forgotten:
    """Delete what is some accounts' of one chat, or all of it where no other person wrote."""
    find_events = partial(account_queries.find_events_naming, context_id=context_id, accounts=accounts)
    for chunk in chunks(await storage.read(find_events, is_long=True)):
        await storage.write(partial(account_queries.rename_events, event_ids=chunk))

    def find(connection: Connection) -> ForgottenWords:
        ids = [number for each in accounts for number in queries.own_message_ids(connection, context_id, each)]
        return read_words(connection, context_id, ids, accounts)

    def forget_elsewhere(connection: Connection, _: ForgottenWords) -> Forgotten:
        return _erase_carried(connection, told.seen, told.words, storage.now())[0]

    def forget_alone(connection: Connection) -> Forgotten | None:
        queries.lock_chat(connection, context_id)
        if not queries.is_alone(connection, context_id, accounts):
            return None
        elsewhere = forget_elsewhere(connection, told.words)
        return elsewhere + _erase_alone(connection, context_id, here, storage.now())

    gone = Forgotten()
    if await storage.read(lambda connection: queries.is_alone(connection, context_id, accounts), is_long=True):
        gone = await _empty(storage, context_id, here, told)
        last = await storage.write(forget_alone)
        if last is not None:
            return gone + last
    return gone + await _take_out(storage, context_id, find, here, forget_elsewhere)


async def _empty(storage: Storage, context_id: int, here: Here, told: _Carried) -> Forgotten:
    """Delete what is over of a chat that goes whole, a little at a time; return what was deleted.

    A process that is cut off in between finds the chat again by its last message, which stays until the rest goes.
    """
    now, gone, but_turn = storage.now(), Forgotten(), here.turn_id
    up_to = await storage.read(lambda connection: queries.last_said(connection, context_id), is_long=True)

    def forget_turns(connection: Connection, ids: list[int]) -> None:
        turn_queries.delete_turns(connection, [each for each in ids if each != but_turn], now)

    def forget_said(connection: Connection, ids: list[int]) -> tuple[Forgotten, int]:
        elsewhere, newest = _erase_carried(connection, told.seen, told.words, now)
        return elsewhere + queries.delete_messages(connection, context_id, ids), newest

    await do_in_bites(storage, partial(record_queries.find_turns_over, context_id=context_id), forget_turns)
    messages_before = partial(queries.find_messages_before, context_id=context_id, up_to=up_to)
    async for some, newest in bites(storage, messages_before, forget_said):
        gone, told.seen = gone + some, newest
    old = partial(queries.find_handled_events, context_id=context_id, before=now - account_queries.DELIVERED_AGAIN)
    await do_in_bites(storage, old, queries.delete_events)
    return gone


async def _forget_told(
    storage: Storage, context_ids: Sequence[int], accounts: Sequence[Author], told: _Carried
) -> Forgotten:
    """Delete what others carry elsewhere of what some accounts say in conversations and is not told yet."""
    texts = [
        await storage.read(partial(telling_words_of, context_id=each, accounts=accounts), is_long=True)
        for each in context_ids
    ]
    new = set().union(*texts).difference(told.words.texts)
    if not new and told.seen:
        return Forgotten()
    seen, gone = await _forget_carried(storage, without_author(new))
    told.words, told.seen = without_author(new.union(told.words.texts)), told.seen or seen
    return gone


async def _forget_carried(storage: Storage, said: ForgottenWords, *, after: int = 0) -> tuple[int, Forgotten]:
    """Delete what others carried elsewhere without its author's name; return how far they were looked through."""

    def find(connection: Connection) -> tuple[int, list[int]]:
        return queries.newest_reference(connection), find_contexts_carrying(connection, said, after=after)

    seen, found = await storage.read(find, is_long=True)
    gone = Forgotten()
    for context_id in found:
        gone += await _take_out(storage, context_id, lambda _: said)
    return seen, gone


def _erase_carried(connection: Connection, after: int, words: ForgottenWords, now: datetime) -> tuple[Forgotten, int]:
    """Delete what others carried elsewhere behind a row of what is held of others, and return the newest."""
    newest, gone = queries.newest_reference(connection), Forgotten()
    for other in find_contexts_carrying(connection, words, after=after):
        gone += _erase(connection, _find_erasure(connection, other, words), now)
    return gone, newest


def _erase_elsewhere(
    connection: Connection, context_id: int, said: ForgottenWords, told: ForgottenWords, seen: int, now: datetime
) -> Forgotten:
    """Delete what repeats a person in other chats, and came there since these were looked through.

    Args:
        told: What was looked for.
        seen: How far what is held of others had come then.
    """
    words = without_author(telling_words(connection, context_id, said))
    # What was looked through before is not looked through again while all others wait, unless it says more now.
    since = seen if set(words.texts) <= set(told.texts) else 0
    authors, gone = [Author(*each) for each in said.authors], Forgotten()
    repeating = find_contexts_repeating(connection, authors, after=sure_up_to(connection, since))
    for other in sorted(repeating - {context_id}):
        gone += _erase(connection, _find_erasure(connection, other, said), now)
    return gone + _erase_carried(connection, since, words, now)[0]


def _find_erasure(connection: Connection, context_id: int, said: ForgottenWords, here: Here = NOWHERE) -> Erasure:
    """Find what is deleted with a person's messages, by looking through the whole conversation."""
    quotes = find_quotes(connection, context_id, said)
    own = said.message_ids if context_id in said.positions else ()
    seen = turn_queries.find_seen(connection, context_id, own, quotes.held)
    return Erasure(context_id, own, quotes.answers, quotes.held, here.turn_in(context_id), seen)


def _erase(connection: Connection, erasure: Erasure, now: datetime) -> Forgotten:
    """Take what was found out of a conversation that stays; return what was deleted."""
    held = erasure.held
    if not erasure.message_ids and not held:
        return Forgotten()
    right_queries.drop_exports(connection, erasure.context_id, now)
    known = queries.count_facts_from(connection, held)
    gone = queries.erase_messages(connection, erasure, now)
    queue_facts(connection, drop_unsaid(connection, held), now)
    return gone + Forgotten(facts=known - queries.count_facts_from(connection, held))


def _erase_alone(connection: Connection, context_id: int, here: Here, now: datetime) -> Forgotten:
    """Erase a conversation in which no other person wrote; return what was deleted."""
    right_queries.drop_exports(connection, context_id, now)
    account_queries.forget_chat_notices(connection, context_id)
    account_queries.note_forgotten(connection, context_id, now)
    return queries.delete_chat(connection, context_id, but_turn=here.turn_in(context_id), now=now)
