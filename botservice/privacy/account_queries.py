"""Every statement that forgets accounts, and what still names a person: keys of chats and events, notices, personas."""

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Text, cast, delete, exists, false, func, not_, or_, select, update

from botservice.core.messages import Author
from botservice.core.personas import PERSONA, TITLE, Persona
from botservice.people.fact_queries import facts_of
from botservice.people.identities import Identity
from botservice.people.names import chat_name, person_name
from botservice.people.queries import find_identity, identities_of
from botservice.people.usage_queries import HAND_OVER_RATE, forget_usage
from botservice.privacy.forgotten_counts import Forgotten
from botservice.privacy.queries import contexts_of
from botservice.privacy.record_queries import queue_texts
from botservice.privacy.rights import KEPT
from botservice.storage.blobs import find_holding, loosen_all_files
from botservice.storage.database import Connection
from botservice.storage.message_references import find_contexts_repeating
from botservice.storage.statements import chunks, is_by
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conditions import CONTEXT_HAS_METADATA, CONTEXT_IS_FORGOTTEN, TURN_IS_NOT_DONE
from botservice.storage.tables.conversations import blobs, contexts, deliveries, events, messages, reminders, turns
from botservice.storage.tables.people import (
    access_codes,
    access_refusals,
    budget_notices,
    budget_rates,
    exports,
    persons,
)
from botservice.storage.tables.services import feedback
from botservice.storage.tables.waiting import approvals

_SHORTEST_NAME: Final = 3  # letters of what is looked for in arguments

# Accounts


def accounts_of(connection: Connection, person: Author) -> list[Author]:
    """Return all accounts of a person, or the one that is named if none is stored."""
    identity = find_identity(connection, person)
    if identity is None:
        return [person]
    return [each.author for each in identities_of(connection, identity.person_id)]


def contexts_with(connection: Connection, accounts: Sequence[Author], *, but: int | None = None) -> list[int]:
    """Return the conversations in which some accounts were seen, or are repeated; but one is not looked at."""
    found = find_contexts_repeating(connection, accounts).union(contexts_of(connection, accounts))
    for account in accounts:
        identity = find_identity(connection, account)
        if identity is not None:  # who gave commands alone has said nothing, and yet has a chat
            seen = select(contexts.c.id).where(contexts.c.only_identity_id == identity.id)
            found.update(connection.execute(seen).scalars())
    return sorted(found - {but})


def forget_whom(
    connection: Connection, accounts: Sequence[Author], known: Identity | None, but: int | None, now: datetime
) -> tuple[list[int], Forgotten]:
    """Forget a person's accounts, unless they were seen since: then return where."""
    left = contexts_with(connection, accounts, but=but)
    if left:
        return left, Forgotten()
    person_id = None if known is None else known.person_id
    facts = [] if person_id is None else facts_of(connection, person_id)
    _forget_accounts(connection, accounts, person_id, now)
    return [], Forgotten(facts=len(facts))


def _forget_accounts(connection: Connection, accounts: Sequence[Author], person_id: int | None, now: datetime) -> None:
    """Forget accounts and what is kept under their names, but not their roles, which are the owner's."""
    _forget_approvals(connection, accounts)
    for account in accounts:
        name = person_name(account)
        forget_usage(connection, [name], now)
        connection.execute(delete(access_codes).where(access_codes.c.person == name))
        connection.execute(
            delete(access_refusals).where(access_refusals.c.subject == name, access_refusals.c.kind.not_in(KEPT))
        )
        for scope in ("person", HAND_OVER_RATE):
            forget_notices(connection, scope, name)
        _forget_personas(connection, name, now)
        is_own = (feedback.c.platform == account.platform) & (feedback.c.person_id == account.id)
        connection.execute(delete(feedback).where(is_own))
        for table in metadata.sorted_tables:
            if table is not messages and {"author_platform", "author_id", "context_id"} <= set(table.c.keys()):
                gone = delete(table).where(is_by(table, account)).returning(table.c.context_id)
                for context_id in set(connection.execute(gone).scalars()):
                    loosen_all_files(connection, context_id)
    if person_id is not None:
        theirs = [each.id for each in identities_of(connection, person_id)]
        seen = update(contexts).where(contexts.c.only_identity_id.in_(theirs))
        connection.execute(seen.values(only_identity_id=None))
        connection.execute(delete(persons).where(persons.c.id == person_id))


