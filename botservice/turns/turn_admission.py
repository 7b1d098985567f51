"""Admission: strangers are turned away, and people who write too fast are slowed down.

What was said by a person who is turned away is not kept: neither in the history nor in the stored event.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from botservice.conversation.context import AgentContext
from botservice.core.messages import InboundMessage
from botservice.people.access_values import AccessRole, Notice, Ruling
from botservice.people.budgets import Standing, too_fast_text
from botservice.people.usage import Payer
from botservice.privacy.right_queries import may_use, use_right
from botservice.privacy.rights import Right, right_of
from botservice.storage.database import Connection
from botservice.texts.formatted import say
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.edits_and_deletions import Controls
from botservice.turns.event_queries import empty_events
from botservice.turns.message_parts import find_meant
from botservice.turns.proactive_messages import is_let_in
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Payload, ReadEvent, ReceivedMessage, Transport, TurnMessage
from botservice.turns.turn import StoredEvent, Turn
from botservice.turns.unanswered_turns import plan_notice, refusal_text, unread_text

logger = logging.getLogger(__name__)

Write = Callable[[Connection], object]


class TurnAdmission:
    """Decides which messages of a turn are admitted.

    Attributes:
        read: What messages are read with: where anything is limited, files are only named at first.
        said: The admitted messages.
        roles: What those may do who said it, by event.
        refused: What has no access.
        rights: Events in which a person who has no access asks for what is theirs, by event.
    """

    def __init__(
        self, options: RunOptions, turn: Turn, context: AgentContext, transport: Transport, *, is_limited: bool
    ) -> None:
        self.read: ReadEvent = transport.peek if is_limited else transport.read
        self.said: list[ReceivedMessage] = []
        self.roles: dict[int, AccessRole | None] = {}
        self.refused: list[tuple[StoredEvent, InboundMessage, Ruling]] = []
        self.rights: dict[int, Right] = {}
        self._access = options.access
        self._budgets = options.budgets
        self._clock = options.clock
        self._turn = turn
        self._context = context
        self._transport = transport

    async def judge(self, said: Sequence[ReceivedMessage], *, is_open: bool) -> None:
        """Admit what the events of the turn say, as far as its authors have access.

        Args:
            is_open: Whether everybody has access.
        """
        for event, message in said:
            is_judged = not is_open or message.command is not None  # what a command may do depends on who gives it
            ruling = await self._judge(message) if is_judged else None
            if ruling is not None and not ruling.is_admitted:
                right = await self._right(message)
                if right is None:
                    self.refused.append((event, message, ruling))
                else:
                    self.rights[event.id] = right
                    self.said.append((event, message))
                continue
            if ruling is not None:
                self.roles[event.id] = ruling.role
            self.said.append((event, message))

    async def complete(self, inbound: Sequence[TurnMessage], controls: Controls) -> list[TurnMessage]:
        """Return the admitted messages with their files read; until now these were only named."""
        read, meant = self._transport.read, find_meant(inbound)
        completed: list[TurnMessage] = []
        for event, message in inbound:
            whole: InboundMessage | None = None
            is_meant = event is not None and (event.is_meant or event.id in meant)
            is_owed = self.read != read and message.is_addressed and not message.is_whole
            if event is not None and (event.id in meant or is_owed):
                changes = controls.of_message(message.external_id)
                whole = await read(replace(changes[-1].event if changes else event, is_meant=is_meant))
            completed.append((event, whole or message))
        return completed

    async def read_parts(self, parts: Sequence[StoredEvent]) -> tuple[list[ReceivedMessage], Write | None]:
        """Return what further parts of a question say, all of which mean the bot, and the write that tells of them.

        Their author was admitted with the first part. Files count as one message; beyond the limit they are only named.
        """
        said = [
            (event, message)
            for event in (replace(each, is_meant=True) for each in parts)
            if (message := await self.read(event)) is not None
        ]
        unread: list[TurnMessage] = [each for each in said if not each[1].is_whole]
        judged, slowed = await self.slow_down(unread)
        in_time = {event.id for event, message in judged if event is not None and message.is_addressed}
        said = [
            (event, (await self._transport.read(event) or message) if event.id in in_time else message)
            for event, message in said
        ]
        return said, all_of([slowed, self.tell_unread(said)])

    def tell_unread(self, inbound: Sequence[TurnMessage]) -> Write | None:
        """Return what tells people which of their files were not read; None if all were."""
        names = [name for _, message in inbound for name in message.unread]
        if not names:
            return None
        now = self._clock()
        payloads = plan_notice(self._transport, self._turn, unread_text(names, self._context.language), now)
        return lambda connection: write_deliveries(connection, self._turn, payloads, now)

    def turn_away(self, controls: Controls) -> Write | None:
        """Return what tells those who have no access, and forgets what they said; None if everybody is."""
        if not self.refused and not self.rights:
            return None
        now = self._clock()
        notices = [self._plan(message, ruling, now) for _, message, ruling in self.refused]
        ids = [*(event.id for event, _, _ in self.refused), *self.rights]
        changed = [each.event.id for _, message, _ in self.refused for each in controls.of_message(message.external_id)]

        def write(connection: Connection) -> None:
            empty_events(connection, [*ids, *changed], now)
            for right in self.rights.values():
                use_right(connection, right, now)
            logger.info("turn.turned_away")
            for ruling, payloads, welcome in notices:
                if payloads and self._access.tell(connection, ruling, self._turn.id, welcome, now):
                    write_deliveries(connection, self._turn, payloads, now)

        return write

    async def slow_down(self, inbound: Sequence[TurnMessage]) -> tuple[list[TurnMessage], Write | None]:
        """Return the messages, those beyond the rate limit as not addressed, and a write that says so once a minute."""
        if not self._budgets.has_rates:
            return list(inbound), None
        context, kept = self._context, list[TurnMessage]()
        writes: list[Write] = []
        counted: dict[str, Standing | None] = {}  # what is answered together, such as an album, counts once
        for event, message in inbound:
            payer, now = Payer.of(context.id, context.context_keys, message.author), self._clock()
            if message.is_addressed and payer.person not in counted:
                beyond = await self._budgets.count_message(context.storage, payer, now)
                counted[payer.person] = beyond
                if beyond is not None:
                    payloads = plan_notice(
                        self._transport, self._turn, too_fast_text(beyond.ends_at, context.language), now
                    )
                    writes.append(self._telling_once(payer, beyond, payloads, now))
            is_beyond = message.is_addressed and counted.get(payer.person) is not None
            kept.append((event, replace(message, is_addressed=False) if is_beyond else message))
        return kept, all_of(writes)

    def _telling_once(self, payer: Payer, beyond: Standing, payloads: Sequence[Payload], now: datetime) -> Write:
        def write(connection: Connection) -> None:
            if self._budgets.note(connection, payer, beyond, now):
                write_deliveries(connection, self._turn, payloads, now)

        return write

    async def _right(self, message: InboundMessage) -> Right | None:
        """Return the right that a person who has no access may use all the same; None if none, or used today."""
        right = right_of(message)
        if right is None:
            return None
        now = self._clock()
        return right if await self._context.storage.read(lambda connection: may_use(connection, right, now)) else None

    async def _judge(self, message: InboundMessage) -> Ruling:
        context = self._context
        if message.only_tools is not None:  # nobody wrote it: the chat is what may be let in
            return Ruling(is_admitted=await is_let_in(context.storage, self._access, context.id))
        return await self._access.judge(context.storage, message, context.context_keys, self._clock())

    def _plan(
        self, message: InboundMessage, ruling: Ruling, now: datetime
    ) -> tuple[Ruling, Sequence[Payload], Sequence[Payload]]:
        """Return a refusal with its payloads, and the payloads of the welcome if they get access later."""
        text = refusal_text(ruling, message.language)
        if text is None:
            return ruling, [], []
        welcome: Sequence[Payload] = []
        if ruling.notice is Notice.CODE:
            welcome = plan_notice(self._transport, self._turn, say("access.welcome", message.language), now)
        is_personal = ruling.notice is not Notice.GROUP
        return ruling, plan_notice(self._transport, self._turn, text, now, is_personal=is_personal), welcome


def all_of(writes: Sequence[Write | None]) -> Write | None:
    """Return one write that does all of these; None if there are none."""
    wanted = [each for each in writes if each is not None]
    if not wanted:
        return None

    def write(connection: Connection) -> None:
        for each in wanted:
            each(connection)

    return write
