"""Every statement of the Telegram transport: its own table, and what it looks up in those of conversations."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, exists, select

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context, rename_context, write_feedback
from botservice.core.messages import Author, Button
from botservice.knowledge.queries import move_reader
from botservice.people.access_queries import move_chat
from botservice.people.names import chat_name
from botservice.storage.statements import upserting
from botservice.storage.tables.conditions import (
    CALL_IS_OPEN,
    DELIVERY_HAS_BUTTONS,
    DELIVERY_IS_ATTEMPTED,
    DELIVERY_IS_OWED,
)
from botservice.storage.tables.conversations import deliveries, messages, refused_forms
from botservice.storage.tables.services import telegram_menus
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.buttons import read_buttons
from botservice.turns.delivery_queries import find_offered
from botservice.turns.listening_queries import move_decisions
from transports.telegram.inbound_events import asker_of

_PLATFORM: Final = "telegram"
_DIGEST = select(telegram_menus.c.digest).where(telegram_menus.c.bot_id == bindparam("bot"))
_insert_menus = upserting(telegram_menus, "bot_id")
_IS_MESSAGE = (deliveries.c.external_id == bindparam("message")) & (deliveries.c.transport == _PLATFORM)
_WAS_ASKED = select(
    exists()
    .where(pending_calls.c.context_id == bindparam("context"), pending_calls.c.delivery_id == deliveries.c.id)
    .where(_IS_MESSAGE)
)
_OPEN_QUESTIONS = select(deliveries.c.payload, deliveries.c.buttons).where(
    deliveries.c.id.in_(
        select(pending_calls.c.delivery_id).where(CALL_IS_OPEN, pending_calls.c.context_id == bindparam("context"))
    ),
    deliveries.c.transport == _PLATFORM,
    DELIVERY_HAS_BUTTONS,
)
_ON_ITS_WAY = (
    select(deliveries.c.id)
    .where(DELIVERY_IS_OWED, deliveries.c.context_id == bindparam("context"), DELIVERY_IS_ATTEMPTED)
    .limit(1)
)
_BUTTONS_ON_THEIR_WAY = _ON_ITS_WAY.where(DELIVERY_HAS_BUTTONS)
_TURN_OF_ANSWER = select(deliveries.c.turn_id).where(
    deliveries.c.context_id == bindparam("context"),
    _IS_MESSAGE,
    exists().where(messages.c.answers_turn_id == deliveries.c.turn_id),
    ~exists().where(pending_calls.c.delivery_id == deliveries.c.id),
)


def find_menus_digest(connection: Connection, bot_id: int) -> str | None:
    """Return the digest of the menus that Telegram was told, or None if it was told none."""
    return connection.execute(_DIGEST, {"bot": bot_id}).scalar_one_or_none()


def store_menus_digest(connection: Connection, bot_id: int, digest: str, now: datetime) -> None:
    """Store which menus Telegram was told."""
    connection.execute(_insert_menus(connection), {"bot_id": bot_id, "digest": digest, "set_at": now})


def move_group(connection: Connection, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Give a group's access, documents and conversation the keys of its supergroup.

    Returns:
        Whether the conversation has them.
    """
    move_chat(connection, chat_name(old), chat_name(new))
    move_decisions(connection, chat_name(old), chat_name(new))
    move_reader(connection, chat_name(old), chat_name(new))
    return rename_context(connection, ContextKeys.of(old), ContextKeys.of(new))


# Which forms of messages a conversation has refused
_REFUSED_FORMS: Final = select(refused_forms.c.form).where(refused_forms.c.context_id == bindparam("context"))


def refused_in(connection: Connection, context_keys: Mapping[str, str]) -> set[str]:
    """Return the forms of messages that a conversation has refused."""
    context_id = find_context(connection, ContextKeys.of(context_keys))
    return set() if context_id is None else set(connection.execute(_REFUSED_FORMS, {"context": context_id}).scalars())


def note_refused(connection: Connection, context_keys: Mapping[str, str], form: str, now: datetime) -> bool:
    """Take note that a conversation refuses a form; return whether that was news."""
    context_id = find_context(connection, ContextKeys.of(context_keys))
    if context_id is None or form in connection.execute(_REFUSED_FORMS, {"context": context_id}).scalars():
        return False
    connection.execute(refused_forms.insert().values(context_id=context_id, form=form, refused_at=now))
    return True


@dataclass(frozen=True, slots=True)
class FoundButtons:
    """What is stored of the buttons under a message.

    Attributes:
        askers: The ids of those whom the message answers.
        was_question: Whether it asked for an approval that is no longer awaited.
        is_coming: Whether some buttons are on their way at this moment.
        is_copy: Whether the message asks what another one does, too.
    """

    buttons: Sequence[Button] = ()
    askers: frozenset[int] = frozenset()
    was_question: bool = False
    is_copy: bool = False
    is_coming: bool = False


def find_keyboard(connection: Connection, keys: Mapping[str, str], message_id: str, said: str | None) -> FoundButtons:
    """Return what is stored of a message's buttons."""
    context_id = find_context(connection, ContextKeys.of(keys))
    if context_id is None:
        return FoundButtons()
    # Asked first: buttons whose message becomes known between the two would be neither.
    is_coming = connection.execute(_BUTTONS_ON_THEIR_WAY, {"context": context_id}).first() is not None
    offered = find_offered(connection, context_id, "telegram", message_id)
    if offered is None:
        copied = _list_copied(connection, context_id, said)
        sought = {"context": context_id, "message": message_id}
        was_question = bool(connection.execute(_WAS_ASKED, sought).scalar_one())
        is_copy = bool(copied) and not is_coming
        return FoundButtons(copied, was_question=was_question, is_copy=is_copy, is_coming=is_coming)
    askers = [asker_of(json.loads(raw)) for raw in offered.asked]
    return FoundButtons(offered.buttons, frozenset(each for each in askers if each is not None))


def _list_copied(connection: Connection, context_id: int, text: str | None) -> Sequence[Button]:
    """Return the buttons of the question that waits in a context and says word for word what a message says.

    It stands in a chat twice if the answer of Telegram to the first was lost: both may be answered.
    """
    for row in connection.execute(_OPEN_QUESTIONS, {"context": context_id}) if text else ():
        if isinstance(row.payload, Mapping) and str(row.payload.get("text")).strip() == str(text).strip():
            return read_buttons(row.buttons)
    return ()


def find_answered_turn(connection: Connection, keys: ContextKeys, message_id: int) -> tuple[int | None, bool]:
    """Return the turn that a message answers, and whether any message is on its way there at this moment.

    That is asked first: what has arrived between the two questions is found by the second.
    """
    context_id = find_context(connection, keys)
    if context_id is None:
        return None, False
    is_coming = connection.execute(_ON_ITS_WAY, {"context": context_id}).first() is not None
    sought = {"context": context_id, "message": str(message_id)}
    return connection.execute(_TURN_OF_ANSWER, sought).scalars().first(), is_coming


def store_reaction(
    connection: Connection, message: tuple[ContextKeys, int, int], author: Author, verdict: str | None, now: datetime
) -> bool:
    """Store a person's verdict on the answer that a message is, if it is still there; return whether it is stored.

    Args:
        message: Its conversation, its id and the turn that it answers.
    """
    keys, message_id, turn_id = message
    is_there = find_answered_turn(connection, keys, message_id)[0] == turn_id
    return is_there and write_feedback(connection, turn_id, author, verdict, now)