def are_in_ledger(connection: Connection, accounts: Sequence[Author]) -> bool:
    """Return whether the ledger of approvals names any of some accounts."""
    names = [name for name in map(person_name, accounts) if name]
    named = or_(*(column.in_(names) for column in (approvals.c.asker, approvals.c.decider, approvals.c.chat)))
    return connection.execute(select(approvals.c.call).where(named).limit(1)).first() is not None


def _forget_approvals(connection: Connection, accounts: Sequence[Author]) -> None:
    """Replace a person in the ledger of approvals by a pseudonym: one for all of their accounts.

    It is random, so that nobody can find the person by trying accounts. In arguments, their accounts and names go.
    """
    pseudonym = f"forgotten:{secrets.token_hex(6)}"
    found = [find_identity(connection, account) for account in accounts]
    called = {each.name for each in found if each is not None and each.name} | {each.name for each in accounts}
    numbers = {(each.id or "").rpartition(":")[2] for each in accounts}
    words = [each for each in called | numbers if each and len(each) >= _SHORTEST_NAME]
    for name in filter(None, map(person_name, accounts)):
        is_theirs = func.coalesce(approvals.c.asker, approvals.c.decider) == name
        private = update(approvals).where(is_theirs, ~approvals.c.is_shared)
        connection.execute(private.values(chat=pseudonym))
        for column in (approvals.c.asker, approvals.c.decider, approvals.c.chat):
            connection.execute(update(approvals).where(column == name).values({column.name: pseudonym}))
    for word in sorted(words, key=len, reverse=True):
        spelt = json.dumps(word)[1:-1]
        holding = select(approvals.c.call, approvals.c.arguments)
        holding = holding.where(approvals.c.arguments.contains(spelt, autoescape=True))
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        for row in connection.execute(holding).all():
            before = json.loads(row.arguments)
            left = _renamed(before, whole, pseudonym)
            if left != before:
                change = update(approvals).where(approvals.c.call == row.call)
                connection.execute(change.values(arguments=json.dumps(left), digest=None))


def _renamed(value: Any, whole: re.Pattern[str], pseudonym: str) -> Any:
    """Return a JSON value with a pseudonym in the place of a name."""
    if isinstance(value, dict):
        return {whole.sub(pseudonym, key): _renamed(each, whole, pseudonym) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, whole, pseudonym) for each in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number and not isinstance(value, str):
        return value
    left = whole.sub(pseudonym, str(value))
    return value if left == str(value) else left


def personas_of(connection: Connection, name: str) -> list[str]:
    """Return the personas that a person, named such as "telegram:42", has set in all chats."""
    found = (Persona.of(row.metadata) for row in _given(connection, name))
    return [persona.text for persona in found if persona is not None]


def titles_of(connection: Connection, identity_id: int) -> list[str]:
    """Return the titles of the chats that are a person's alone."""
    query = select(contexts.c.metadata).where(CONTEXT_HAS_METADATA, contexts.c.only_identity_id == identity_id)
    given = (metadata.get(TITLE) for metadata in connection.execute(query.order_by(contexts.c.id)).scalars())
    return [title for title in given if isinstance(title, str)]


def _forget_personas(connection: Connection, name: str, now: datetime) -> None:
    """Delete the personas that a person, named such as "telegram:42", has set, in every chat and its records."""
    for row in list(_given(connection, name)):
        left = {key: value for key, value in row.metadata.items() if key != PERSONA}
        connection.execute(update(contexts).where(contexts.c.id == row.id).values(metadata=left))
        words = row.metadata[PERSONA]["text"]
        queue_texts(connection, [row.id], [words], now)
        _erase_from_system_prompts(connection, row.id, words)


