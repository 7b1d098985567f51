"""Admission: strangers are turned away, and people who write too fast are slowed down.

What was said by a person who is turned away is not kept: neither in the history nor in the stored event.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from botservice.conversation.context import AgentContext
from botservice.core.messages import InboundMessage
from botservice.core.states import EventKind
from botservice.people.access_values import AccessRole, Notice, Ruling
from botservice.people.budgets import Standing, too_fast_text
from botservice.people.usage import Payer
from botservice.privacy.note_queries import may_use, use_right
from botservice.privacy.rights import Right, right_of
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.texts.formatted import say
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.edits_and_deletions import Controls
from botservice.turns.event_queries import empty_events
from botservice.turns.message_parts import find_earlier, find_meant, read_meant
from botservice.turns.program_messages import is_let_in
from botservice.turns.run_options import RunOptions
from botservice.turns.storing_questions import Inbound, Said
from botservice.turns.transport import Payload, ReadEvent, Transport
from botservice.turns.turn import StoredEvent, Turn
from botservice.turns.unanswered_turns import plan_notice, refusal_text, unread_text

logger = logging.getLogger(__name__)

Write = Callable[[Connection], object]


@dataclass(slots=True)
class AdmittedMessages:
    """The messages of a turn, with what was decided about each.

    Attributes:
        said: The admitted messages.
        roles: What those may do who said it, by event.
        refused: What has no access.
        rights: Events in which a person who has no access asks for what is theirs, by event.
        read: What it was read with: where anything is limited, files are only named at first.
    """

    read: ReadEvent

    said: list[tuple[StoredEvent, InboundMessage]] = field(default_factory=list)
    roles: dict[int, AccessRole | None] = field(default_factory=dict)
    refused: list[tuple[StoredEvent, InboundMessage, Ruling]] = field(default_factory=list)
    rights: dict[int, Right] = field(default_factory=dict)


class TurnAdmission:
    """Decides which messages of a turn are admitted."""

    def __init__(self, storage: Storage, options: RunOptions) -> None:
        self._storage = storage
        self._access = options.access
        self._budgets = options.budgets
        self._clock = options.clock

    async def judge(
        self,
        said: Sequence[tuple[StoredEvent, InboundMessage]],
        heard: AdmittedMessages,
        context: AgentContext,
        *,
        is_open: bool,
    ) -> AdmittedMessages:
        """Return heard with what the events of a turn say, as far as its authors have access.

        Args:
            is_open: Whether everybody has access.
        """
        for event, message in said:
            is_judged = not is_open or message.command is not None  # what a command may do depends on who gives it
            ruling = await self._judge(message, context) if is_judged else None
            if ruling is not None and not is_open and not ruling.is_admitted:
                right = await self._right(message)
                if right is None:
                    heard.refused.append((event, message, ruling))
                else:
                    heard.rights[event.id] = right
                    heard.said.append((event, message))
                continue
            if ruling is not None:
                heard.roles[event.id] = ruling.role
            heard.said.append((event, message))
        return heard

    async def complete(
        self, inbound: Sequence[Inbound], heard: AdmittedMessages, controls: Controls, transport: Transport
    ) -> list[Inbound]:
        """Return the admitted messages with their files read; until now these were only named."""
        is_read, meant = heard.read == transport.read, find_meant(inbound)
        completed: list[Inbound] = []
        for event, message in inbound:
            whole: InboundMessage | None = None
            is_meant = event is not None and (event.is_meant or event.id in meant)
            is_owed = not is_read and message.is_addressed and not message.is_whole
            if event is not None and (event.id in meant or is_owed):
                changes = controls.of_message(message.external_id)
                whole = await transport.read(replace(changes[-1].event if changes else event, is_meant=is_meant))
            completed.append((event, whole or message))
        return completed

    async def read_parts(
        self, parts: Sequence[StoredEvent], turn: Turn, context: AgentContext, transport: Transport
    ) -> tuple[list[Said], Write | None]:
        """Return what further parts of a question say, all of which mean the bot, and the write that tells of them.

        Their author was admitted with the first part. Files count as one message; beyond the limit they are only named.
        """
        read = transport.peek if self._budgets.has_rates else transport.read
        said = [
            (event, message)
            for event in (replace(each, is_meant=True) for each in parts)
            if (message := await read(event)) is not None
        ]
        unread: list[Inbound] = [each for each in said if not each[1].is_whole]
        judged, slowed = await self.slow_down(unread, turn, context, transport)
        in_time = {event.id for event, message in judged if event is not None and message.is_addressed}
        said = [
            (event, (await transport.read(event) or message) if event.id in in_time else message)
            for event, message in said
        ]
        return said, all_of([slowed, self.tell_unread(said, turn, context, transport)])

    async def read_change(
        self, event: StoredEvent, claim: Claim, context_keys: Mapping[str, str], transport: Transport
    ) -> InboundMessage | None:
        """Return what a message says after a change: with its files, unless its author has sent too much for now."""
        message = await transport.peek(event)
        if message is not None and event.group_key is not None and not message.is_addressed:
            event, message = await self._as_part(event, message, claim, transport)
        if message is None or message.is_whole:
            return message
        if self._budgets.has_rates and message.is_addressed:
            payer = Payer.of(claim.context_id, context_keys, message.author)
            if await self._budgets.count_message(self._storage, payer, self._clock()) is not None:
                return message
        return await transport.read(event)

    async def _as_part(
        self, event: StoredEvent, message: InboundMessage, claim: Claim, transport: Transport
    ) -> tuple[StoredEvent, InboundMessage]:
        """Return a change of a part of a message, as one that means the bot where another part does."""
        earlier = await find_earlier(self._storage, claim.context_id, [event.group_key or ""], transport)
        parts = [*((each.event, each.message) for each in earlier), (event, message)]
        ((event, message),) = await read_meant([(event, message)], transport.peek, parts)
        return event, message

    def tell_unread(
        self, inbound: Sequence[Inbound], turn: Turn, context: AgentContext, transport: Transport
    ) -> Write | None:
        """Return what tells people which of their files were not read; None if all were."""
        names = [name for _, message in inbound for name in message.unread]
        if not names:
            return None
        now = self._clock()
        payloads = plan_notice(transport, turn, unread_text(names, context.language), now)
        return lambda connection: write_deliveries(connection, turn, payloads, now)

    def turn_away(self, heard: AdmittedMessages, turn: Turn, controls: Controls, transport: Transport) -> Write | None:
        """Return what tells those who have no access, and forgets what they said; None if everybody is."""
        if not heard.refused and not heard.rights:
            return None
        now = self._clock()
        notices = [self._plan(message, ruling, turn, transport, now) for _, message, ruling in heard.refused]
        ids = [*(event.id for event, _, _ in heard.refused), *heard.rights]
        changed = [
            each.event.id for _, message, _ in heard.refused for each in controls.of_message(message.external_id)
        ]

        def write(connection: Connection) -> None:
            empty_events(connection, [*ids, *changed], now)
            for right in heard.rights.values():
                use_right(connection, right, now)
            logger.info("turn.turned_away")
            for ruling, payloads, welcome in notices:
                if payloads and self._access.tell(connection, ruling, turn.id, welcome, now):
                    write_deliveries(connection, turn, payloads, now)

        return write

    async def slow_down(
        self,
        inbound: Sequence[tuple[StoredEvent | None, InboundMessage]],
        turn: Turn,
        context: AgentContext,
        transport: Transport,
    ) -> tuple[list[tuple[StoredEvent | None, InboundMessage]], Write | None]:
        """Return the messages, those beyond the rate limit as not addressed, and a write that says so once a minute."""
        if not self._budgets.has_rates:
            return list(inbound), None
        kept: list[tuple[StoredEvent | None, InboundMessage]] = []
        writes: list[Write] = []
        counted: dict[str, Standing | None] = {}  # what is answered together, such as an album, counts once
        for event, message in inbound:
            payer, now = Payer.of(context.id, context.context_keys, message.author), self._clock()
            if message.is_addressed and payer.person not in counted:
                beyond = await self._budgets.count_message(self._storage, payer, now)
                counted[payer.person] = beyond
                if beyond is not None:
                    payloads = plan_notice(transport, turn, too_fast_text(beyond.ends_at, context.language), now)
                    writes.append(self._telling_once(turn, payer, beyond, payloads, now))
            is_beyond = message.is_addressed and counted.get(payer.person) is not None
            kept.append((event, replace(message, is_addressed=False) if is_beyond else message))
        return kept, all_of(writes)

    def _telling_once(
        self, turn: Turn, payer: Payer, beyond: Standing, payloads: Sequence[Payload], now: datetime
    ) -> Write:
        def write(connection: Connection) -> None:
            if self._budgets.note(connection, payer, beyond, now):
                write_deliveries(connection, turn, payloads, now)

        return write

    async def turn_away_changes(
        self, controls: Controls, context_keys: Mapping[str, str], transports: Mapping[str, Transport]
    ) -> list[int]:
        """Return the ids of edits by people who have no access: nothing of these is kept either."""
        if not controls.changes:
            return []
        refused: list[int] = []
        for change in controls.changes:
            message = await transports[change.transport].peek(change.event) if change.event.raw else None
            if message is None or change.kind is EventKind.DELETE:
                continue
            ruling = await self._access.judge(self._storage, message, context_keys, self._clock())
            if not ruling.is_admitted:
                refused.append(change.event.id)
        return refused

    async def _right(self, message: InboundMessage) -> Right | None:
        """Return the right that a person who has no access may use all the same; None if none, or used today."""
        right = right_of(message)
        if right is None:
            return None
        now = self._clock()
        return right if await self._storage.read(lambda connection: may_use(connection, right, now)) else None

    async def _judge(self, message: InboundMessage, context: AgentContext) -> Ruling:
        if message.only_tools is not None:  # nobody wrote it: the chat is what may be let in
            return Ruling(is_admitted=await is_let_in(self._storage, self._access, context.id))
        return await self._access.judge(self._storage, message, context.context_keys, self._clock())

    def _plan(
        self, message: InboundMessage, ruling: Ruling, turn: Turn, transport: Transport, now: datetime
    ) -> tuple[Ruling, Sequence[Payload], Sequence[Payload]]:
        """Return a refusal with its payloads, and the payloads of the welcome if they get access later."""
        text = refusal_text(ruling, message.language)
        if text is None:
            return ruling, [], []
        welcome: Sequence[Payload] = []
        if ruling.notice is Notice.CODE:
            welcome = plan_notice(transport, turn, say("access.welcome", message.language), now)
        is_personal = ruling.notice is not Notice.GROUP
        return ruling, plan_notice(transport, turn, text, now, is_personal=is_personal), welcome


def all_of(writes: Sequence[Write | None]) -> Write | None:
    """Return one write that does all of these; None if there are none."""
    wanted = [each for each in writes if each is not None]
    if not wanted:
        return None

    def write(connection: Connection) -> None:
        for each in wanted:
            each(connection)

    return write
