"""Pressed buttons: what stands behind one is said once or carried out at once, and the message shows the choice."""

import asyncio
import html
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from botservice.core.errors import BotServiceError, StorageUnavailable
from botservice.core.messages import Author
from botservice.storage.database import Storage
from botservice.texts import in_language
from botservice.texts.formatted import with_commands
from botservice.turns.call_decisions import Decision
from botservice.turns.call_decisions import order_of as decision_of
from botservice.turns.event_queries import find_raw_event
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent
from transports.common.connected_transport import read_when_known
from transports.common.json_fields import field, items_of
from transports.slack.answer_blocks import markdown, read_page
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.context import SlackContext
from transports.slack.formatting import BUTTON, FEEDBACK, escape_words, find_address
from transports.slack.inbound_events import (
    COMMAND_PREFIX,
    EventSource,
    account_of,
    context_keys,
    order_of,
    raw,
    stored,
    team_of,
    timestamp,
    word,
)
from transports.slack.queries import find_askers, store_verdict
from transports.slack.workspaces import CALL_SECONDS

logger = logging.getLogger(__name__)

_CHOSEN: Final = "✓"
_OF_WORDS: Final = ("data_table", "data_visualization", "header", "markdown", "rich_text", "section", "table")


_VALUE = re.compile(r"(good|bad):(\d{1,18})")


async def write_feedback(storage: Storage, team: str, channel: str, user: str, value: str) -> None:
    """Store what a person thinks of an answer; a second press takes the place of the first."""
    found = _VALUE.fullmatch(value)
    if found is None:
        return
    verdict, turn_id, place = found[1], int(found[2]), (team, channel)
    author, now = Author("slack", account_of(team, user)), storage.now()
    # The turn may have been forgotten, or another database wrote the button.
    is_stored = await storage.write(lambda connection: store_verdict(connection, turn_id, place, author, verdict, now))
    logger.info("slack.feedback", extra={"turn_of_answer": turn_id, "is_stored": is_stored})


@dataclass(frozen=True, slots=True)
class SlackPress:
    """A pressed button.

    Attributes:
        ts: The message that it stands under.
        at: When it was pressed.
        root: The thread that the message stands in.
        is_ephemeral: Whether nobody but the presser sees the message.
    """

    name: str
    value: str | None
    team: str
    channel: str
    user: str
    user_name: str | None
    ts: str | None
    at: str | None
    root: str | None
    response_url: str | None
    is_ephemeral: bool

    @property
    def context_keys(self) -> dict[str, str]:
        """What the conversation is called that the message belongs to."""
        return context_keys(self.team, self.channel, self.root)


def read_press(body: Mapping[str, Any]) -> SlackPress | None:
    """Return the button of ours that was pressed; None for anything else."""
    action = next(iter(items_of(body, "actions")), None)
    name, team = field(action, "action_id"), team_of(body)
    user, channel = field(body, "user"), word(field(body, "channel", "id"))
    user_id, value, url = word(field(user, "id")), field(action, "value"), field(body, "response_url")
    if field(body, "type") != "block_actions" or not isinstance(name, str) or field(action, "url"):
        return None
    if team is None or user_id is None or channel is None:
        return None
    message, container = field(body, "message"), field(body, "container")
    return SlackPress(
        name,
        value if isinstance(value, str) else None,
        team,
        channel,
        user_id,
        word(field(user, "name")) or word(field(user, "username")),
        timestamp(field(container, "message_ts")) or timestamp(field(message, "ts")),
        timestamp(field(action, "action_ts")),
        timestamp(field(container, "thread_ts")) or timestamp(field(message, "thread_ts")),
        url if isinstance(url, str) else None,
        field(container, "is_ephemeral") is True,
    )


async def tell_presser(client: SlackClient, press: SlackPress, text: str) -> None:
    """Tell the person who pressed a button something that no other person sees; nothing depends on it."""
    if press.response_url is None:
        return
    place = {} if press.root is None else {"thread_ts": press.root}
    body = {"response_type": "ephemeral", "replace_original": False, "text": text, **place}
    try:
        await client.respond(press.response_url, body)
    except BotServiceError as error:
        logger.info("slack.presser_not_told", extra={"reason": str(error)})


