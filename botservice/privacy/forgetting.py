"""Forgetting: a message, a chat, or a person with all that is theirs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection, bindparam, delete, select

from botservice.core.errors import StorageError
from botservice.core.messages import Author
from botservice.people.fact_queries import drop_unsaid, facts_from
from botservice.people.queries import find_identity
from botservice.privacy.accounts import accounts_of, contexts_with, forget_whom
from botservice.privacy.affected_turns import find_left
from botservice.privacy.clearing_long_chats import clear_work, empty_chat, forget_work, last_said
from botservice.privacy.deletion_counts import Forgotten, count_facts, take_stock
from botservice.privacy.deletion_survey import Survey, is_current, survey_context
from botservice.privacy.erasing import erase_chat, erase_messages
from botservice.privacy.export_records import drop_exports
from botservice.privacy.late_messages import note_people, note_words
from botservice.privacy.names_left import forget_chat_notices, note_forgotten, rename_earlier_events, rename_events
from botservice.privacy.own_messages import is_alone, own_message_ids
from botservice.privacy.records import erase_facts, forget_facts
from botservice.privacy.repeated_words import (
    CarriedWords,
    ForgottenWords,
    find_contexts_carrying,
    newest_reference,
    read_words,
    telling_words,
    telling_words_of,
    without_author,
)
from botservice.storage.database import Storage
from botservice.storage.ranges import sure_up_to
from botservice.storage.references import find_contexts_repeating
from botservice.storage.tables.conversations import contexts, turns

T = TypeVar("T")

_MOST_ROUNDS: Final = 5
_MOST_LOOKS: Final = 3
# In a shared conversation, the first message of another person may be waiting.
_OTHERS_WAIT: Final = (
    select(turns.c.id)
    .join(contexts, contexts.c.id == turns.c.context_id)
    .where(contexts.c.id == bindparam("context"), contexts.c.is_shared, turns.c.status == "queued")
    .limit(1)
)
_FOR_UPDATE: Final = select(contexts.c.id).with_for_update()


@dataclass(frozen=True, slots=True)
class Here:
    """The conversation in which a person asks to be forgotten, and the turn in which they do: these stay, empty."""

    context_id: int
    turn_id: int


@dataclass(frozen=True, slots=True)
class _OwnWords:
    """What a person wrote in a conversation."""

    context_id: int
    message_ids: Sequence[int]
    is_alone: bool


async def forget_person(storage: Storage, person: Author, *, here: Here | None = None) -> Forgotten:
    """Delete all that is a person's, on every platform that they have linked.

    Whole conversations go where nobody else wrote. In the others their messages go, the answers to them, what others
    quote, forward or share of them, and what the agent noted since the first of them; what others said stays. What is
    known of them goes, and who they are: that goes last, so that a process that is cut off finds what is left when it
    is asked again.

    Raises:
        StorageError: nothing is kept of this person; or they went on being heard, and it has to be asked again.
    """
    accounts = await storage.read(lambda connection: accounts_of(connection, person))
    context_ids = await storage.read(lambda connection: contexts_with(connection, accounts), is_long=True)
    known = await storage.read(lambda connection: find_identity(connection, person))
    if not context_ids and known is None:
        raise StorageError(f"there is no message of {person.platform}:{person.id}, nor anything else")
    but, but_turn = (None, None) if here is None else (here.context_id, here.turn_id)
    await storage.write(lambda connection: note_people(connection, accounts, but_turn, storage.now()))
    told = CarriedWords()
    gone = await _forget_told(storage, context_ids, accounts, told)
    for _ in range(_MOST_ROUNDS):
        for context_id in context_ids:
            gone += await _forget_told(storage, [context_id], accounts, told)
            gone += await _forget_in(storage, context_id, accounts, told, here)
        # What they wrote in the meantime is theirs as well.
        context_ids, last = await storage.write(
            lambda connection: forget_whom(connection, accounts, known, but, storage.now())
        )
        gone += last
        if not context_ids:
            _, carried_since = await _forget_carried(storage, told.words, after=told.seen)
            await storage.scrub()
            return gone + carried_since
    raise StorageError("whoever is to be forgotten was heard again and again meanwhile: ask again, to forget the rest")


async def forget_chat(storage: Storage, context_id: int, *, here: Here | None = None) -> Forgotten:
    """Delete a conversation with everything that belongs to it; where it is asked for there, it goes on, empty.

    What is known from it goes first, from everywhere: that is found by it alone.
    """

    def forget(connection: Connection) -> Forgotten:
        _lock(connection, context_id)
        held, now = take_stock(connection, context_id), storage.now()
        drop_exports(connection, context_id, now)
        known = facts_from(connection, context_id)
        whole = _erase_whole(connection, context_id, here, now)
        erase_facts(connection, known)
        return replace(held, contexts=whole)

    but_turn = None if here is None else here.turn_id
    gone = await forget_facts(storage, partial(facts_from, context_id=context_id))
    up_to = await storage.read(lambda connection: last_said(connection, context_id))
    gone += await empty_chat(storage, context_id, up_to, but_turn=but_turn)
    gone += await storage.write(forget)
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

    def find(connection: Connection) -> ForgottenWords:
        ids = message_ids if author is None else own_message_ids(connection, context_id, author)
        return read_words(connection, context_id, ids, () if author is None else [author])  # type: ignore[arg-type]  # one or the other

    def survey(connection: Connection) -> Survey:
        return survey_context(connection, context_id, find(connection))

    def forget(connection: Connection, found: Survey) -> Forgotten | None:
        _lock(connection, context_id)
        said, now = find(connection), storage.now()
        if not is_current(connection, found, said.message_ids):
            return None
        known = facts_from(connection, context_id, said.message_ids)
        gone = _erase_elsewhere(connection, context_id, replace(said, of=()), told, seen, now)
        gone += _erase_found(connection, found, here, now)
        erase_facts(connection, known)
        note_words(connection, context_id, author or said.external_ids, None if here is None else here.turn_id, now)
        return gone

    told, said = await storage.read(lambda connection: _tell(connection, context_id, find(connection)), is_long=True)
    seen, gone = await _forget_carried(storage, told)
    gone += await _forget_repeated(storage, context_id, said)
    gone += await forget_facts(storage, lambda connection: facts_from(connection, context_id, said.message_ids))
    found = await _clear(storage, await storage.read(survey, is_long=True), here)
    gone += await _survey_and_forget(storage, context_id, survey, forget, found)
    await storage.scrub()
    return gone


def _tell(connection: Connection, context_id: int, said: ForgottenWords) -> tuple[ForgottenWords, ForgottenWords]:
    """Return the words by which others may carry elsewhere what a person said, and what they said."""
    said = replace(said, of=())
    return without_author(telling_words(connection, context_id, said)), said


async def _forget_told(
    storage: Storage, context_ids: Sequence[int], accounts: Sequence[Author], told: CarriedWords
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
        since = sure_up_to(connection, after)
        return newest_reference(connection), find_contexts_carrying(connection, said, after=since)

    seen, found = await storage.read(find, is_long=True)
    gone = Forgotten()
    for context_id in found:
        gone += await _forget_said(storage, context_id, said)
    return seen, gone


async def _forget_repeated(storage: Storage, context_id: int, said: ForgottenWords) -> Forgotten:
    """Delete what others repeat of a person in other chats than the one where it was said."""
    authors = [Author(*each) for each in said.authors]
    found = await storage.read(lambda connection: find_contexts_repeating(connection, authors), is_long=True)
    gone = Forgotten()
    for other in sorted(found - {context_id}):
        gone += await _forget_said(storage, other, said)
    return gone


async def _forget_said(storage: Storage, context_id: int, said: ForgottenWords) -> Forgotten:
    """Delete what repeats a person in one chat."""

    def survey(connection: Connection) -> Survey:
        return survey_context(connection, context_id, said)

    def forget(connection: Connection, found: Survey) -> Forgotten | None:
        _lock(connection, context_id)
        is_known = is_current(connection, found, ())
        return _erase_found(connection, found, None, storage.now()) if is_known else None

    found = await _clear(storage, await storage.read(survey, is_long=True), None)
    return await _survey_and_forget(storage, context_id, survey, forget, found)


async def _survey_and_forget(
    storage: Storage,
    context_id: int,
    survey: Callable[[Connection], T],
    forget: Callable[[Connection, T], Forgotten | None],
    found: T,
) -> Forgotten:
    """Return what was forgotten of what was found; it is looked anew where something came in between.

    Where something comes again and again, all others wait until it is done.
    """
    for _ in range(_MOST_LOOKS):
        gone = await storage.write(lambda connection, found=found: forget(connection, found))  # type: ignore[misc]  # bound at once
        if gone is not None:
            return gone
        found = await storage.read(survey, is_long=True)

    def at_once(connection: Connection) -> Forgotten:
        _lock(connection, context_id)
        gone = None
        while gone is None:
            gone = forget(connection, survey(connection))
        return gone

    return await storage.write(at_once)


async def _forget_in(
    storage: Storage, context_id: int, accounts: Sequence[Author], told: CarriedWords, here: Here | None
) -> Forgotten:
    """Delete what is some accounts' of one conversation, or all of it where nobody else wrote.

    What was carried elsewhere meanwhile goes with the words by which it is known, or before.
    """
    renamed = await rename_earlier_events(storage, context_id, accounts)
    beside = partial(_erase_carried, words=told.words, now=storage.now())

    def survey(connection: Connection) -> Survey | None:
        written = _find_written(connection, context_id, accounts)
        if written.is_alone:
            return None
        return survey_context(connection, context_id, read_words(connection, context_id, written.message_ids, accounts))

    def forget(connection: Connection, found: Survey | None) -> Forgotten | None:
        _lock(connection, context_id)
        rename_events(connection, context_id, accounts, after=renamed)
        written, now = _find_written(connection, context_id, accounts), storage.now()
        if not written.is_alone and (found is None or not is_current(connection, found, written.message_ids)):
            return None
        elsewhere, _ = beside(connection, told.seen)
        if found is None or written.is_alone:
            return elsewhere + _erase_alone(connection, context_id, here, now)
        return elsewhere + _erase_found(connection, found, here, now)

    found, up_to = await storage.read(lambda c: (survey(c), last_said(c, context_id)), is_long=True)
    gone = Forgotten()
    if found is None:
        but_turn = None if here is None else here.turn_id
        gone = await empty_chat(storage, context_id, up_to, but_turn=but_turn, beside=beside, seen=told.seen)
    else:
        found = await _clear(storage, found, here)
    return gone + await _survey_and_forget(storage, context_id, survey, forget, found)


def _lock(connection: Connection, context_id: int) -> None:
    """Have nothing more be said in a conversation until all of it is done: on SQLite, others do not write meanwhile."""
    connection.execute(_FOR_UPDATE.where(contexts.c.id == context_id))


async def _clear(storage: Storage, found: Survey, here: Here | None) -> Survey:
    """Clear what is over of the turns that are to forget, and return what is left: that is done in one transaction."""
    seen, but_turn = found.erasure.seen, None if here is None else here.turn_id
    if not found.finds_something or seen is None or seen.first is None:
        return found
    context_id, bite = found.erasure.context_id, partial(forget_work, now=storage.now())
    await clear_work(storage, context_id, seen.first, bite, but_turn=but_turn)
    left = await storage.read(lambda connection: find_left(connection, context_id, seen), is_long=True)
    return replace(found, erasure=replace(found.erasure, seen=left))


def _erase_carried(connection: Connection, after: int, words: ForgottenWords, now: datetime) -> tuple[Forgotten, int]:
    """Delete what others carried elsewhere behind a row of what is held of others, and return the newest."""
    newest, gone = newest_reference(connection), Forgotten()
    for other in find_contexts_carrying(connection, words, after=after):
        gone += _erase_found(connection, survey_context(connection, other, words), None, now)
    return gone, newest


def _find_written(connection: Connection, context_id: int, accounts: Sequence[Author]) -> _OwnWords:
    ids = [number for each in accounts for number in own_message_ids(connection, context_id, each)]
    return _OwnWords(context_id, ids, is_alone=is_alone(connection, context_id, accounts))


def _erase_alone(connection: Connection, context_id: int, here: Here | None, now: datetime) -> Forgotten:
    """Erase a conversation in which nobody else wrote; return what was deleted."""
    held = take_stock(connection, context_id)
    drop_exports(connection, context_id, now)
    forget_chat_notices(connection, context_id)
    note_forgotten(connection, context_id, now)
    return replace(held, contexts=_erase_whole(connection, context_id, here, now))


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
        gone += _erase_found(connection, survey_context(connection, other, said), None, now)
    return gone + _erase_carried(connection, sure_up_to(connection, since), words, now)[0]


def _erase_found(connection: Connection, found: Survey, here: Here | None, now: datetime) -> Forgotten:
    """Take what a person said, and what repeats it, out of a conversation that stays; return what was deleted."""
    if not found.finds_something:
        return Forgotten()
    erasure, held = found.erasure, found.erasure.quotes.held
    drop_exports(connection, erasure.context_id, now)
    turn_id = here.turn_id if here is not None and here.context_id == erasure.context_id else None
    known = count_facts(connection, held)
    gone = erase_messages(connection, replace(erasure, but_turn=turn_id), now)
    erase_facts(connection, drop_unsaid(connection, held))
    return gone + Forgotten(facts=known - count_facts(connection, held))


def _erase_whole(connection: Connection, context_id: int, here: Here | None, now: datetime) -> int:
    """Erase a conversation, and return how many went whole: one, unless another process was faster."""
    if here is not None and here.context_id == context_id:
        erase_chat(connection, context_id, but_turn=here.turn_id, now=now)
        return 1
    if connection.execute(_OTHERS_WAIT, {"context": context_id}).first() is not None:
        erase_chat(connection, context_id, but_turn=None, now=now)
        return 1
    return connection.execute(delete(contexts).where(contexts.c.id == context_id)).rowcount
