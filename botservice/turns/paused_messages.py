"""What is said during a pause: it is kept and not answered, and the people there are told so once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from botservice.conversation.context import AgentContext
from botservice.conversation.pausing import Pause, note_told
from botservice.storage.database import Connection
from botservice.texts.formatted import say
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.transport import ReceivedMessage, Transport, TurnMessage
from botservice.turns.turn import Turn
from botservice.turns.turn_admission import Write
from botservice.turns.unanswered_turns import plan_notice

_SWITCHES: Final = frozenset({"pause", "resume"})


def keep_paused(
    inbound: list[TurnMessage],
    turn: Turn,
    context: AgentContext,
    transport: Transport,
    now: datetime,
    *,
    before: Pause | None,
    commands: Sequence[ReceivedMessage],
) -> tuple[list[TurnMessage], Write | None]:
    """Return the messages of a turn, those of a pause as not addressed, and the write that tells of it once.

    Args:
        before: The pause before the commands of the turn.
        commands: The commands of the turn, which may have changed it.
    """
    pause = context.pause
    if pause is None and before is None:
        return inbound, None
    switches = (event.id for event, each in commands if each.command and each.command.name in _SWITCHES)
    switch = min(switches, default=0)
    is_held = [
        there is not None and there.holds(now if event is None else event.received_at)
        for event, _ in inbound
        for there in [before if event is not None and event.id < switch else pause]
    ]
    is_asked = any(held and each.is_addressed for held, (_, each) in zip(is_held, inbound, strict=True))
    kept: list[TurnMessage] = [
        (event, replace(message, is_addressed=False) if held else message)
        for held, (event, message) in zip(is_held, inbound, strict=True)
    ]
    if not is_asked or pause is None or pause.is_told or turn.is_of_hook:
        return kept, None
    payloads = plan_notice(transport, turn, say("pause.told", context.language), now, is_personal=False)

    def tell(connection: Connection) -> None:
        if note_told(connection, context.id, pause):
            write_deliveries(connection, turn, payloads, now)

    return kept, tell