def _erase_from_system_prompts(connection: Connection, context_id: int, words: str) -> None:
    in_context = turns.c.context_id == context_id
    kept = select(turns.c.system_prompt).where(in_context, turns.c.system_prompt.is_not(None)).distinct()
    for chunk in chunks(list(connection.execute(kept).scalars())):
        gone = find_holding(connection, context_id, chunk, [words])
        cleared = update(turns).where(in_context, turns.c.system_prompt.in_(gone)).values(system_prompt=None)
        connection.execute(cleared)
        connection.execute(delete(blobs).where(blobs.c.context_id == context_id, blobs.c.sha256.in_(gone)))


def _given(connection: Connection, name: str) -> Iterator[Any]:
    if not name:
        return
    kept = cast(contexts.c.metadata, Text)
    query = select(contexts.c.id, contexts.c.metadata).where(
        CONTEXT_HAS_METADATA, kept.contains(f'"{PERSONA}"', autoescape=True), kept.contains(name, autoescape=True)
    )
    for row in connection.execute(query).all():
        persona = Persona.of(row.metadata)
        if persona is not None and persona.by == name:
            yield row


# What names a person

# So long a platform may deliver again what it has delivered: only the names of events tell that it is nothing new.
DELIVERED_AGAIN: Final = timedelta(hours=2)

_IS_USED = or_(*(exists().where(table.c.context_id == contexts.c.id) for table in (messages, reminders, exports)))
_IS_BUSY = or_(
    exists().where(turns.c.context_id == contexts.c.id, TURN_IS_NOT_DONE),
    exists().where(deliveries.c.context_id == contexts.c.id, deliveries.c.finished_at.is_(None)),
)


def note_forgotten(connection: Connection, context_id: int, now: datetime) -> None:
    """Mark a conversation for deletion as soon as nothing is pending there any more."""
    connection.execute(update(contexts).where(contexts.c.id == context_id).values(forgotten_at=now))


def release_forgotten(connection: Connection, now: datetime) -> int:
    """Delete the conversations of forgotten people in which nothing is pending any more, and return how many.

    Who came back keeps theirs.
    """
    connection.execute(update(contexts).where(CONTEXT_IS_FORGOTTEN, _IS_USED).values(forgotten_at=None))
    is_old = contexts.c.forgotten_at < now - DELIVERED_AGAIN
    gone = delete(contexts).where(CONTEXT_IS_FORGOTTEN, is_old, not_(_IS_USED), not_(_IS_BUSY))
    return connection.execute(gone).rowcount


def find_events_naming(connection: Connection, context_id: int, accounts: Sequence[Author]) -> Sequence[int]:
    """Return the events whose keys name people: a platform names by them who pressed a button."""
    theirs = select(events.c.id).where(events.c.context_id == context_id, _names_any(accounts))
    return connection.execute(theirs).scalars().all()


def _names_any(accounts: Sequence[Author]) -> ColumnElement[bool]:
    numbers = [(account.id or "").rpartition(":")[2] for account in accounts]  # Slack names the team before it
    button = events.c.key.contains(":button:", autoescape=True)
    pressed = [events.c.key.contains(f":pressed:{number}:", autoescape=True) for number in numbers]
    ends = [events.c.key.endswith(f":{number}", autoescape=True) for number in numbers]
    return or_(false(), *pressed, *(button & each for each in ends))


def rename_events(connection: Connection, event_ids: Sequence[int]) -> None:
    """Give events keys that name nobody."""
    change = update(events).where(events.c.id.in_(event_ids))
    connection.execute(change.values(key="forgotten:" + cast(events.c.id, Text)))


def forget_notices(connection: Connection, scope: str, subject: str) -> None:
    """Delete the budget notices and the message rates of a person or chat."""
    told = budget_notices.c.notice.startswith(f"{scope} {subject} ", autoescape=True)
    connection.execute(delete(budget_notices).where(told))
    connection.execute(delete(budget_rates).where(budget_rates.c.scope == scope, budget_rates.c.subject == subject))


def forget_chat_notices(connection: Connection, context_id: int) -> None:
    """Delete the budget notices of a private chat."""
    query = select(contexts.c.context_keys).where(contexts.c.id == context_id)
    keys: Mapping[str, str] | None = connection.execute(query).scalar_one_or_none()
    if keys:
        forget_notices(connection, "chat", chat_name(keys))