async def rate(body: Mapping[str, Any], storage: Storage) -> None:
    """Store what a pressed thumb says of an answer; any other press is none."""
    press = read_press(body)
    if press is not None and press.name == FEEDBACK:
        await write_feedback(storage, press.team, press.channel, press.user, press.value or "")


@dataclass(frozen=True, slots=True)
class SlackChoice:
    """A message with buttons of which a person has pressed one.

    Attributes:
        message: As Slack shows it to the person who presses.
        pressed: The name of the button.
    """

    team: str
    channel: str
    ts: str
    message: Mapping[str, Any]
    pressed: str


async def _show(choice: SlackChoice, slack: SlackContext) -> None:
    """Show a choice in the place of the buttons; nothing depends on it."""
    label = _label_of(choice)
    if label is None:
        return  # it is shown already
    text = str(field(choice.message, "text") or "")
    if not slack.manners.previews and _has_address(choice.message):
        return  # only chat.postMessage can be told to fetch nothing
    forms = (
        {"text": text or label, "blocks": _blocks(choice, text, label)},
        {"text": f"{text}\n\n{escape_words(label)}"},
    )
    try:
        workspace = await slack.workspaces.find(choice.team)
        for form in forms:
            try:
                await workspace.call("chat.update", channel=choice.channel, ts=choice.ts, **form)
            except SlackFailure as failure:
                if not failure.is_about_form or form is forms[-1]:
                    raise
            else:
                return
    except BotServiceError as error:
        logger.info("slack.choice_not_shown", extra={"reason": str(error)})


def _has_address(message: Mapping[str, Any]) -> bool:
    words = [field(message, "text"), *(field(block, "text") for block in items_of(message, "blocks"))]
    return any(find_address(html.unescape(str(each))) is not None for each in words)


def _label_of(choice: SlackChoice) -> str | None:
    """Return what is shown of the pressed button, or None if it is not there any more."""
    buttons = [each for block in items_of(choice.message, "blocks") for each in items_of(block, "elements")]
    pressed = next((each for each in buttons if field(each, "action_id") == choice.pressed), None)
    return None if pressed is None else f"{_CHOSEN} {field(pressed, 'text', 'text') or ''}".rstrip()


def _blocks(choice: SlackChoice, text: str, label: str) -> list[dict[str, Any]]:
    """Return the blocks of a message with a choice in the place of its buttons; links stay."""
    blocks: list[dict[str, Any]] = []
    for block in items_of(choice.message, "blocks"):
        buttons = [each for each in items_of(block, "elements") if _is_ours(each)]
        if not buttons:
            blocks.append(block)
            continue
        blocks.append({"type": "section", "text": {"type": "plain_text", "text": label}})
        if links := [each for each in buttons if field(each, "url")]:
            blocks.append({"type": "actions", "elements": links})
    has_words = any(field(each, "type") in _OF_WORDS for each in items_of(choice.message, "blocks"))
    if text and not has_words:  # they stand next to the blocks, and new blocks would hide them
        blocks.insert(0, markdown(read_page(html.unescape(text)).text))
    return blocks


def _is_ours(element: object) -> bool:
    return str(field(element, "action_id") or "").startswith(f"{BUTTON}:")


