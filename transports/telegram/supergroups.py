"""Groups that become supergroups, and so have another id: their conversations go on there."""

import json
import logging
from collections.abc import Mapping

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.states import EventKind
from botservice.storage.database import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent
from transports.telegram.inbound_events import field, integer
from transports.telegram.queries import move_group

logger = logging.getLogger(__name__)

_TRANSPORT = "telegram"


async def move_to_supergroup(
    update: object, inbox: Inbox, storage: Storage, old: Mapping[str, str], new: Mapping[str, str], *, bot_id: int
) -> None:
    """Have a group's conversation go on in the supergroup that it has become.

    Where people have spoken there already, that waits for the turns of both, and nothing else waits for it.
    """
    before, after = ContextKeys.of(old), ContextKeys.of(new)

    if await storage.write(lambda connection: move_group(connection, old, new)):
        logger.info("telegram.group_moved")
    elif await storage.read(lambda connection: find_context(connection, before)) is not None:
        order = integer(field(update, "update_id")) or 0
        raw = json.dumps(dict(after.values)).encode()
        await inbox.accept(_TRANSPORT, [InboundEvent(f"telegram:{bot_id}:{order}", old, order, raw, EventKind.MOVE)])
