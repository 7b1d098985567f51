"""What a stored event says to the agent: names instead of ids, and in brackets what is sent besides words."""

import html
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from botservice.conversation.context_keys import ContextKeys
from botservice.core.message_references import Reference
from botservice.core.messages import Author, CommandCall, InboundMessage
from botservice.storage.database import Storage
from botservice.turns.commands import parse_command
from botservice.turns.turn import StoredEvent
from transports.common.json_fields import field, items_of
from transports.markdown.links import link
from transports.slack.button_presses import read_press
from transports.slack.client import NotInstalled, SlackFailure
from transports.slack.content import (
    question_about,
    read_about,
    read_replied,
    read_shared,
    shared_in,
    spoken_in,
    words_of_attachments,
    words_of_shared,
)
from transports.slack.context import SlackContext
from transports.slack.inbound_events import (
    EventSource,
    SlackMessage,
    account_of,
    command_of,
    is_typed,
    order_of,
    read_message,
    stored,
    team_of,
    timestamp,
    word,
)
from transports.slack.interactions import QUESTION_BLOCK, QUESTION_INPUT
from transports.slack.queries import has_addressed_bot, list_kept_since
from transports.slack.received_files import SlackFiles, named
from transports.slack.workspaces import Person, Views, Workspace

logger = logging.getLogger(__name__)

_PLATFORM = "slack"
_MAX_ASKED = 200  # of a thread, in one call; apps outside the marketplace are given 15
_MAX_EARLIER = 50
# Commands behind which more is said. What begins with the name of another one may as well be a question.
_WITH_ARGUMENTS = frozenset({"approve", "forget", "link", "memory", "persona", "reminders", "revoke", "unlink"})
_CLOCKS_SECONDS = 2.0
_LATE_SECONDS = 20.0
_TOKEN = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")
_AFTER_MENTION = " \t\r\n,:\u00a0"


