"""The turns that a program runs: found and loaded for it, and ended as it asked."""

import contextlib
from dataclasses import replace
from functools import partial

from botservice.conversation.context import AgentContext
from botservice.conversation.snapshots import Snapshot, read_snapshot
from botservice.core.errors import BudgetExceeded, LLMError, RunInterrupted, TurnWaiting
from botservice.core.messages import Message
from botservice.core.states import API, Outcome, TurnStatus
from botservice.storage.claims import Claim
from botservice.storage.database import Connection
from botservice.telemetry.logs import redact
from botservice.turns.agent_run import AgentRun
from botservice.turns.call_queries import find_due_turn
from botservice.turns.finding_queries import find_failed_turn, find_running_turn, find_turn
from botservice.turns.program_claims import open_storage
from botservice.turns.queries import begin_again, finish_turn, reopen_turn
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Live
from botservice.turns.turn import Turn, tell_end


async def finish_turn_of_program(
    context: AgentContext, turn: Turn, claim: Claim, options: RunOptions, live: Live | None = None
) -> Message:
    """Run a turn to its answer; one whose model or budget fails is set aside, for `resume` to try again."""
    run = AgentRun(options, context, turn, claim, live=live)
    try:
        return await run.finish()
    except (LLMError, BudgetExceeded) as error:
        now = options.clock()
        end = partial(finish_turn, status=TurnStatus.SET_ASIDE, error=redact(str(error)))
        await open_storage(context).write(partial(end, turn_id=turn.id, now=now, outcome=Outcome.FAILED), fence=claim)
        tell_end(turn, Outcome.FAILED, now)
        raise


async def finish_cut_off_turn(context: AgentContext, claim: Claim, options: RunOptions) -> None:
    """Finish the turn of a context that was interrupted, if there is one; the next question has its turn after it."""
    put_in = context.unsaved_steps()
    context.memory.clear()
    try:
        turn = await load_running_turn(context, with_steps=False)
        if turn is None:
            return
        await open_storage(context).write(partial(begin_again, turn=turn), fence=claim)
        # It is set aside then, and what comes next has its turn.
        with contextlib.suppress(LLMError, BudgetExceeded, RunInterrupted, TurnWaiting):
            await finish_turn_of_program(context, turn, claim, options)
    finally:
        context.memory.steps.extend(put_in)  # they are for what comes next


async def load_running_turn(context: AgentContext, *, with_steps: bool = True) -> Turn | None:
    """Bring context up to date, for a new question if so wanted and no turn runs there; return its running turn."""

    def read(connection: Connection) -> tuple[Turn | None, Snapshot | None]:
        if with_steps:
            return find_running_turn(connection, context.id), None
        snapshot = read_snapshot(connection, context.id, with_steps=False, with_last_message=False)
        return (find_running_turn(connection, context.id) if snapshot.has_running_turn else None), snapshot

    turn, snapshot = await open_storage(context).read(read)
    if turn is None and snapshot is not None:
        context.show(snapshot)
    else:
        await context.refresh(None if turn is None else turn.id)
    return turn


async def load_due_turn(context: AgentContext, options: RunOptions) -> Turn | None:
    """Return the turn of a program that has waited and may go on, and bring context up to date for it."""
    now = options.clock()

    def find(connection: Connection) -> Turn | None:
        turn_id = find_due_turn(connection, context.id, [API], now)
        return None if turn_id is None else find_turn(connection, context.id, turn_id)

    turn = await open_storage(context).read(find)
    if turn is not None:
        await context.refresh(turn.id)
    return turn


async def reopen_failed_turn(context: AgentContext, claim: Claim, options: RunOptions) -> Turn | None:
    """Return the turn of a program that was set aside, open again; None if there is none."""
    storage = open_storage(context)
    turn = await storage.read(lambda connection: find_failed_turn(connection, context.id, API))
    if turn is None:
        return None
    now = options.clock()
    await storage.write(lambda connection: reopen_turn(connection, turn.id, now), fence=claim)
    return replace(turn, status=TurnStatus.RUNNING, attempts=1, failures=0)
