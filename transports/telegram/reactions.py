"""Reactions of people at answers: a thumb up or down is what they think of it.

Telegram tells of them in private chats, and in groups where the bot is an administrator; it does not say in which
topic a message stands, so those in topics count for nothing. Nobody knows whose an anonymous one is.
Source: core.telegram.org/bots/api#messagereactionupdated.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from botservice.conversation.context_keys import ContextKeys
from botservice.core.messages import Author, InboundMessage
from botservice.storage.database import Storage
from botservice.turns.inbox import Inbox
from transports.common.connected_transport import read_when_known
from transports.common.json_fields import field, integer, items_of, string
from transports.telegram.queries import find_answered_turn, store_reaction

logger = logging.getLogger(__name__)

_THUMBS: Final = {"👍": "good", "👎": "bad"}


@dataclass(frozen=True, slots=True)
class TelegramReaction:
    """A person's verdict on a message; None takes back the one before."""

    chat_id: int
    message_id: int
    person_id: int
    verdict: str | None


def reaction_of(update: object) -> TelegramReaction | None:
    """Return the verdict on a message that an update brings, or None if it brings none."""
    changed = field(update, "message_reaction")
    chat_id, message_id = integer(changed, "chat", "id"), integer(changed, "message_id")
    person_id = integer(changed, "user", "id")
    before, after = (_verdict(items_of(changed, name)) for name in ("old_reaction", "new_reaction"))
    if chat_id is None or message_id is None or person_id is None or before == after:
        return None
    return TelegramReaction(chat_id, message_id, person_id, after)


async def keep_reaction(reaction: TelegramReaction, inbox: Inbox, storage: Storage) -> None:
    """Store a person's verdict on an answer, if they may use the bot there; on any other message nothing is kept."""
    keys, message_id = ContextKeys.of({"transport": "telegram", "chat_id": str(reaction.chat_id)}), reaction.message_id
    turn_id, _ = await read_when_known(
        storage,
        lambda connection: find_answered_turn(connection, keys, message_id),
        lambda found: found[0] is not None or not found[1],
    )
    author, now = Author("telegram", str(reaction.person_id)), storage.now()
    said = InboundMessage("", author, is_private=reaction.chat_id > 0)
    if turn_id is None or not (await inbox.access.judge(storage, said, keys.values, now)).is_admitted:
        return
    message = keys, message_id, turn_id
    is_stored = await storage.write(
        lambda connection: store_reaction(connection, message, author, reaction.verdict, now)
    )
    logger.info("telegram.feedback", extra={"is_stored": is_stored})


def _verdict(reactions: Sequence[object]) -> str | None:
    """Return what reactions of one person say, where they say one thing."""
    words = [(string(each, "emoji") or "").rstrip("\ufe0f") for each in reactions]
    found = {_THUMBS[each] for each in words if each in _THUMBS}
    return found.pop() if len(found) == 1 else None
