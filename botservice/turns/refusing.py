"""What people are told by the service itself: that they have no access, or why something is not read or answered."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Message, Role
from botservice.core.quoting import shortened
from botservice.core.states import Outcome
from botservice.people.access_values import Notice, Ruling
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.texts.formatted import line, quoted, say
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.queries import finish_turn
from botservice.turns.transport import Payload, Transport
from botservice.turns.turn import Turn, tell_end

_KEYS: Final = {Notice.REFUSED: "access.refused", Notice.CODE: "access.code", Notice.GROUP: "access.group"}
_MAX_NAMES: Final = 3
_MAX_CHARACTERS: Final = 60


def plan_notice(
    transport: Transport, turn: Turn, text: FormattedText, now: datetime, *, is_personal: bool = True
) -> Sequence[Payload]:
    """Return the payloads of a message of the service itself, which is no part of the conversation."""
    notice = Message(None, Role.SYSTEM, text.plain, created_at=now, is_personal=is_personal, formatted=text)
    return transport.plan(notice, turn.events)


async def end_refused(
    storage: Storage, turn: Turn, claim: Claim, transport: Transport, text: FormattedText, now: datetime
) -> None:
    """End a running turn and tell the person why it is not answered."""
    payloads = plan_notice(transport, turn, text, now)

    def end(connection: Connection) -> None:
        write_deliveries(connection, turn, payloads, now)
        finish_turn(connection, turn.id, now, Outcome.REFUSED)

    await storage.write(end, fence=claim)
    tell_end(turn, Outcome.REFUSED, now)


def refusal_text(ruling: Ruling, language: str | None) -> FormattedText | None:
    """Return what to tell a person who has no access; None for nothing."""
    key = _KEYS.get(ruling.notice)
    if key is None:
        return None
    name = ruling.subject.name if ruling.subject is not None else "?"
    return say(key, language, name=name, code=ruling.code or "")


def unread_text(names: Sequence[str], language: str | None) -> FormattedText:
    """Return what to tell a person whose files were not read."""
    shown = [quoted(shortened(name, _MAX_CHARACTERS), "…") for name in names[:_MAX_NAMES]]
    more = [", …"] if len(names) > _MAX_NAMES else []
    listed = [part for each in shown for part in (", ", each)][1:]
    return say("files.unread", language, names=line(*listed, *more))
