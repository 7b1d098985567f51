"""What Slack delivers, as events to be stored: plain JSON is looked at, nothing is parsed that may fail."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from botservice.conversation.context_keys import ContextKeys
from botservice.core.messages import Author, CommandCall, storable
from botservice.core.states import EventKind
from botservice.people.names import chat_name, person_name
from botservice.turns.commands import parse_command
from botservice.turns.turn import InboundEvent
from transports.common.json_fields import field, items_of

CODE_CHANNEL = "agent_channel"
"""What Slack calls a channel for one task of an agent, as its `record_type`."""
IN_CHANNEL = "in_channel"
"""What stands with a stored message that belongs to the conversation of its channel, and to no thread."""
COMMAND_PREFIX = "!"  # Slack keeps what begins with "/" for itself
_TS = re.compile(r"(\d{1,12})\.(\d{1,6})")
_MENTION = re.compile(r"<@([^<>|\s]+)(?:\|[^<>]*)?>")
_MAX_ID_CHARACTERS = 100
_VIEW = "app_context"  # what an author looks at
_MESSAGES = ("message", "previous_message", "root")
# What people write; every other subtype tells of something that happened.
_WRITTEN = (None, "file_share", "me_message", "thread_broadcast")  # no set: what comes may not be hashable
# What apps leave in a message that they post in a person's name. Source: docs.slack.dev, chat.postMessage and metadata.
_OF_APPS = ("app_id", "bot_profile", "metadata")


class EventSource(StrEnum):
    """How something came: it stands with the stored event, which is read later."""

    MESSAGE = "message"
    COMMAND = "command"
    QUESTION = "question"  # about a message, asked in a dialog
    BUTTON = "button"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message that a person wrote.

    Attributes:
        is_typed: Whether they typed it; otherwise an app posted it in their name.
    """

    team_id: str
    channel_id: str
    ts: str
    user_id: str
    text: str
    thread_ts: str | None
    is_direct: bool
    mentioned: frozenset[str]
    is_typed: bool = True
    is_in_code_channel: bool = False

    @property
    def is_reply(self) -> bool:
        """Whether it stands in a thread and does not begin it."""
        return self.thread_ts is not None and self.thread_ts != self.ts

    @property
    def root_ts(self) -> str:
        """The thread in which it is answered."""
        return self.thread_ts or self.ts

    @property
    def answer_ts(self) -> str | None:
        """The thread in which it is answered; None if that is the channel itself, which is one session."""
        return self.root_ts if self.is_reply or not self.is_in_code_channel else None

    def keys(self, *, is_thread: bool) -> dict[str, str]:
        """Return what its conversation is called."""
        return context_keys(self.team_id, self.channel_id, self.answer_ts if is_thread and not self.is_direct else None)


def context_keys(team_id: str, channel_id: str, thread_ts: str | None = None) -> dict[str, str]:
    """Return what a conversation is called: a thread of a channel is one by itself, a direct conversation is whole."""
    keys = {"transport": "slack", "team_id": team_id, "channel_id": channel_id}
    return keys if thread_ts is None or channel_id.startswith("D") else keys | {"thread_ts": thread_ts}


def read_message(body: object) -> SlackMessage | None:
    """Return a message of a person; None for anything else: other bots, edits, joins, and what is not whole."""
    event = field(body, "event")
    if field(event, "type") not in ("message", "app_mention") or field(event, "subtype") not in _WRITTEN:
        return None
    if field(event, "bot_id") is not None or field(event, "hidden") is True:
        return None
    team, channel, user = team_of(body), word(field(event, "channel")), word(field(event, "user"))
    ts, text = timestamp(field(event, "ts")), field(event, "text")
    if team is None or channel is None or user is None or ts is None:
        return None
    said = text if isinstance(text, str) else ""
    return SlackMessage(
        team,
        channel,
        ts,
        user,
        said,
        timestamp(field(event, "thread_ts")),
        field(event, "channel_type") == "im" or channel.startswith("D"),
        frozenset(_MENTION.findall(said)),
        is_typed(event),
        is_in_code_channel=field(event, "record_type") == CODE_CHANNEL,
    )


