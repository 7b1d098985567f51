"""The start of a turn: its events are read, its authors judged, its commands obeyed, and its question is stored."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from botservice.conversation.reminder_queries import find_time_zone
from botservice.conversation.time_zones import known_zone
from botservice.core.errors import CommandFailed
from botservice.core.messages import Author, InboundMessage, Message
from botservice.core.states import Outcome
from botservice.history.queries import read_messages_of_events
from botservice.privacy.rights import right_of
from botservice.storage.claims import Claim
from botservice.storage.database import Connection
from botservice.texts.formatted import say
from botservice.turns.commands import CommandAnswer, CommandRequest, Commands, apply_all
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.edits_and_deletions import as_changed
from botservice.turns.event_queries import mark_handled
from botservice.turns.hook_events import limit_tools
from botservice.turns.listening import as_unasked
from botservice.turns.message_parts import find_earlier, read_meant
from botservice.turns.next_work import StartedTurn
from botservice.turns.paused_messages import keep_paused
from botservice.turns.queries import begin_again, begin_turns, finish_turn
from botservice.turns.run_options import RunOptions
from botservice.turns.tool_answers import as_answer
from botservice.turns.transport import ReceivedMessage, Transport, TurnMessage
from botservice.turns.turn import tell_end
from botservice.turns.turn_admission import TurnAdmission, Write, all_of
from botservice.turns.turn_messages import begin_turn, language_of

logger = logging.getLogger(__name__)


class TurnStarter:
    """Begins a turn with what was said, as far as its authors have access, and with what commands ask in its place."""

    def __init__(
        self, options: RunOptions, commands: Commands, work: StartedTurn, claim: Claim, transport: Transport
    ) -> None:
        self._options = options
        self._commands = commands
        self._turn = work.turn
        self._context = work.context
        self._controls = work.controls
        self._is_access_open = work.is_access_open
        self._claim = claim
        self._transport = transport
        self._storage = work.context.storage

    async def prepare(self) -> bool:
        """Mark the turn running and store its question; return whether the agent is to answer it."""
        options, turn, context, transport = self._options, self._turn, self._context, self._transport
        if turn.has_begun:
            await self._storage.write(partial(begin_again, turn=turn), fence=self._claim)
            return True
        is_unlimited = self._is_access_open and not options.budgets.has_rates
        read = transport.read if is_unlimited else transport.peek
        said = [(event, message) for event in turn.events if (message := await read(event)) is not None]
        if groups := {event.group_key for event, each in said if event.group_key and not each.is_addressed}:
            earlier = await find_earlier(self._storage, turn.context_id, groups, transport, before=turn.id)
            said = await read_meant(said, read, [*((each.event, each.message) for each in earlier), *said])
        said = await self._as_answers(said)
        is_plain = not self._controls.changes and all(_is_plain(message) for _, message in said)
        if is_unlimited and is_plain and context.pause is None:
            context.language = language_of([message for _, message in said])
            decided = await self._decide(said)
            if decided is None:
                return False
            inbound = as_unasked(said, options) if decided else said
            return await begin_turn(context, turn, self._claim, inbound, options, transport)
        admission = TurnAdmission(options, turn, context, transport, is_limited=not is_unlimited)
        await admission.judge(said, is_open=self._is_access_open)
        return await self._begin(admission)

    async def _begin(self, admission: TurnAdmission) -> bool:
        """Begin the turn with what its authors may say, and obey its commands; return whether the agent answers it."""
        turn, context, controls, transport = self._turn, self._context, self._controls, self._transport
        context.language = language_of([message for _, message in admission.said])
        before = context.pause
        inbound, changes = await as_changed(admission.read, admission.said, controls)
        inbound = await self._as_answers(inbound)  # an edited one was read anew
        inbound = [each for each in inbound if _may(each, admission)]
        is_unasked = await self._decide(inbound)
        if is_unasked is None:
            return False
        commands = [(event, message) for event, message in inbound if self._is_command(message)]
        if commands:
            await context.chat_history.refresh()  # a turn that begins has not read the message before it
        commands, held = await self._hold_back(commands, admission)
        answers = [(event, await self._obey(command, admission, event.id)) for event, command in commands]
        rest: list[TurnMessage] = [
            (event, said) for event, said in inbound if not self._is_command(said) and event.id not in admission.rights
        ]
        rest.extend((event, replace(answer.ask, is_whole=True)) for event, answer in answers if answer.ask is not None)
        rest, slowed = await admission.slow_down(rest)
        rest = await admission.complete(rest, controls)
        now = self._options.clock()
        rest, kept = keep_paused(rest, turn, context, transport, now, before=before, commands=commands)
        unread = admission.tell_unread(rest)
        obeyed = self._commit([answer for _, answer in answers], changes)
        away = admission.turn_away(controls)
        also = all_of([away, obeyed, slowed, held, unread, kept])
        if also is not None and (answers or held or away) and not rest:
            outcome = Outcome.ANSWERED if answers else Outcome.REFUSED
            await self._end_without_agent(also, outcome)
            is_to_answer = False
        else:
            rest = as_unasked(rest, self._options) if is_unasked else rest
            is_to_answer = await begin_turn(context, turn, self._claim, rest, self._options, transport, also=also)
        if away is not None:
            self._storage.scrub_soon()
        for _, answer in answers:
            if answer.after is not None:
                await answer.after()
        return is_to_answer

    async def _as_answers(self, said: list[ReceivedMessage]) -> list[ReceivedMessage]:
        """Return messages, as commands where they answer questions of tools; in a pause, none does."""
        context = self._context
        if not context.has_open_calls:
            return said
        pause = context.pause
        return await self._storage.read(
            lambda connection: [
                (event, message)
                if pause is not None and pause.holds(event.received_at)
                else (event, as_answer(connection, context.id, message, event.received_at))
                for event, message in said
            ]
        )

    async def _decide(self, inbound: Sequence[TurnMessage]) -> bool | None:
        """Return whether what addresses nobody is answered all the same; None if that is decided in a moment."""
        gate = self._options.gate
        if gate is None:
            return False
        return await gate.decide(inbound, self._turn, self._context, self._claim, self._options)

    async def recall(self) -> None:
        """Find the language, the asker and the tools of the turn, which goes on once more: none of them is stored."""
        turn, context, transport = self._turn, self._context, self._transport
        context.only_tools = limit_tools(()) if turn.is_of_hook else None
        context.unlimited_tools = frozenset()
        try:
            read = [await transport.peek(event) for event in turn.events if event.raw]
        except Exception:
            logger.exception("turn.language_unknown")  # it goes on in English
            return
        received = [message for message in read if message is not None]
        context.language = language_of(received)
        if turn.is_of_hook:
            context.only_tools = context.unlimited_tools = limit_tools(received)
        context.looking_at = next((each.looking_at for each in reversed(received) if each.looking_at), None)
        if turn.joined_events:
            context.question_parts = await self._read_parts()
        last = context.chat_history.last_user_message
        asking = [each for each in received if each.is_addressed and not self._is_command(each)]
        asking = asking or [each for each in received if each.is_addressed]  # of a command that asks, such as /retry
        if context.asked_by is None and asking and last is not None and asking[-1].author != last.author:
            context.asked_by = asking[-1].author or Author()

    async def _read_parts(self) -> list[Message]:
        """Return the messages of the turn's question before the last one."""
        context, event_ids = self._context, [each.id for each in self._turn.events]
        last = context.chat_history.last_user_message
        said = await self._storage.read(lambda connection: read_messages_of_events(connection, context.id, event_ids))
        return [each for each in said if last is None or each.id != last.id]

    async def _hold_back(
        self, commands: list[ReceivedMessage], admission: TurnAdmission
    ) -> tuple[list[ReceivedMessage], Write | None]:
        """Return the commands within the rate limit, and the write that tells the authors of the others."""
        counted = [each for each in commands if each[1].command and self._commands.counts(each[1].command.name)]
        if not counted:
            return commands, None
        judged, tell = await admission.slow_down(counted)
        beyond = {event.id for event, message in judged if event is not None and not message.is_addressed}
        return [each for each in commands if each[0].id not in beyond], tell

    def _is_command(self, message: InboundMessage) -> bool:
        return message.is_addressed and self._commands.takes(message)

    async def _obey(self, message: InboundMessage, admission: TurnAdmission, event_id: int) -> CommandAnswer:
        assert message.command is not None, "it is a command"  # noqa: S101 - an invariant
        context, transport = self._context, self._transport
        options, now = self._options, self._options.clock()
        role, is_let_in = admission.roles.get(event_id), event_id not in admission.rights
        author = message.author
        zone = await self._storage.read(lambda connection: find_time_zone(connection, context.id, author))
        request = CommandRequest(
            message.command,
            message,
            context,
            self._turn,
            self._claim,
            now,
            role,
            options.access,
            options.budgets,
            is_let_in,
            tools=options.agent.tools,
            open_topic=partial(transport.open_topic, context.context_keys) if transport.has_topics else None,
            capabilities=transport.capabilities,
            zone=known_zone(zone),
            gate=options.gate,
            withheld_in_groups=transport.withheld_in_groups,
            is_administrator=partial(transport.is_administrator, context.context_keys, author),
        )
        try:
            answer = await self._commands.answer(request)
        except CommandFailed:  # what else has come with it is answered all the same
            return CommandAnswer(say("answer.apology_with_retry", context.language))
        pause = None if answer.ask is None else context.pause
        is_kept = pause is not None and pause.holds(now)  # such as /retry: what it asks would not be answered
        return CommandAnswer(request.say("pause.stands")) if is_kept else answer

    def _commit(self, answers: Sequence[CommandAnswer], changes: Sequence[int]) -> Write | None:
        """Return the write that stores what commands do; neither they nor their answers enter the history."""
        if not answers and not changes:
            return None
        turn, now = self._turn, self._options.clock()
        messages = [message for answer in answers if (message := answer.as_message(now)) is not None]
        payloads = [payload for message in messages for payload in self._transport.plan(message, turn.events)]

        def write(connection: Connection) -> None:
            mark_handled(connection, changes, now)
            apply_all(connection, answers)
            if payloads:
                write_deliveries(connection, turn, payloads, now)

        return write

    async def _end_without_agent(self, also: Write, outcome: Outcome) -> None:
        turn, now = self._turn, self._options.clock()

        def end(connection: Connection) -> None:
            begin_turns(connection, [(turn.id, turn.joined_events, None, now)])
            also(connection)
            finish_turn(connection, turn.id, now, outcome)

        await self._storage.write(end, fence=self._claim)
        tell_end(turn, outcome, now)


def _may(said: ReceivedMessage, admission: TurnAdmission) -> bool:
    """Return whether a message may still be taken: it may have been edited since its author was judged."""
    event, message = said
    return event.id not in admission.rights or right_of(message) is not None


def _is_plain(message: InboundMessage) -> bool:
    """Return whether a message is for the agent, as it is."""
    return message.command is None and not message.unread
