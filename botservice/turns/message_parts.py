"""The parts of one message, such as an album: where one says that the bot is meant, it is by all of the same sender."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from botservice.core.messages import InboundMessage
from botservice.storage.claims import Claim
from botservice.storage.database import Storage
from botservice.storage.statements import LARGEST_ID
from botservice.turns.edits_and_deletions import rewriting
from botservice.turns.event_queries import list_parts
from botservice.turns.transport import ReadEvent, ReceivedMessage, Transport, TurnMessage
from botservice.turns.turn import StoredEvent, Turn


@dataclass(frozen=True, slots=True)
class EarlierPart:
    """A part of a message that came before the turn of another one; its files are only named."""

    event: StoredEvent
    message: InboundMessage
    order_key: int


async def find_earlier(
    storage: Storage, context_id: int, groups: Collection[str], transport: Transport, *, before: int = LARGEST_ID
) -> list[EarlierPart]:
    """Return the parts of messages that came with the latest turns before one; by default, with the latest of all."""
    rows = await storage.read(lambda connection: list_parts(connection, context_id, groups, before))
    peek, found = transport.peek, list[EarlierPart]()
    for *fields, order_key in rows:
        event = StoredEvent(*fields)
        message = await peek(event)
        if message is not None:
            found.append(EarlierPart(event, message, order_key))
    return found


async def show_earlier(
    storage: Storage, turn: Turn, claim: Claim, inbound: Sequence[TurnMessage], transport: Transport, now: datetime
) -> None:
    """Have the history show what was only named of messages, where parts that have come now mean the bot."""
    groups = {event.group_key for event, each in inbound if event and each.is_addressed and not each.is_private}
    wanted = [group for group in groups if group is not None]
    if not wanted:
        return
    earlier = await find_earlier(storage, turn.context_id, wanted, transport, before=turn.id)
    meant = find_meant([*((each.event, each.message) for each in earlier), *inbound])
    for each in earlier:
        if each.event.id not in meant or each.message.external_id is None:
            continue
        message = await transport.read(replace(each.event, is_meant=True))  # what fails is tried again with the turn
        if message is not None:
            rewrite = await rewriting(turn.context_id, each.message.external_id, each.order_key, message, now)
            await storage.write(rewrite, fence=claim)


def find_meant(parts: Iterable[TurnMessage]) -> set[int]:
    """Return the ids of events that do not say that the bot is meant, and are parts of a message that does."""
    named = [(event, name, message) for event, message in parts if event and (name := _name(event, message))]
    meant = {name for _, name, message in named if message.is_addressed}
    return {event.id for event, name, message in named if name in meant and not message.is_addressed}


async def read_meant(
    said: Sequence[ReceivedMessage], read: ReadEvent, parts: Iterable[TurnMessage]
) -> list[ReceivedMessage]:
    """Return messages, those of them that are parts of one by which the bot is meant read as such."""
    meant, result = find_meant(parts), list[ReceivedMessage]()
    for event, message in said:
        if event.id in meant:
            asking = replace(event, is_meant=True)
            result.append((asking, await read(asking) or message))
        else:
            result.append((event, message))
    return result


def _name(event: StoredEvent, message: InboundMessage) -> tuple[str, str | None, str] | None:
    """Return what the parts of one message of one sender have in common; None for what is no part."""
    author = message.author
    if event.group_key is None or author is None or author.id is None:
        return None
    return event.group_key, author.platform, author.id