class SlackReader:
    """Reads events, with their files, and with what was said in a thread before the bot came to it."""

    def __init__(self, slack: SlackContext, views: Views) -> None:
        self._slack = slack
        self._workspaces = slack.workspaces
        self._files = SlackFiles(slack)
        self._views = views

    async def read(self, event: StoredEvent, *, is_peek: bool = False) -> InboundMessage | None:
        """Return what an event says, or None if it says nothing to anybody.

        Args:
            is_peek: Fetch neither its files nor what was said in its thread before.
        """
        received = stored(event.raw)
        way, body = received.way, received.body
        try:
            workspace = await self._workspaces.find(team_of(body) or "")
        except NotInstalled:
            logger.info("slack.not_installed", extra={"team": team_of(body)})
            return None
        if way is EventSource.MESSAGE:
            return await self._message(event, body, workspace, is_peek=is_peek)
        others: dict[EventSource, Callable[..., Awaitable[InboundMessage | None]]] = {  # what people do besides writing
            EventSource.COMMAND: self._command,
            EventSource.QUESTION: self._question,
            EventSource.BUTTON: self._button,
            EventSource.STOP: self._stop,
        }
        return None if way is None else await others[way](body, workspace)

    async def _message(
        self, event: StoredEvent, body: Mapping[str, Any], workspace: Workspace, *, is_peek: bool
    ) -> InboundMessage | None:
        message = read_message(body)
        if message is None or message.user_id == workspace.bot_user_id:
            return None
        is_addressed = message.is_direct or await is_addressed_to_bot(message, workspace, self._slack.storage)
        received = field(body, "event")
        person = await self._workspaces.find_person(workspace, message.user_id)
        if person.is_bot:
            return None
        sent = files_of(received)
        is_fetched = bool(sent) and is_addressed and not is_peek
        fetched = await self._files.fetch(workspace, sent, event_id=event.id) if is_fetched else named(sent)
        text, said, shared = await self._words(received, fetched.remarks, workspace)
        replied = await read_replied(message, self._slack.storage)
        if not said and not shared and not fetched.attachments and not is_addressed:
            return None
        return InboundMessage(
            said if said or shared else "(mentioned you without a word)",
            _author(person),
            tuple(fetched.attachments),
            _moment(message.ts),
            message.ts,
            is_addressed,
            command=command_of(text) if is_addressed and message.is_typed else None,
            language=person.language,
            is_private=message.is_direct,
            before=await self._earlier(event, message, workspace) if is_addressed and not is_peek else (),
            is_whole=not (is_addressed and is_peek) or (not sent and not _may_be_late(event, message)),
            unread=tuple(fetched.unread),
            own_text=("" if not message.is_typed else None if said == text else text),
            references=(*replied, *shared),
            is_all_own=message.is_typed and said == text and not sent and not _holds_others(received),
            looking_at=await self._views.describe(workspace, message.user_id) if message.is_direct else None,
        )

    async def _words(
        self, received: object, remarks: Sequence[str], workspace: Workspace
    ) -> tuple[str, str, tuple[Reference, ...]]:
        """Return the words of a message, all that it says with its attachments and files, and what it shares."""
        text = await self._text(spoken_in(received), workspace)
        attached = await self._text(words_of_attachments(received), workspace)
        found = [(each, words) for each in shared_in(received) if (words := words_of_shared(each))]
        shared = [read_shared(each, await self._text(words, workspace), workspace) for each, words in found]
        return text, "\n".join(part for part in (text, attached, *remarks) if part), tuple(shared)

    async def _command(self, body: Mapping[str, Any], workspace: Workspace) -> InboundMessage | None:
        user = word(field(body, "user_id"))
        text = field(body, "text")
        if user is None:
            return None
        person = await self._workspaces.find_person(workspace, user)
        said = await self._text(text if isinstance(text, str) else "", workspace)
        return InboundMessage(said or "/help", _author(person), command=_order_of(said), language=person.language)

    async def _question(self, body: Mapping[str, Any], workspace: Workspace) -> InboundMessage | None:
        view = field(body, "view")
        user = word(field(body, "user", "id"))
        question = field(view, "state", "values", QUESTION_BLOCK, QUESTION_INPUT, "value")
        if user is None or not isinstance(question, str) or not question.strip():
            return None
        person = await self._workspaces.find_person(workspace, user)
        about = question_about(view)
        quoted = await self._text(str(about.get("text") or ""), workspace)
        writer = word(about.get("user"))
        name = None if writer is None else (await self._workspaces.find_person(workspace, writer)).name
        held = (read_about(about, name, quoted, workspace),) if about else ()
        return InboundMessage(question.strip(), _author(person), language=person.language, references=held)

    async def _button(self, body: Mapping[str, Any], workspace: Workspace) -> InboundMessage | None:
        press = read_press(body)
        if press is None or press.value is None or not press.value.strip():
            return None
        person = await self._workspaces.find_person(workspace, press.user)
        return InboundMessage(
            press.value,
            _author(person),
            created_at=_moment(press.at) if press.at is not None else None,
            command=parse_command(press.value),
            language=person.language,
            is_private=press.is_ephemeral or press.channel.startswith("D"),
            own_text="",  # the text of a button is not the presser's own
        )

    async def _stop(self, body: Mapping[str, Any], workspace: Workspace) -> InboundMessage | None:
        """Return who pressed the stop button, as the command that it stands for, or None if Slack does not say."""
        event = field(body, "event")
        user, channel = word(field(event, "user")), word(field(event, "channel"))
        if user is None:
            return None
        person = await self._workspaces.find_person(workspace, user)
        is_private = (channel or "").startswith("D")
        return InboundMessage("/stop", _author(person), command=CommandCall("stop"), is_private=is_private, own_text="")

    async def _text(self, text: str, workspace: Workspace) -> str:
        names = {}
        for user_id in dict.fromkeys(users_in(text)):
            person = await self._workspaces.find_person(workspace, user_id)
            names[user_id] = person.name or user_id
        return readable(text, names, workspace.bot_user_id)

    async def _earlier(
        self, event: StoredEvent, message: SlackMessage, workspace: Workspace
    ) -> tuple[InboundMessage, ...]:
        """Return what was said in a thread before the bot came to it, its first message first.

        Others may have followed a mention that was delivered late: not kept if they came before it, kept behind it.
        """
        storage = self._slack.storage
        if storage is None or not _may_be_late(event, message):
            return ()
        keys = ContextKeys.of(message.keys(is_thread=True))
        kept = await storage.read(lambda connection: list_kept_since(connection, keys, event.id))
        if kept is None:
            return ()
        try:
            answer = await workspace.ask(
                "conversations.replies", channel=message.channel_id, ts=message.root_ts, limit=str(_MAX_ASKED)
            )
        except SlackFailure as failure:
            logger.warning("slack.thread_not_read", extra={"reason": failure.code})
            return ()
        others = [each for each in items_of(answer, "messages") if field(each, "ts") not in kept]
        before = [each for each in others if _is_before(each, message, event)]
        if len(before) > _MAX_EARLIER:
            before = [before[0], *before[1 - _MAX_EARLIER :]]
        received = [await self._read_earlier(each, workspace) for each in before]
        return tuple(each for each in received if each is not None)

    async def _read_earlier(self, each: Mapping[str, Any], workspace: Workspace) -> InboundMessage | None:
        """Return an earlier message of a thread, or None if it says nothing, or is the bot's."""
        ts, user = str(each["ts"]), word(field(each, "user"))
        if user == workspace.bot_user_id:
            return None
        person = await self._workspaces.find_person(workspace, user) if user is not None else None
        words, said, shared = await self._words(each, named(files_of(each)).remarks, workspace)
        author = _author(person) if person is not None else Author(name=_name_of_bot(each))
        own = None if said == words else words
        if not said and not shared:
            return None
        is_all_own = own is None and not _holds_others(each) and is_typed(each)
        return InboundMessage(
            said,
            author,
            (),
            _moment(ts),
            ts,
            is_addressed=False,
            own_text=own,
            references=shared,
            is_all_own=is_all_own,
        )


