"""What people are told by the service itself: that they are not let in, or why something is not read or answered."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from botservice.access.values import Notice, Ruling
from botservice.messages import Message, Role
from botservice.storage import Claim, Storage
from botservice.texts import in_language
from botservice.turns.outbox import write_deliveries
from botservice.turns.records import finish_turn
from botservice.turns.transport import Payload, Transport
from botservice.turns.turn import Outcome, Turn, tell_end

_KEYS: Final = {Notice.REFUSED: "access.refused", Notice.CODE: "access.code", Notice.GROUP: "access.group"}
_MAX_NAMES: Final = 3
_MAX_CHARACTERS: Final = 60
_MARKS: Final = re.compile(r"[^\w .-]")


def plan_notice(
    transport: Transport, turn: Turn, text: str, now: datetime, *, is_personal: bool = True
) -> Sequence[Payload]:
    """Return the payloads of a message of the service itself, which is no part of the conversation."""
    return transport.plan(Message(None, Role.SYSTEM, text, created_at=now, is_personal=is_personal), turn.events)


async def end_refused(
    storage: Storage, turn: Turn, claim: Claim, transport: Transport, text: str, now: datetime
) -> None:
    """End a running turn and tell the person why it is not answered."""
    payloads = plan_notice(transport, turn, text, now)

    def end(connection: Connection) -> None:
        write_deliveries(connection, turn, payloads, now)
        finish_turn(connection, turn.id, now, Outcome.REFUSED)

    await storage.write(end, fence=claim)
    tell_end(turn, Outcome.REFUSED, now)


def refusal_text(ruling: Ruling, language: str | None) -> str:
    """Return what to tell a person who is not let in; empty for nothing."""
    key = _KEYS.get(ruling.notice)
    if key is None:
        return ""
    name = ruling.subject.name if ruling.subject is not None else "?"
    return in_language(key, language, name=name, code=ruling.code)


def unread_text(names: Sequence[str], language: str | None) -> str:
    """Return what to tell a person whose files were not read."""
    shown = [_MARKS.sub(" ", name)[:_MAX_CHARACTERS].strip() or "…" for name in names[:_MAX_NAMES]]
    more = ", …" if len(names) > _MAX_NAMES else ""
    return in_language("files.unread", language, names=", ".join(shown) + more)