def in_code_channel(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message's event with the kind of its channel, which Slack says only when it is asked."""
    return {**body, "event": {**field(body, "event"), "record_type": CODE_CHANNEL}}


def message_event(message: SlackMessage, body: object, *, is_thread: bool) -> InboundEvent:
    """Return a message as an event: the same one, however often and in whatever form it is delivered."""
    is_stop = message.is_direct and message.is_typed and command_of(message.text) == CommandCall("stop")
    return InboundEvent(
        key=f"slack:{message.team_id}:{message.channel_id}:{message.ts}",
        context_keys=message.keys(is_thread=is_thread),
        order_key=order_of(message.ts),
        raw=raw(EventSource.MESSAGE, body, **({} if is_thread or message.is_direct else {IN_CHANNEL: True})),
        kind=EventKind.STOP if is_stop else EventKind.MESSAGE,
    )


def is_typed(event: object) -> bool:
    """Return whether a person typed a message; otherwise an app posted it in their name."""
    return all(field(event, name) is None for name in _OF_APPS)


def command_of(text: str) -> CommandCall | None:
    """Return the command that a message is: Slack keeps "/…" for itself, so "!…" is one as well."""
    bare = text.strip()
    return parse_command(f"/{bare[1:]}" if bare.startswith(COMMAND_PREFIX) else bare)


def stop_event(body: object) -> InboundEvent | None:
    """Return the press of the stop button; None for any other event."""
    event = field(body, "event")
    team, channel, event_id = team_of(body), word(field(event, "channel")), word(field(body, "event_id"))
    if field(event, "type") != "agent_session_stopped" or team is None or channel is None or event_id is None:
        return None
    at = timestamp(field(event, "event_ts"))
    return InboundEvent(
        key=f"slack:{team}:{event_id}",
        context_keys=context_keys(team, channel, timestamp(field(event, "thread_ts"))),
        order_key=2**62 if at is None else order_of(at),
        raw=raw(EventSource.STOP, body),
        kind=EventKind.STOP,
    )


def bots_of(body: object, known: str | None) -> frozenset[str]:
    """Return the bot users for whom Slack says that it delivers an event, and the one that is known already."""
    told = (word(field(each, "user_id")) for each in items_of(body, "authorizations") if field(each, "is_bot") is True)
    return frozenset(user for user in (*told, known) if user is not None)


def team_of(body: object) -> str | None:
    """Return the workspace for which something is delivered."""
    given = word(field(body, "team_id")) or word(field(body, "team", "id")) or word(field(body, "event", "team"))
    return given or enterprise_of(body)


def account_of(team_id: str, user_id: str) -> str:
    """Return the id of a person's account: it says in which team."""
    return f"{team_id}:{user_id}"


def enterprise_of(body: object) -> str | None:
    """Return the organisation to which the workspace belongs for which something is delivered."""
    return word(field(body, "enterprise_id")) or word(field(body, "enterprise", "id"))


def raw(way: EventSource, body: object, **more: object) -> bytes:
    """Return what is stored with an event."""
    return json.dumps({"way": way.value, "body": body, **more}).encode()


@dataclass(frozen=True, slots=True)
class SlackEvent:
    """Something that came, as it was stored.

    Attributes:
        way: How it came; None if what was stored cannot be read.
        body: What Slack sent.
        kept: What was stored next to it.
    """

    way: EventSource | None
    body: Mapping[str, Any]
    kept: Mapping[str, Any]

    @property
    def message(self) -> SlackMessage | None:
        """The message that it is; None for anything else."""
        return read_message(self.body) if self.way is EventSource.MESSAGE else None

    @property
    def asker(self) -> str | None:
        """The user who wrote, ordered or pressed it; None where none is named."""
        named = (field(self.body, "event", "user"), field(self.body, "user", "id"), field(self.body, "user_id"))
        return next((user for each in named if (user := word(each)) is not None), None)


def stored(event: bytes) -> SlackEvent:
    """Return something that came, as it was stored."""
    try:
        kept = json.loads(event)
        way, body = EventSource(kept["way"]), kept["body"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return SlackEvent(None, {}, {})
    return SlackEvent(way, body if isinstance(body, dict) else {}, kept)


def without_view(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message's event, or that of a change, without what its author looks at: that is not stored."""
    event = field(body, "event")
    if not isinstance(event, Mapping) or event.keys().isdisjoint((_VIEW, *_MESSAGES)):
        return body
    return {**body, "event": _without_view(event)}


def _without_view(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event without what is looked at, also where it holds a message, as it was or as it is."""
    return {
        name: _without_view(each) if name in _MESSAGES and isinstance(each, Mapping) else each
        for name, each in event.items()
        if name != _VIEW
    }


def chat_of_bot(body: Mapping[str, Any], known_bot: str | None) -> str | None:
    """Return the channel that the bot has come into or has left, or None if an event is about a person."""
    event = field(body, "event")
    team, channel, user = team_of(body), word(field(event, "channel")), word(field(event, "user"))
    if team is None or channel is None or user not in bots_of(body, known_bot):
        return None
    return chat_name(context_keys(team, channel))


def inviter_of(body: Mapping[str, Any]) -> str | None:
    """Return who has brought the bot into a channel, or None if Slack does not say."""
    team, inviter = team_of(body), word(field(body, "event", "inviter"))
    return None if team is None or inviter is None else person_name(Author("slack", account_of(team, inviter)))


def renamed_session(body: Mapping[str, Any]) -> tuple[ContextKeys, str] | None:
    """Return the conversation and the thread whose title a person has changed, or None if Slack does not say."""
    event = field(body, "event")
    team, channel = team_of(body), word(field(event, "channel"))
    thread_ts = timestamp(field(event, "thread_ts"))
    if team is None or channel is None or thread_ts is None:
        return None
    return ContextKeys.of(context_keys(team, channel, thread_ts)), thread_ts


def viewer_of(body: Mapping[str, Any]) -> str | None:
    """Return whose context an event tells: it is named in the event, or is the one to whom it may be shown."""
    person = next((each for each in items_of(body, "authorizations") if field(each, "is_bot") is False), None)
    return word(field(body, "event", "user")) or word(field(person, "user_id"))


def order_of(ts: str) -> int:
    """Return a timestamp as a number that grows with it."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds) * 1_000_000 + int(fraction.ljust(6, "0"))


def timestamp(value: object) -> str | None:
    """Return value if it is a message's timestamp."""
    return value if isinstance(value, str) and _TS.fullmatch(value) else None


def word(value: object) -> str | None:
    """Return value if it can be an id."""
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_ID_CHARACTERS:
        return None
    return value if value.strip() and storable(value) == value else None
