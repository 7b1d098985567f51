"""The end of a turn that is not answered: whoever asked is told why."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from botservice.messages import Message, Role
from botservice.storage import Claim, Storage
from botservice.turns.outbox import write_deliveries
from botservice.turns.records import finish_turn
from botservice.turns.transport import Payload, Transport
from botservice.turns.turn import Outcome, Turn, tell_end


def plan_notice(
    transport: Transport, turn: Turn, text: str, now: datetime, *, is_personal: bool = True
) -> Sequence[Payload]:
    """Return what makes words of the service visible; they are no part of the conversation."""
    return transport.plan(Message(None, Role.SYSTEM, text, created_at=now, is_personal=is_personal), turn.events)


async def end_refused(
    storage: Storage, turn: Turn, claim: Claim, transport: Transport, text: str, now: datetime
) -> None:
    """End a turn that has begun, with words about why it is not answered."""
    payloads = plan_notice(transport, turn, text, now)

    def end(connection: Connection) -> None:
        write_deliveries(connection, turn, payloads, now)
        finish_turn(connection, turn.id, now, Outcome.REFUSED)

    await storage.write(end, fence=claim)
    tell_end(turn, Outcome.REFUSED, now)
