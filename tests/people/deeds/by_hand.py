"""Rows of a person that no wire would leave in so short a time; and what the owner decided about them."""

from datetime import timedelta

from people.planted import ALICE, MARK, Town
from sqlalchemy import Connection, insert, select, update

from botservice.core.messages import Author
from botservice.people.queries import find_identity, offer_browser, open_browser
from botservice.people.usage_queries import HAND_OVER_RATE
from botservice.storage.tables.conversations import (
    contexts,
    events,
    messages,
    steps,
    tool_calls,
    turns,
    vectors,
    word_blocks,
)
from botservice.storage.tables.knowledge import notes, observed, observer_reservations, refused_notes
from botservice.storage.tables.people import (
    access_codes,
    access_invitations,
    access_refusals,
    access_roles,
    budget_notices,
    budget_rates,
    budget_reservations,
    identities,
    person_roles,
    refused_facts,
    tool_sign_in_states,
    tool_sign_ins,
)
from botservice.storage.tables.waiting import pending_calls, tool_grants

NAME = f"telegram:{ALICE.id}"
GROUP_NAME = "telegram:-100200300"


async def plant(town: Town) -> None:
    now = town.storage.now()
    await town.storage.write(lambda connection: _plant(connection, now, now + timedelta(hours=1)))


def _plant(connection, now, later) -> None:
    row = connection.execute(_hers("telegram").limit(1)).one()
    _of_her_chat(connection, row, now)
    _observed(connection, now, later)
    one = {"turn_id": row.turn_id, "person": NAME}
    connection.execute(insert(budget_reservations).values(**one, chat=NAME, tokens=1, cost=1, expires_at=later))
    code = {"code": "ABCD-EFGH", "name": MARK, "welcome": [{"text": MARK}], "expires_at": later}
    connection.execute(insert(access_codes).values(**one, **code))
    connection.execute(insert(access_refusals).values(kind="person", subject=NAME, told_at=now))
    for scope in ("person", HAND_OVER_RATE):
        connection.execute(insert(budget_rates).values(scope=scope, subject=NAME, minute="1", messages=1))
    connection.execute(insert(budget_notices).values(notice=f"person {NAME} day", told_at=now))
    role = {"kind": "person", "subject": NAME, "role": "member", "granted_by": NAME, "granted_at": now}
    connection.execute(insert(access_roles).values(role))
    connection.execute(insert(access_invitations).values(chat=GROUP_NAME, person=NAME, invited_at=now))
    asker = find_identity(connection, Author("telegram", str(ALICE.id)))
    offer_browser(connection, asker, "a link", now)
    open_browser(connection, "a link", "p.a cookie", now)
    offer_browser(connection, asker, "another link", now)
    who = select(identities.c.id).where(identities.c.platform == "telegram", identities.c.platform_id == str(ALICE.id))
    connection.execute(insert(person_roles).values(identity_id=asker.id, role=MARK, granted_at=now))
    signed_in = {"identity_id": connection.execute(who).scalar_one(), "server": "wiki", "data": MARK.encode()}
    connection.execute(insert(tool_sign_ins).values(**signed_in, created_at=now, updated_at=now))
    connection.execute(insert(tool_sign_in_states).values(**signed_in, digest="0", expires_at=later))


def _of_her_chat(connection, row, now) -> None:
    """Plant what a failed turn leaves, what is open when a process ends, and what searching makes of messages."""
    connection.execute(update(turns).where(turns.c.id == row.turn_id).values(error=f"ValueError: {MARK}"))
    step = select(steps.c.id).where(steps.c.turn_id == row.turn_id).limit(1)
    call = {"context_id": row.context_id, "call_index": 0, "status": "done", "result": MARK}
    connection.execute(insert(tool_calls).values(step_id=connection.execute(step).scalar_one(), **call))
    hers = {"context_id": row.context_id, "author_platform": "telegram", "author_id": str(ALICE.id), "created_at": now}
    waited = {"turn_id": row.turn_id, "step_id": 0, "call_index": 0, "kind": "approval", "status": "denied"}
    names = {"call_id": MARK, "tool": MARK, "name": MARK, "author_name": MARK, "transport": "telegram"}
    connection.execute(insert(pending_calls).values(**hers, **waited, **names, is_open=False, expires_at=now))
    connection.execute(insert(tool_grants).values(**hers, tool=MARK))
    for each in connection.execute(_hers("telegram")).all():
        vector = {"context_id": each.context_id, "message_id": each.id, "model_key": "x", "data": MARK.encode()}
        connection.execute(insert(vectors).values(vector))
    area = {"context_id": row.context_id, "first_position": 1, "last_position": 9}
    connection.execute(insert(word_blocks).values(**area, block=0, data=MARK.encode()))


def _observed(connection, now, later) -> None:
    """Plant notes of all chats in which she wrote, what was refused there, and a reading that is under way."""
    number = str(ALICE.id)
    wrote = (messages.c.author_platform == "telegram") & (messages.c.author_id == number)
    hers = (
        select(contexts.c.id, contexts.c.last_position, contexts.c.is_shared)
        .join(messages, messages.c.context_id == contexts.c.id)
        .where(wrote)
        .distinct()
    )
    for chat in connection.execute(hers).all():
        connection.execute(insert(observed).values(context_id=chat.id, read_to=chat.last_position, last_number=1))
        note = {"number": 1, "text": f"{MARK} is noted", "at": now, "message_ids": [], "span": 1, "tokens": 1}
        place = {"context_id": chat.id, "first_position": 1, "last_position": chat.last_position}
        connection.execute(insert(notes).values(**note, **place))
        if not chat.is_shared:
            reserved = {"person": NAME, "chat": NAME, "tokens": 1, "cost": 1, "expires_at": later}
            connection.execute(insert(observer_reservations).values(context_id=chat.id, **reserved))
            connection.execute(insert(refused_notes).values(context_id=chat.id, digest="0"))
    known = select(identities.c.id).where(identities.c.platform == "telegram", identities.c.platform_id == number)
    refused = {"identity_id": connection.execute(known).scalar_one(), "digest": "0", "topic_digest": "0"}
    connection.execute(insert(refused_facts).values(**refused, refused_at=now))


def _hers(platform):
    """Return the query of the messages that a person wrote and that were answered."""
    has_steps = select(steps.c.id).where(steps.c.turn_id == events.c.turn_id).exists()
    return (
        select(messages.c.id, messages.c.context_id, events.c.turn_id)
        .join(events, events.c.id == messages.c.event_id)
        .where(messages.c.author_platform == platform, messages.c.author_id == str(ALICE.id), has_steps)
        .order_by(messages.c.id)
    )


def take_back(connection: Connection) -> None:
    """Have the owner take back what they decided."""
    connection.execute(access_roles.delete())
    connection.execute(access_invitations.delete())