class Presses:
    """Stores what people choose, once for each message, and has it show the choice; carries out what they decide."""

    def __init__(self, slack: SlackContext) -> None:
        self._slack = slack
        self._workspaces = slack.workspaces

    async def take(self, body: Mapping[str, Any], inbox: Inbox, storage: Storage) -> bool:
        """Store what a pressed button says, or carry it out; return whether it is one that says something.

        Raises:
            StorageUnavailable: it is not stored, or not yet whom the button asks.
        """
        press = read_press(body)
        if press is not None and await self._decide(press, inbox):
            return True
        if press is None or not press.name.startswith(f"{BUTTON}:") or press.ts is None or press.at is None:
            return False
        if press.value is None or not press.value.strip():
            return True
        key, is_choice = f"slack:{press.team}:button:{press.channel}:{press.ts}", True
        if decision_of(press.value) is not None:  # who may give an order is judged where it is carried out
            key, is_choice = f"{key}:{press.at}:{press.user}", False
        elif not await _is_asked(storage, press):
            self._slack.background.start(self._refuse(press), name="slack-press")
            return True
        is_new = await inbox.accept("slack", [await self._event(key, press, press.ts, press.at, body)]) > 0
        if is_choice and not press.is_ephemeral:
            pressed = press.name if is_new else await _pressed_first(storage, key)
            choice = SlackChoice(press.team, press.channel, press.ts, field(body, "message") or {}, pressed)
            self._slack.background.start(_show(choice, self._slack), name="slack-press")
        return True

    async def _decide(self, press: SlackPress, inbox: Inbox) -> bool:
        """Carry out what a press decides; return whether it was about calls of tools."""
        if press.value is None or decision_of(press.value) is None:
            return False
        keys = await self._keys(press)
        person = await self._workspaces.find_person_in_time(press.team, press.user)
        author = Author("slack", person.account, person.name or press.user_name or person.id)
        is_private = keys["channel_id"].startswith("D")
        decision = await inbox.decide(keys, press.value, author, language=person.language, is_private=is_private)
        if decision is not None:
            self._slack.background.start(self._tell(press, decision), name="slack-decision")
        return decision is not None

    async def _keys(self, press: SlackPress) -> dict[str, str]:
        """Return the conversation that a press belongs to; what the presser alone sees, to theirs with the bot."""
        if not press.is_ephemeral:
            return press.context_keys
        async with asyncio.timeout(CALL_SECONDS):
            return context_keys(press.team, await self._workspaces.find_direct_channel(press.team, press.user))

    async def _event(self, key: str, press: SlackPress, ts: str, at: str, body: Mapping[str, Any]) -> InboundEvent:
        more: dict[str, str | None] = {"thread_ts": press.root or ts}
        keys = await self._keys(press)
        if press.is_ephemeral:
            more = {}
        elif press.root is None and await self._workspaces.has_code_channel(press.team, press.channel):
            more = {"thread_ts": None}
        return InboundEvent(
            key=key, context_keys=keys, order_key=order_of(at), raw=raw(EventSource.BUTTON, body, **more)
        )

    async def _refuse(self, press: SlackPress) -> None:
        """Tell a presser alone that others were asked."""
        person = await self._workspaces.find_person_in_time(press.team, press.user)
        await tell_presser(self._workspaces.client, press, in_language("buttons.not_asked", person.language))

    async def _tell(self, press: SlackPress, decision: Decision) -> None:
        """Tell the presser alone what came of a decision; where it was taken, the message that asked says so."""
        if not decision.is_taken:
            await tell_presser(self._workspaces.client, press, with_commands(decision.text, COMMAND_PREFIX).plain)
        elif press.is_ephemeral and press.response_url is not None:
            try:
                await self._workspaces.client.respond(press.response_url, {"delete_original": True})
            except BotServiceError as error:
                logger.info("slack.decision_not_told", extra={"reason": str(error)})


async def _is_asked(storage: Storage, press: SlackPress) -> bool:
    """Return whether a person may choose: in a channel only the person who asked."""
    if press.is_ephemeral or press.channel.startswith("D"):
        return True
    keys, ts = press.context_keys, str(press.ts)
    askers = await read_when_known(storage, lambda connection: find_askers(connection, keys, ts))
    if askers is None:
        raise StorageUnavailable("whom these buttons ask is not known yet")
    return not askers or press.user in askers


async def _pressed_first(storage: Storage, key: str) -> str:
    """Return the name of the button that counts; an empty one where that is forgotten."""
    kept = await storage.read(lambda connection: find_raw_event(connection, key))
    press = None if kept is None else read_press(stored(kept).body)
    return "" if press is None else press.name
