"""What people do besides writing: commands, dialogs, buttons, and reactions at answers."""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from cachetools import FIFOCache

from botservice.core.messages import Author, InboundMessage
from botservice.core.states import EventKind
from botservice.storage.database import Connection, Storage
from botservice.texts import in_language
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent
from transports.common.connected_transport import read_when_known
from transports.common.json_fields import field
from transports.slack.button_presses import rate
from transports.slack.content import words_of
from transports.slack.inbound_events import (
    EventSource,
    account_of,
    bots_of,
    context_keys,
    order_of,
    raw,
    team_of,
    timestamp,
    word,
)
from transports.slack.queries import find_answered_turn, is_any_on_its_way, store_reaction
from transports.slack.workspaces import CALL_SECONDS, Workspaces

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

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._latest: FIFOCache[tuple[str, str, str, str], int] = FIFOCache(_MAX_KNOWN)
        self._lock = asyncio.Lock()

    async def take(self, body: Mapping[str, Any], inbox: Inbox, storage: Storage) -> None:
        """Store a person's verdict on an answer; on any other message nothing is kept."""
        reaction = reaction_of(body, self._workspaces.known_bot(team_of(body) or ""))
        found = None if reaction is None else await _wait_for_turn(storage, reaction)
        if reaction is None or found is None:
            return
        if (await self._workspaces.find_person_in_time(reaction.team, reaction.user)).is_bot:
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


logger = logging.getLogger(__name__)

ASK_CALLBACK: Final = "ask_about_message"
ASK_ANYTHING: Final = "ask_anything"
QUESTION_BLOCK: Final = "question"
QUESTION_INPUT: Final = "text"

_MAX_QUOTE_CHARACTERS = 1500
_MAX_KEPT_CHARACTERS = 3000


class Interactions:
    """Reads what people do besides writing. What is asked privately belongs to their conversation with the bot."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self.reactions = Reactions(workspaces)

    async def command(self, body: Mapping[str, Any], storage: Storage) -> InboundEvent | None:
        """Return a slash command as an event, or None if it says nothing."""
        team, user, trigger = team_of(body), word(field(body, "user_id")), word(field(body, "trigger_id"))
        if team is None or user is None or trigger is None:
            return None
        async with asyncio.timeout(CALL_SECONDS):
            channel = await self._workspaces.find_direct_channel(team, user)
        is_stop = str(field(body, "text") or "").strip().lower().lstrip("/") == "stop"
        return _event(
            f"{team}:command:{trigger}", team, channel, EventSource.COMMAND, body, storage.now(), is_stop=is_stop
        )

    async def interaction(self, body: Mapping[str, Any], storage: Storage) -> InboundEvent | None:
        """Return what a person did as an event, or None if that is done with."""
        match field(body, "type"):
            case "message_action" | "shortcut":
                await self._ask(body)
            case "view_submission":
                return await self._question(body, storage)
            case "block_actions":
                await rate(body, storage)
        return None

    async def _ask(self, body: Mapping[str, Any]) -> None:
        """Open the dialog that asks what a person wants to know: of a message, or at all."""
        team, trigger = team_of(body), word(field(body, "trigger_id"))
        message, user = field(body, "message"), word(field(body, "user", "id"))
        name = field(body, "callback_id")
        is_about = name == ASK_CALLBACK and message is not None
        if not (is_about or name == ASK_ANYTHING) or team is None or user is None or trigger is None:
            return
        kept = _about(body, message) if is_about else ""
        workspace = await self._workspaces.find(team)
        async with asyncio.timeout(CALL_SECONDS):
            person = await self._workspaces.find_person(workspace, user)
            await workspace.call("views.open", trigger_id=trigger, view=question_dialog(kept, person.language))

    async def _question(self, body: Mapping[str, Any], storage: Storage) -> InboundEvent | None:
        view = field(body, "view")
        team, user, view_id = team_of(body), word(field(body, "user", "id")), word(field(view, "id"))
        if field(view, "callback_id") != ASK_CALLBACK or team is None or user is None or view_id is None:
            return None
        async with asyncio.timeout(CALL_SECONDS):
            channel = await self._workspaces.find_direct_channel(team, user)
        return _event(f"{team}:view:{view_id}", team, channel, EventSource.QUESTION, body, storage.now())


def _about(body: Mapping[str, Any], message: object) -> str:
    """Return what a dialog keeps of the message that it was opened for."""
    text = words_of(message)
    about = {
        "text": text[:_MAX_QUOTE_CHARACTERS],
        "user": word(field(message, "user")),
        "ts": timestamp(field(message, "ts")),
        "channel": word(field(body, "channel", "id")),
        "response_url": field(body, "response_url"),
    }
    kept = json.dumps(about)
    # What Slack keeps for a dialog; escapes may be long.
    return kept if len(kept) <= _MAX_KEPT_CHARACTERS else json.dumps(about | {"text": text[:200]})


def _event(
    key: str,
    team: str,
    channel: str,
    way: EventSource,
    body: Mapping[str, Any],
    now: datetime,
    *,
    is_stop: bool = False,
) -> InboundEvent:
    at = round(now.timestamp() * 1_000_000)  # these have no timestamp of Slack's own
    return InboundEvent(
        key=f"slack:{key}",
        context_keys=context_keys(team, channel),
        order_key=at,
        raw=raw(way, body, channel=channel, at=at),
        kind=EventKind.STOP if is_stop else EventKind.MESSAGE,
    )


def question_dialog(kept: str, language: str | None) -> dict[str, Any]:
    """Return the dialog that asks for a question.

    Args:
        kept: What stands with it of the message that it is about; "" where it is about none.
    """
    say = partial(in_language, language=language)
    return {
        "type": "modal",
        "callback_id": ASK_CALLBACK,
        "private_metadata": kept,
        "title": {"type": "plain_text", "text": say("question.title" if kept else "question.anything")},
        "submit": {"type": "plain_text", "text": say("question.submit")},
        "close": {"type": "plain_text", "text": say("question.close")},
        "blocks": [
            {
                "type": "input",
                "block_id": QUESTION_BLOCK,
                "label": {"type": "plain_text", "text": say("question.label")},
                "element": {
                    "type": "plain_text_input",
                    "action_id": QUESTION_INPUT,
                    "multiline": True,
                    "max_length": 3000,
                },
            }
        ],
    }
