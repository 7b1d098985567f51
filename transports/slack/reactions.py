"""Reactions of people at answers: a thumb up or down is what they think of it.

Slack tells of them where the app is subscribed to them; it does not say in which thread a message stands.
Source: docs.slack.dev/reference/events/reaction_added.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cachetools import FIFOCache

from botservice.core.messages import Author, InboundMessage
from botservice.storage.database import Connection, Storage
from botservice.turns.inbox import Inbox
from transports.common.quick_presses import read_when_known
from transports.slack.inbound_events import account_of, bots_of, field, order_of, team_of, timestamp, word
from transports.slack.queries import find_answered_turn, is_any_on_its_way, store_reaction
from transports.slack.workspaces import SlackPeople, Workspaces, find_in_time

logger = logging.getLogger(__name__)

_THUMBS: Final = {"+1": "good", "thumbsup": "good", "-1": "bad", "thumbsdown": "bad"}
_MAX_KNOWN: Final = 10_000


@dataclass(frozen=True, slots=True)
class SlackReaction:
    """A thumb that a person put at a message, or took away from it."""

    team: str
    channel: str
    ts: str
    user: str
    verdict: str
    is_there: bool
    order: int


def reaction_of(body: Mapping[str, Any], known_bot: str | None) -> SlackReaction | None:
    """Return a person's thumb at a message of the bot, or None if an event is about anything else."""
    event = field(body, "event")
    item, name, bots = field(event, "item"), field(event, "reaction"), bots_of(body, known_bot)
    team, channel, ts = team_of(body), word(field(item, "channel")), timestamp(field(item, "ts"))
    user, writer, at = word(field(event, "user")), word(field(event, "item_user")), timestamp(field(event, "event_ts"))
    verdict = _THUMBS.get(name.partition("::")[0]) if isinstance(name, str) else None  # "+1::skin-tone-3"
    if team is None or channel is None or ts is None or user is None or at is None or verdict is None:
        return None
    if user in bots or (bots and writer is not None and writer not in bots):
        return None
    return SlackReaction(team, channel, ts, user, verdict, field(event, "type") == "reaction_added", order_of(at))


class Reactions:
    """Keeps what people think of answers. Of what Slack delivers late or again, the latest stays."""

    def __init__(self, workspaces: Workspaces, people: SlackPeople) -> None:
        self._workspaces = workspaces
        self._people = people
        self._latest: FIFOCache[tuple[str, str, str, str], int] = FIFOCache(_MAX_KNOWN)
        self._lock = asyncio.Lock()

    async def take(self, body: Mapping[str, Any], inbox: Inbox, storage: Storage) -> None:
        """Store a person's verdict on an answer; on any other message nothing is kept."""
        reaction = reaction_of(body, self._workspaces.known_bot(team_of(body) or ""))
        found = None if reaction is None else await _wait_for_turn(storage, reaction)
        if reaction is None or found is None:
            return
        if (await find_in_time(self._workspaces, self._people, reaction.team, reaction.user)).is_bot:
            return
        author = Author("slack", account_of(reaction.team, reaction.user))
        said = InboundMessage("", author, is_private=reaction.channel.startswith("D"))
        ruling = await inbox.access.judge(storage, said, found[1], storage.now())
        if ruling.is_admitted:
            async with self._lock:
                await self._keep(storage, reaction, author)

    async def _keep(self, storage: Storage, reaction: SlackReaction, author: Author) -> None:
        key, now = (reaction.team, reaction.channel, reaction.ts, reaction.user), storage.now()
        if reaction.order <= self._latest.get(key, -1):
            return

        message = reaction.team, reaction.channel, reaction.ts
        is_stored = await storage.write(  # the answer may have been forgotten since
            lambda connection: store_reaction(
                connection, message, author, reaction.verdict, now, is_there=reaction.is_there
            )
        )
        logger.info("slack.reaction", extra={"is_stored": is_stored})
        self._latest[key] = reaction.order


async def _wait_for_turn(storage: Storage, reaction: SlackReaction) -> tuple[int, Mapping[str, str]] | None:
    """Return the turn that a message answers, as soon as it is known whether it answers any."""
    message = reaction.team, reaction.channel, reaction.ts

    def find(connection: Connection) -> tuple[tuple[int, Mapping[str, str]] | None, bool]:
        is_coming = is_any_on_its_way(connection)  # asked first: what arrives between the two is found by the second
        return find_answered_turn(connection, message), is_coming

    found, _ = await read_when_known(storage, find, lambda each: each[0] is not None or not each[1])
    return found
