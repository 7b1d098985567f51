"""The messages that a turn begins with: they enter history and memory as it begins, in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from botservice.conversation.context import AgentContext
from botservice.conversation.step_records import StepChanges, apply_all
from botservice.conversation.steps import TaskStep
from botservice.core.errors import TurnGrew
from botservice.core.message_references import write_out
from botservice.core.messages import Author, InboundMessage, Message, Role
from botservice.core.states import API, Outcome, TurnStatus
from botservice.history.chat_history import count_text
from botservice.history.queries import insert_messages
from botservice.history.rows import NewMessage
from botservice.people.queries import ensure_identity, note_audience
from botservice.privacy.late_messages import LateMessage, erase_returning, read_notes
from botservice.privacy.turn_queries import erase_event
from botservice.storage.blobs import loosen_all_files, store_blobs, sweep_files
from botservice.storage.claims import Claim
from botservice.storage.database import Connection
from botservice.turns.delivery_queries import owe_in_turn
from botservice.turns.hook_events import limit_tools
from botservice.turns.message_parts import show_earlier
from botservice.turns.queries import begin_turns, finish_turns, insert_turns, turn_row
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Payload, Transport, TurnMessage
from botservice.turns.turn import StoredEvent, Turn, tell_end
from botservice.turns.turn_saver import save_turn


async def begin_turn(
    context: AgentContext,
    turn: Turn,
    claim: Claim,
    inbound: Sequence[TurnMessage],
    options: RunOptions,
    transport: Transport,
    *,
    also: Callable[[Connection], object] | None = None,
) -> bool:
    """Store what a turn of a transport is asked, and mark it running; return whether it is to be answered.

    Args:
        also: What is stored in the same transaction, before anything else.
    """
    now = options.clock()
    is_told = transport.shows_history or also is not None or not options.callbacks.is_empty
    if turn.is_of_hook:
        context.only_tools = context.unlimited_tools = limit_tools(message for _, message in inbound)
    if any(event is not None and event.group_key for event, _ in inbound):
        await show_earlier(context.storage, turn, claim, inbound, transport, now)
    opening = await prepare_messages(inbound, now)
    await _save(context, claim, opening, options, turn, is_told=is_told, also=also)
    if not opening.is_addressed:
        tell_end(turn, Outcome.LISTENED, now)
    return opening.is_addressed


async def begin_program_turn(
    context: AgentContext,
    claim: Claim,
    message: InboundMessage,
    options: RunOptions,
    *,
    keeps_steps: bool,
    is_told: bool = True,
) -> Turn:
    """Store what a program asks, as a turn that runs, and return that.

    Args:
        is_told: Whether the program hears of it before its end is stored; by callbacks it does in any case.
    """
    now = options.clock()
    is_told = is_told or not options.callbacks.is_empty
    row = turn_row(context.id, API, now, status=TurnStatus.RUNNING, keeps_steps=keeps_steps)
    turn_id = await _save(context, claim, await prepare_messages([(None, message)], now), options, row, is_told=is_told)
    return Turn(turn_id, context.id, TurnStatus.RUNNING, API, 1, now, keeps_steps, created_at=now)


async def begin_task(
    context: AgentContext,
    claim: Claim,
    message: InboundMessage,
    options: RunOptions,
    *,
    transport: str,
    also: Callable[[Connection], object],
    told_first: Sequence[Payload] = (),
) -> None:
    """Store a task as a running turn that no event asks for: its message was written earlier.

    Args:
        transport: Makes the answer visible.
        also: What is stored in the same transaction, before anything else.
        told_first: The platform's messages that go out before the answer; they are stored in the same transaction.
    """
    now = options.clock()
    row = turn_row(context.id, transport, now, status=TurnStatus.RUNNING)
    opening = await prepare_messages([(None, message)], now)
    await _save(context, claim, opening, options, row, is_told=True, also=also, told_first=told_first)


@dataclass(frozen=True, slots=True)
class _TurnStart:
    """A turn that begins, and what it is asked.

    Attributes:
        turn: The turn, or the row of a new one.
        prompt: What the agent is told to be; empty where it is not asked.
        also: What is stored in the same transaction, before anything else.
        told_first: The messages that go out before its answer.
    """

    context: AgentContext
    turn: Turn | Mapping[str, Any]
    opening: "OpeningMessages"
    prompt: str
    changes: StepChanges
    now: datetime
    also: Callable[[Connection], object] | None
    told_first: Sequence[Payload]


async def _save(
    context: AgentContext,
    claim: Claim,
    opening: "OpeningMessages",
    options: RunOptions,
    turn: Turn | Mapping[str, Any],
    *,
    is_told: bool,
    also: Callable[[Connection], object] | None = None,
    told_first: Sequence[Payload] = (),
) -> int:
    now = options.clock()
    prompt = context.system_prompt_for(options.agent.prompt)
    context.looking_at = opening.looking_at
    keeps_steps = not isinstance(turn, Turn) and turn["keeps_steps"]
    task = task_of(opening.asked) if opening.is_addressed else None
    put_in = context.begin_turn(prompt, task, keeps_steps=keeps_steps)
    if opening.unasked_by is not None and context.task is not None:
        context.task.unasked_by = opening.unasked_by
    others = {id(step) for step in put_in}
    steps = [step for step in context.memory.steps if id(step) not in others] if others else context.memory.steps
    changes = context.records.changes(steps)

    prompt = prompt if opening.is_addressed else ""
    start = _TurnStart(context, turn, opening, prompt, changes, now, also, told_first)
    turn_id, stored, row_ids, is_gone = await context.storage.issue_for(
        start, _begin_all, fence=claim, sort_key=(context.id,), is_told=is_told
    )
    if is_gone:
        await clear_forgotten(context, turn_id)
    context.assign_turn(turn_id)
    context.records.confirm(changes, row_ids)
    _remember(context, opening, stored)
    await _check_forgotten(context, claim, turn_id, opening, stored)
    if put_in or context.changed_metadata() is not None:  # after the turn's own task, which is known by coming first
        await save_turn(context, claim)
    return turn_id


def _begin_all(
    connection: Connection, starts: Sequence[_TurnStart]
) -> list[tuple[int, list[Message], list[int], bool]]:
    """Begin turns.

    Returns:
        For each its id, the messages that were stored, the ids of added steps, and whether a message is forgotten.
    """
    for each in starts:
        if each.also is not None:
            each.also(connection)
    turn_ids = _begin_turns(connection, starts)
    for each, turn_id in zip(starts, turn_ids, strict=True):
        if each.told_first:
            owe_in_turn(connection, turn_id, each.told_first, each.now)
    stored = store_messages(connection, [(each.context.id, each.opening, each.now) for each in starts])
    notes = read_notes(
        connection, [(each.context.id, received) for each in starts for received in each.opening.received]
    )
    of_records = zip(starts, turn_ids, strict=True)
    row_ids = apply_all(connection, [(each.context.records, each.changes, turn_id) for each, turn_id in of_records])
    is_gone = [
        bool(notes) and erase_returning(connection, each.context.id, each.opening.received, kept, notes, each.now)
        for each, kept in zip(starts, stored, strict=True)
    ]
    return list(zip(turn_ids, stored, row_ids, is_gone, strict=True))


def _begin_turns(connection: Connection, starts: Sequence[_TurnStart]) -> list[int]:
    """Store new turns, and mark the others running; return the ids of all."""
    prompts = [(each.context.id, each.prompt.encode("utf-8", "replace")) for each in starts if each.prompt]
    digests = iter(store_blobs(connection, prompts) if prompts else ())
    begun: list[tuple[int, int, str | None, datetime]] = []
    ended: list[tuple[int, datetime]] = []
    rows: list[dict[str, Any]] = []
    for each in starts:
        prompt = next(digests) if each.prompt else None
        if not isinstance(each.turn, Turn):
            rows.append({**each.turn, "system_prompt": prompt})
            continue
        begun.append((each.turn.id, each.turn.joined_events, prompt, each.now))
        if not each.opening.is_addressed:
            ended.append((each.turn.id, each.now))
    begin_turns(connection, begun)
    if ended:
        finish_turns(connection, ended, Outcome.LISTENED)
    new = iter(insert_turns(connection, rows))
    return [each.turn.id if isinstance(each.turn, Turn) else next(new) for each in starts]


async def clear_forgotten(context: AgentContext, turn_id: int) -> NoReturn:
    """Remove the rest of messages that were forgotten while a turn began with them.

    Raises:
        TurnGrew: always: the turn is read again, without them.
    """
    await sweep_files(context.storage)
    context.storage.scrub_soon()
    raise TurnGrew(f"what turn {turn_id} was about to begin with is forgotten")


def _remember(context: AgentContext, opening: "OpeningMessages", stored: Sequence[Message]) -> None:
    """Remember the newest stored message, and, of several, the one that addresses the bot."""
    if stored:
        context.chat_history.remember_last(stored[-1])
    if len(stored) > 1:
        asked = {id(each) for each in opening.asked}
        said = [kept for kept, each in zip(stored, opening.new, strict=True) if id(each) in asked]
        context.question_parts = said[:-1]
        _note_asker(
            context, [kept for kept, each in zip(stored, opening.new, strict=True) if each is opening.addressed]
        )


@dataclass(slots=True)
class OpeningMessages:
    """The messages at the beginning of a turn.

    Attributes:
        new: All that enters the history, in its order.
        asked: What of it the turn is about; the rest was said before.
        received: For each of new, which event brought it.
        addressed: The newest of them by which the bot is meant.
        is_private: No other person was there.
        looking_at: What the person has open.
        unasked_by: The model that decided to answer, where the bot is not meant.
    """

    new: Sequence[NewMessage]
    asked: Sequence[NewMessage]
    received: Sequence[LateMessage | None]
    addressed: NewMessage | None = None
    is_private: bool = True
    looking_at: str | None = None
    unasked_by: str | None = None

    @property
    def is_addressed(self) -> bool:
        """Whether the bot is meant by any of it."""
        return self.addressed is not None


async def prepare_messages(inbound: Sequence[TurnMessage], now: datetime) -> OpeningMessages:
    """Return what messages add to the history."""
    new, asked, received = list[NewMessage](), list[NewMessage](), list[LateMessage | None]()
    opening = OpeningMessages(new, asked, received)
    for event, message in inbound:
        new += [await _new_message(earlier, None, now) for earlier in message.before]
        asked.append(await _new_message(message, event, now))
        new.append(asked[-1])
        opening.addressed = asked[-1] if message.is_addressed else opening.addressed
        opening.is_private &= message.is_private
        opening.looking_at = message.looking_at or opening.looking_at
        opening.unasked_by = opening.unasked_by or message.unasked_by
        received += [_heard(event, each) for each in new[len(received) :]]
    return opening


def store_messages(
    connection: Connection, given: Sequence[tuple[int, OpeningMessages, datetime]]
) -> list[list[Message]]:
    """Add messages to the histories of their contexts, and remember who was there."""
    for context_id, opening, now in given:
        seen = [(each.author, ensure_identity(connection, each.author, now)) for each in opening.new]
        note_audience(connection, context_id, seen, is_private=opening.is_private)
    stored = iter(
        insert_messages(connection, [(context_id, new) for context_id, opening, _ in given for new in opening.new])
    )
    return [[next(stored) for _ in opening.new] for _, opening, _ in given]


def _note_asker(context: AgentContext, addressed: Sequence[Message]) -> None:
    """Remember who asks if the last message of a turn is not the one that asks."""
    last = context.chat_history.last_user_message
    for message in addressed:
        if context.asked_by is None and last is not None and message.id != last.id:
            context.asked_by = message.author or Author()


def _heard(event: StoredEvent | None, new: NewMessage) -> LateMessage | None:
    return None if event is None else LateMessage(event.id, event.received_at, new.author, new.references)


async def _new_message(message: InboundMessage, event: StoredEvent | None, now: datetime) -> NewMessage:
    counter, count = await count_text(message.full_text)
    return NewMessage(
        role=Role.USER,
        text=message.text,
        created_at=message.created_at or now,
        author=message.author,
        attachments=message.attachments,
        token_count=count,
        token_encoding=counter.name,
        external_id=message.external_id,
        event_id=None if event is None else event.id,
        own_text=message.own_text,
        references=message.references,
        is_all_own=message.is_all_own is True,
    )


async def _check_forgotten(
    context: AgentContext, claim: Claim, turn_id: int, opening: OpeningMessages, stored: Sequence[Message]
) -> None:
    """Remove the words of people who were forgotten meanwhile from what a turn is asked."""
    if not any(each.references for each in stored):
        return
    asked = [kept for kept, each in zip(stored, opening.new, strict=True) if any(each is one for one in opening.asked)]
    if any(held.is_erased for each in asked for held in each.references):
        await _go_on_without_forgotten(context, claim, turn_id, asked)


async def _go_on_without_forgotten(
    context: AgentContext, claim: Claim, turn_id: int, received: Sequence[Message]
) -> None:
    """Remove the words of a forgotten person from the question of a turn that begins again."""
    if context.task is not None:
        left = task_of(received)
        context.task.task, context.task.task_images = left.task, left.task_images
        await save_turn(context, claim)

    def erase(connection: Connection) -> None:
        erase_event(connection, turn_id)
        loosen_all_files(connection, context.id)

    await context.storage.write(erase, fence=claim)
    await sweep_files(context.storage)
    context.storage.scrub_soon()


def language_of(messages: Sequence[InboundMessage]) -> str | None:
    """Return the author's language as two letters, or None if no message says it."""
    opening = next((message.language for message in messages if message.language), None)
    return opening and opening.partition("-")[0].lower()


def task_of(new: Sequence[NewMessage | Message]) -> TaskStep:
    """Return what messages ask of the agent."""
    images = [each for message in new for each in message.attachments if each.mime_type.startswith("image/")]
    text = "\n".join(write_out(each.text, each.references) if each.references else each.text for each in new)
    return TaskStep(text, task_images=images) if images else TaskStep(text)
