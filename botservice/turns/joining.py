"""Parts of one question that arrive as several messages: their turns become one.

A long paste is cut by the platform, a comment comes before the messages that are forwarded with it, and an album comes
picture by picture. Each message has a turn of its own when it is accepted. Under the claim of the conversation, turns
that belong together become one: before the first of them begins, or while it waits for the model with nothing shown.
"""

from collections.abc import Sequence

from botservice.conversation.context import AgentContext
from botservice.conversation.steps import PlanningStep
from botservice.privacy.late_messages import erase_returning, read_notes
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.turns.delivery_queries import is_shown
from botservice.turns.event_queries import MAX_JOINED
from botservice.turns.queries import find_queued_turns, join_turns
from botservice.turns.run_options import RunOptions
from botservice.turns.saving import Saver
from botservice.turns.storing_questions import Spoken, clear_forgotten, read_spoken, store_spoken, task_of
from botservice.turns.transport import Transport
from botservice.turns.turn import Turn
from botservice.turns.turn_admission import TurnAdmission


def find_parts(connection: Connection, turn: Turn, transport: Transport) -> list[Turn]:
    """Return the queued turns whose messages belong to the question of a turn, in the platform's order.

    A turn of which people have seen something has no more parts.
    """
    parts, known, count = list[Turn](), list(turn.events), turn.joined_events + 1
    for queued in find_queued_turns(connection, turn.context_id, transport.name, but=turn.id):
        is_part = bool(queued.events) and all(transport.belong_together(known, event) for event in queued.events)
        if is_part and count + queued.joined_events + 1 > MAX_JOINED:
            break
        if is_part:
            count += queued.joined_events + 1
            parts.append(queued)
            known.extend(queued.events)
    return [] if parts and is_shown(connection, turn.id) else parts


def may_begin_again(context: AgentContext) -> bool:
    """Return whether the turn that has begun in a context has done nothing yet."""
    is_untouched = not context.steps_taken and context.open_step is None and context.task is not None
    return is_untouched and not any(isinstance(each, PlanningStep) for each in context.memory.steps)


async def join_queued(storage: Storage, turn: Turn, parts: Sequence[Turn], claim: Claim) -> None:
    """Make one turn of several that have not begun.

    Raises:
        TurnGrew: one of them is not what was read any more.
    """
    await storage.write(lambda connection: join_turns(connection, turn, parts), fence=claim)


async def join_running(
    context: AgentContext,
    turn: Turn,
    parts: Sequence[Turn],
    claim: Claim,
    transport: Transport,
    options: RunOptions,
    admission: TurnAdmission,
) -> None:
    """Store more messages of the question of a turn that has begun; the turn goes on with them.

    Raises:
        TurnGrew: one of the turns is not what was read any more, or a message was forgotten meanwhile.
    """
    parts = sorted(parts, key=lambda each: each.order_key)
    said, tell = await admission.read_parts(
        [event for each in parts for event in each.events], turn, context, transport
    )
    before = {event.id for each in parts if each.order_key < turn.order_key for event in each.events}
    now = options.clock()
    spoken = await read_spoken(said, now)
    _add_to_task(context, spoken, sum(event.id in before for event, _ in said))

    def write(connection: Connection, _: Sequence[int]) -> bool:
        join_turns(connection, turn, parts)
        if tell is not None:
            tell(connection)
        [stored] = store_spoken(connection, [(context.id, spoken, now)])
        notes = read_notes(connection, [(context.id, heard) for heard in spoken.heard])
        return bool(notes) and erase_returning(connection, context.id, spoken.heard, stored, notes, now)

    gone: list[bool] = []
    await Saver(context, claim).save_with(write, gone.append)
    if any(gone):
        await clear_forgotten(context, turn.id)


def _add_to_task(context: AgentContext, spoken: Spoken, before: int) -> None:
    """Add messages to the task of a turn, the first of them in front of it."""
    task = context.task
    assert task is not None, "a turn that has begun has a task"  # noqa: S101 - an invariant
    parts = [task_of(spoken.asked[:before]), task, task_of(spoken.asked[before:])]
    task.task = "\n".join(each.task for each in parts if each.task)
    task.task_images = [image for each in parts for image in each.task_images or ()] or task.task_images
