"""From an answer to the messages that make it visible. Pure: the same answer gives the same messages."""

import re
from collections.abc import Sequence
from typing import Any, Final

from botservice.commands.catalogue import as_typed as name_commands
from botservice.commands.standard import standard_commands
from botservice.config.setting_choices import SlackPings
from botservice.core.messages import CommandCall, Message, Role
from botservice.texts import DEFAULT_LANGUAGE
from botservice.texts.formatted import with_commands
from botservice.turns.buttons import write_buttons
from botservice.turns.commands import parse_command
from botservice.turns.transport import BUTTONS, Payload
from botservice.turns.turn import StoredEvent
from transports.common.json_fields import field
from transports.common.stored_files import name_file
from transports.common.too_long_messages import cut_long, note, whole_file
from transports.slack.content import question_about
from transports.slack.formatting import format_answer, format_service_text
from transports.slack.inbound_events import (
    COMMAND_PREFIX,
    IN_CHANNEL,
    EventSource,
    SlackEvent,
    SlackMessage,
    command_of,
    stored,
    timestamp,
)

# Answers to these concern the asker alone: in channels, no other person reads them.
_PERSONAL: Final = frozenset({"access", "export", "link", "memory", "unlink", "usage", "why"})
_NAMES: Final = frozenset(command.name for command in standard_commands())
_MENTIONS: Final = re.compile(r"<@[^<>]*>")
_FORGET: Final = re.compile(rb"forget")  # as a command, or on the button that asks whether to go on
# A payload is {"text" or "file", "thread_ts", "question", …}; files are named by the digest of their bytes.


def plan_answer(answer: Message, events: Sequence[StoredEvent], pings: SlackPings) -> list[Payload]:
    """Return the messages that make answer visible: its text in pieces, then its files.

    What the service itself says names commands with "!", because Slack keeps what begins with "/" for itself.
    """
    asked = [stored(event.raw) for event in events]
    place = _place(asked[-1]) | {"question": events[-1].key} if asked else {}
    is_notice, is_for_service = answer.role is Role.SYSTEM, _is_for_service(asked)
    text = as_typed(answer.text) if is_notice or is_for_service else answer.text

    def write(said: str) -> list[dict[str, Any]]:
        if answer.formatted is not None:
            return format_service_text(with_commands(answer.formatted, COMMAND_PREFIX))
        return [{"text": each} for each in format_answer(said, pings)]

    pieces, is_long = cut_long(text, write)
    if pieces and answer.buttons:
        pieces[-1]["choices"] = [
            {"text": button.text, "value": button.says, "url": button.url} for button in answer.buttons
        ]
        pieces[-1][BUTTONS] = write_buttons(answer.buttons)
    if pieces and is_notice:
        pieces[-1]["is_notice"] = True
    elif pieces and not is_for_service:
        pieces[-1]["asks_feedback"] = answer.language or DEFAULT_LANGUAGE
    if pieces and (is_notice or is_for_service) and _is_forgetting(events):
        pieces[-1]["forgets_in"] = answer.language or DEFAULT_LANGUAGE
    asker = _asker_alone(asked)
    if asker is not None:
        place["only_for"] = asker
    whole = [] if not is_long else [{"file": whole_file(answer.text), "comment": note(answer.language)}]
    payloads = [*pieces, *whole, *({"file": name_file(each)} for each in answer.attachments)]
    return [payload | place for payload in payloads]


def as_typed(text: str) -> str:
    """Return words of the service in which commands are named as people type them in Slack: with "!"."""
    return name_commands(text, _NAMES, COMMAND_PREFIX)


def _place(asked: SlackEvent) -> dict[str, Any]:
    """Return where the answer to an event belongs, next to what the context says."""
    way, body, kept, message = asked.way, asked.body, asked.kept, asked.message
    place: dict[str, Any] = {}
    if message is not None:
        place |= {"thread_ts": None if IN_CHANNEL in kept else message.answer_ts, "asked_at": message.ts}
    elif way is EventSource.BUTTON and field(body, "container", "is_ephemeral") is True and "thread_ts" not in kept:
        place["response_url"] = field(body, "response_url")
        place["response_thread_ts"] = timestamp(field(body, "container", "thread_ts"))
    elif way is EventSource.BUTTON:
        place["thread_ts"] = timestamp(kept.get("thread_ts"))
        place["asked_at"] = timestamp(field(body, "container", "message_ts"))
    elif way is EventSource.COMMAND and field(body, "channel_id") != kept.get("channel"):
        place["response_url"] = field(body, "response_url")
    elif way is EventSource.QUESTION:
        place["response_url"] = question_about(field(body, "view")).get("response_url")
    return {name: value for name, value in place.items() if isinstance(value, str) and value}


def _asker_alone(asked: Sequence[SlackEvent]) -> str | None:
    """Return who asked, in a channel, what concerns them alone; None for anything else."""
    askers = {_asker_of_personal(each.message) for each in asked}
    return askers.pop() if len(askers) == 1 else None


def _asker_of_personal(message: SlackMessage | None) -> str | None:
    if message is None or message.is_direct:
        return None
    command = _command_in(message)
    return message.user_id if command is not None and command.name in _PERSONAL else None


def _command_in(message: SlackMessage) -> CommandCall | None:
    """Return the command that a message gives next to whom it names."""
    return command_of(_MENTIONS.sub(" ", message.text)) if message.is_typed else None


def _is_for_service(asked: Sequence[SlackEvent]) -> bool:
    """Return whether everything that was asked is a command of the service, or looks like one."""
    return bool(asked) and all(_command_like(each) for each in asked)


def _command_like(asked: SlackEvent) -> bool:
    if (message := asked.message) is not None:
        return _command_in(message) is not None
    if asked.way is EventSource.COMMAND:
        said = parse_command(f"/{str(field(asked.body, 'text') or '').strip().lstrip('/')}")
        return said is None or said.name in _NAMES
    return asked.way is EventSource.BUTTON


def _is_forgetting(events: Sequence[StoredEvent]) -> bool:
    """Return whether one of the events may be a request to forget."""
    return any(_FORGET.search(event.raw) is not None for event in events)