def _holds_others(received: object) -> bool:
    """Return whether a message holds what others wrote, or may: what it shares, unfurls or quotes."""
    if field(received, "attachments"):
        return True
    blocks = items_of(received, "blocks")
    parts = [part for block in blocks for part in items_of(block, "elements")]
    is_typed = all(field(each, "type") == "rich_text" for each in blocks)
    text = field(received, "text")
    has_quotes = isinstance(text, str) and any(line.startswith("&gt;") for line in text.splitlines())
    return not is_typed or has_quotes or any(field(part, "type") == "rich_text_quote" for part in parts)


def _may_be_late(event: StoredEvent, message: SlackMessage) -> bool:
    """Return whether others may have spoken in a message's thread before the bot came to it."""
    is_late = event.received_at.timestamp() - order_of(message.ts) / 1e6 > _LATE_SECONDS
    return not message.is_direct and (message.is_reply or is_late)


def _is_before(each: object, message: SlackMessage, event: StoredEvent) -> bool:
    """Return whether a message was not for the bot to keep when it came: the bot was not in the thread yet."""
    ts = timestamp(field(each, "ts"))
    if ts is None or ts == message.ts or not isinstance(each, Mapping):
        return False
    in_thread_since = event.received_at.timestamp() - _CLOCKS_SECONDS
    return order_of(ts) < max(order_of(message.ts), int(in_thread_since * 1_000_000))


def _name_of_bot(message: Mapping[str, Any]) -> str:
    """Return what an app is called that wrote a message."""
    named = (field(message, "bot_profile", "name"), field(message, "username"))
    return next((each for each in named if isinstance(each, str) and each.strip()), "a bot")


def _author(person: Person) -> Author:
    return Author(_PLATFORM, person.account, person.name or person.id)


def _order_of(text: str) -> CommandCall | None:
    """Return the command that stands behind the slash command; "why is it so?" is a question, "why" alone is none."""
    command = parse_command(f"/{text.lstrip('/')}") if text else CommandCall("help")
    is_order = command is None or not command.arguments or text.startswith("/") or command.name in _WITH_ARGUMENTS
    return command if is_order else None


def _moment(ts: str) -> datetime:
    return datetime.fromtimestamp(order_of(ts) / 1_000_000, UTC)


def users_in(text: str) -> list[str]:
    """Return the users whom a text names, in order."""
    return [found[2] for found in _TOKEN.finditer(text) if found[1] == "@"]


def readable(text: str, names: Mapping[str, str], bot_user_id: str) -> str:
    """Return a message's text as people see it, without the bot's own name at its beginning or end."""
    bare = text
    if bot_user_id:  # some events name the bot with a label
        mention = f"<@{bot_user_id}>"
        bare = _TOKEN.sub(lambda found: mention if found[1] == "@" and found[2] == bot_user_id else found[0], text)
        bare = _without_mention(bare.strip(), mention)
    others = {each for each in users_in(text) if each != bot_user_id}
    you = bot_user_id if others else ""
    return html.unescape(_TOKEN.sub(lambda found: _read(found, names, you), bare)).strip()


def _without_mention(text: str, mention: str) -> str:
    if text.startswith(mention):
        rest = text.removeprefix(mention).lstrip(_AFTER_MENTION)
        text = text if rest.startswith("<@") and not rest.startswith(mention) else rest
    return text.removesuffix(mention).rstrip()


def files_of(event: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the files that came with a message."""
    return [each for each in items_of(event, "files") if isinstance(each, Mapping)]


def _read(found: re.Match[str], names: Mapping[str, str], you: str) -> str:
    kind, what, label = found[1], found[2], found[3]
    if kind == "@":
        return f"@{label or names.get(what, what)}{' (you)' if what == you else ''}"
    if kind == "#":
        return f"#{label or what}"
    if kind == "!":
        return label or f"@{what.partition('^')[0]}"
    address = what.removeprefix("mailto:")
    return address if not label or label in (what, address) else link(label, address)


async def is_addressed_to_bot(message: SlackMessage, workspace: Workspace, storage: Storage | None) -> bool:
    """Return whether a message in a channel is for the bot; one that names another person in a thread is not.

    In a code channel every message is, unless it names another person.
    """
    if workspace.bot_user_id in message.mentioned:
        return True
    if message.is_in_code_channel:
        return not message.mentioned
    if storage is None or not message.is_reply or message.mentioned:
        return False
    keys, account = ContextKeys.of(message.keys(is_thread=True)), account_of(workspace.team_id, message.user_id)
    return await storage.read(lambda connection: has_addressed_bot(connection, keys, account))
