"""Every statement of deliveries: pending ones, those in transit, and those that platforms refused."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import CursorResult, and_, bindparam, case, exists, func, insert, literal, null, select, update

from botservice.core.states import API, DeliveryKind, DeliveryStatus
from botservice.people.names import HOOKS
from botservice.storage.database import Connection
from botservice.storage.statements import execute_each, is_of
from botservice.storage.tables.conditions import (
    DELIVERY_HAS_BUTTONS,
    DELIVERY_IS_ATTEMPTED,
    DELIVERY_IS_MESSAGE,
    DELIVERY_IS_OWED,
    DELIVERY_IS_PENDING,
    TURN_IS_COMPACTED,
    of_alias,
)
from botservice.storage.tables.conversations import deliveries, events, turns
from botservice.turns.buttons import Offered, read_buttons
from botservice.turns.queries import when_due_was_set
from botservice.turns.transport import BUTTONS, Payload
from botservice.turns.turn import Delivery, Turn, set_due

_TO_BE_SENT: Final = (DeliveryKind.MESSAGE, DeliveryKind.UNPLANNED)
_UPDATE = update(deliveries).where(deliveries.c.id == bindparam("row"))
# Whoever lost the conversation may have noted meanwhile that its message was sent.
_BEGIN = _UPDATE.where(DELIVERY_IS_OWED).values(status=DeliveryStatus.ATTEMPTING.value).returning(deliveries.c.id)
# What was forgotten while it was owed is not kept once it is sent.
_IS_FORGOTTEN = exists().where(turns.c.id == deliveries.c.turn_id, TURN_IS_COMPACTED)
_FINISH = _UPDATE.values(
    payload=case((_IS_FORGOTTEN, literal({}, deliveries.c.payload.type)), else_=deliveries.c.payload),
    buttons=case((_IS_FORGOTTEN, null()), else_=deliveries.c.buttons),
)
# Without the right to a conversation: nobody has tried to send it since.
_FINISH_OWN_TRY = _FINISH.where(DELIVERY_IS_ATTEMPTED, deliveries.c.attempts == bindparam("tries"))
_NAME_STREAM = _UPDATE.where(deliveries.c.external_id.is_(None))
_INSERT = insert(deliveries).returning(deliveries.c.id, sort_by_parameter_order=True)
_replaced = deliveries.alias("replaced")
# What stands in the place of another message goes out after that one: by then its id is known.
_REPLACED = select(_replaced.c.external_id).where(_replaced.c.id == deliveries.c.replaces).scalar_subquery()
_ACCEPTED = select(turns.c.created_at).where(turns.c.id == deliveries.c.turn_id).scalar_subquery()
_NEXT: Final = (
    select(
        deliveries.c.id,
        deliveries.c.turn_id,
        deliveries.c.transport,
        deliveries.c.kind,
        deliveries.c.payload,
        deliveries.c.attempts,
        deliveries.c.due_at,
        func.coalesce(deliveries.c.external_id, _REPLACED).label("external_id"),
        deliveries.c.replaces,
        deliveries.c.created_at,
        _ACCEPTED.label("turn_created_at"),
        when_due_was_set(deliveries),
    )
    .where(
        DELIVERY_IS_OWED,
        is_of(deliveries, bindparam("context")),
        deliveries.c.transport.in_(bindparam("transports", expanding=True)),
        DELIVERY_IS_MESSAGE,
    )
    .order_by(deliveries.c.id)
    .limit(1)
)
_OWED = (
    select(*deliveries.c["id", "context_id", "turn_id", "kind", "status", "external_id"])
    .where(DELIVERY_IS_OWED, deliveries.c.context_id.in_(bindparam("contexts", expanding=True)))
    .order_by(deliveries.c.id)
)


def begin_delivery(connection: Connection, delivery_id: int, attempts: int, content: Mapping[str, Any]) -> bool:
    """Mark a delivery as on its way; return False if it is not owed any more.

    Args:
        content: The columns of what is sent, where these are not stored yet.
    """
    change = {"row": delivery_id, "attempts": attempts, **content}
    return connection.execute(_BEGIN, change).one_or_none() is not None


def change_delivery(connection: Connection, change: Mapping[str, Any]) -> None:
    """Store a change of a delivery; where it ends, what was forgotten of it meanwhile is not kept.

    Args:
        change: The new columns, with its id as `row`.
    """
    connection.execute(_FINISH if "finished_at" in change else _UPDATE, change)


def note_own_try_delivered(connection: Connection, change: Mapping[str, Any]) -> None:
    """Store that a message was sent, without the right to its conversation: unless a process has tried since.

    Args:
        change: As of `change_delivery`, with the number of this try as `tries`.
    """
    connection.execute(_FINISH_OWN_TRY, change)


def find_or_insert_stream(connection: Connection, turn: Turn, now: datetime) -> tuple[int, str | None]:
    """Return the open stream of a turn, with its platform's id where one is known; store one where there is none."""
    known = _find_stream(_find_owed(connection, [turn.context_id]), turn.id)
    if known is not None:
        return known.id, known.external_id
    row = {"context_id": turn.context_id, "turn_id": turn.id, "transport": turn.platform, "payload": {}}
    state = {"kind": DeliveryKind.STREAM.value, "status": DeliveryStatus.ATTEMPTING.value, "attempts": 1}
    return connection.execute(_INSERT, [{**row, **state, "due_at": now, "created_at": now}]).scalar_one(), None


def name_stream(connection: Connection, change: Mapping[str, Any]) -> None:
    """Store the platform's id of a stream that has none."""
    connection.execute(_NAME_STREAM, change)


def write_deliveries(connection: Connection, turn: Turn, payloads: Sequence[Payload], now: datetime) -> list[Delivery]:
    """Store the deliveries of a message, and return them in order. An open stream of the turn becomes the first."""
    return _write(connection, [_New(turn, payloads, now, _find_owed(connection, [turn.context_id]))])[0]


def begin_deliveries(
    connection: Connection, answers: Sequence[tuple[Turn, Sequence[Payload], datetime]]
) -> list[Delivery | None]:
    """Store the deliveries of answers, and return for each the first one, for the caller to send at once.

    It counts as on its way from this commit on. None if the context owes something older, which comes first.
    """
    context_ids = {turn.context_id for turn, payloads, _ in answers if turn.transport != API or payloads}
    owed = _find_owed(connection, list(context_ids)) if context_ids else ()
    new: list[_New] = []
    for turn, payloads, now in answers:
        of_context = [row for row in owed if row.context_id == turn.context_id]
        is_next = not any(row.kind in _TO_BE_SENT for row in of_context)
        new.append(_New(turn, payloads, now, of_context, has_begun=is_next))
    written = _write(connection, new)
    return [rows[0] if rows and each.has_begun else None for each, rows in zip(new, written, strict=True)]


@dataclass(frozen=True, slots=True)
class _New:
    """Messages of a turn that are about to be stored.

    Attributes:
        owed: What its context owes until now.
        has_begun: Whether the first of them is on its way.
    """

    turn: Turn
    payloads: Sequence[Payload]
    now: datetime
    owed: Sequence[Any]
    has_begun: bool = False


def _write(connection: Connection, given: Sequence[_New]) -> list[list[Delivery]]:
    """Store the messages of turns and return them."""
    rows: list[dict[str, Any]] = []
    written: list[list[tuple[int | None, str | None, Payload]]] = []
    for new in given:
        stream = _find_stream(new.owed, new.turn.id)
        of_turn = {"context_id": new.turn.context_id, "turn_id": new.turn.id, "transport": new.turn.platform}
        shown: list[tuple[int | None, str | None, Payload]] = []
        for payload in new.payloads:
            values = _values(payload, new.now, is_sent=new.has_begun and not shown)
            if stream is not None and stream.external_id is not None and not shown:
                connection.execute(_UPDATE, {"row": stream.id, **values})
                shown.append((stream.id, stream.external_id, values["payload"]))
            else:
                rows.append({**values, **of_turn, "created_at": new.now})
                shown.append((None, None, values["payload"]))
        if stream is not None and (stream.external_id is None or not shown):
            cut_off = {"status": DeliveryStatus.FAILED.value, "error": "cut off", "finished_at": new.now}
            connection.execute(_UPDATE, {"row": stream.id, **cut_off})
        written.append(shown)
    ids = iter(connection.execute(_INSERT, rows).scalars().all() if rows else ())
    return [
        [
            _pending(new, next(ids) if row_id is None else row_id, external_id, payload)
            for row_id, external_id, payload in shown
        ]
        for new, shown in zip(given, written, strict=True)
    ]


def _pending(new: _New, row_id: int, external_id: str | None, payload: Payload) -> Delivery:
    turn, kind, is_all = new.turn, DeliveryKind.MESSAGE, len(new.payloads) == 1
    of_row = (row_id, turn.id, turn.platform, kind, payload, 0, new.now, external_id)
    return Delivery(*of_row, created_at=new.now, is_all=is_all)


def note_delivered(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Sequence[None]:
    """Store that messages were sent."""
    execute_each(connection, _FINISH, rows)
    return [None] * len(rows)


def _values(payload: Payload, now: datetime, *, is_sent: bool) -> dict[str, Any]:
    """Return the columns of a message that is to be sent, or is on its way."""
    return {
        "kind": DeliveryKind.MESSAGE.value,
        "status": DeliveryStatus.ATTEMPTING.value if is_sent else DeliveryStatus.PENDING.value,
        **content_columns(payload),
        "attempts": int(is_sent),
        **set_due(now, now),
    }


def content_columns(payload: Payload) -> dict[str, Any]:
    """Return the columns with the payload and its buttons, by which a press is understood."""
    content = dict(payload)
    buttons = content.pop(BUTTONS, None)
    return {"payload": content, "buttons": buttons}


def find_next_delivery(connection: Connection, context_id: int, transports: Collection[str]) -> Delivery | None:
    """Return the first delivery of a context that is still owed; a stream that is open is its turn's."""
    return _read_delivery(connection.execute(_NEXT, {"context": context_id, "transports": list(transports)}))


def _read_delivery(found: CursorResult[Any]) -> Delivery | None:
    """Return the delivery that a query as `_NEXT` has found."""
    row = found.one_or_none()
    if row is None:
        return None
    return Delivery(
        row.id,
        row.turn_id,
        row.transport,
        DeliveryKind(row.kind),
        row.payload,
        row.attempts,
        row.due_at,
        row.external_id,
        row.due_set_at,
        row.replaces is not None,
        row.created_at,
        row.turn_created_at,
    )


def _find_owed(connection: Connection, context_ids: Sequence[int]) -> Sequence[Any]:
    return connection.execute(_OWED, {"contexts": context_ids}).all()


def _find_stream(owed: Sequence[Any], turn_id: int) -> Any | None:
    """Return the newest open stream of a turn."""
    streams = (row for row in reversed(owed) if row.turn_id == turn_id and row.kind == DeliveryKind.STREAM.value)
    return next((row for row in streams if row.status == DeliveryStatus.ATTEMPTING.value), None)


# Long answers: what is dropped after a stop, and whose part goes first where several people wait
_earlier = deliveries.alias("earlier")
_others = deliveries.alias("others")
_OTHERS_ARE_PENDING = and_(of_alias(DELIVERY_IS_OWED, "others"), of_alias(DELIVERY_IS_PENDING, "others"))

# Messages of answers of which some have gone out, or are on their way, whose questions came before the stop.
_STOPPED = and_(
    deliveries.c.context_id == bindparam("context"),
    deliveries.c.kind == DeliveryKind.MESSAGE.value,
    DELIVERY_IS_OWED,
    DELIVERY_IS_PENDING,
    deliveries.c.replaces.is_(None),  # what says that a question is over is no answer
    exists().where(turns.c.id == deliveries.c.turn_id, turns.c.order_key < bindparam("stop")),
    exists().where(_earlier.c.turn_id == deliveries.c.turn_id, _earlier.c.id < deliveries.c.id),
)
_DROP = (
    update(deliveries)
    .where(_STOPPED)
    .values(status=DeliveryStatus.FAILED.value, error="stopped", finished_at=bindparam("now"))
    .execution_options(synchronize_session=False)
)
_FAIREST = _NEXT.order_by(None).order_by(
    select(func.count())
    .select_from(_others)
    .where(_others.c.context_id == bindparam("context"), _others.c.turn_id == deliveries.c.turn_id, _OTHERS_ARE_PENDING)
    .scalar_subquery(),
    deliveries.c.id,
)


def drop_stopped(connection: Connection, context_id: int, stop: int, now: datetime) -> None:
    """Drop the unsent messages of answers that were stopped.

    Args:
        stop: The order key of that wish.
    """
    connection.execute(_DROP, {"context": context_id, "stop": stop, "now": now})


def find_fairest_delivery(connection: Connection, context_id: int, transports: Collection[str]) -> Delivery | None:
    """Return the next message of a context if several people wait: of the answer with the fewest left."""
    return _read_delivery(connection.execute(_FAIREST, {"context": context_id, "transports": list(transports)}))


# Messages that no answer brings: what a chat is told later, and what stands in the place of what it was shown
_INSERT_NOTICE = insert(deliveries)
_LAY_OFF = (
    update(deliveries)
    .where((deliveries.c.id == bindparam("row")) | (deliveries.c.replaces == bindparam("row")))
    .where(deliveries.c.turn_id == bindparam("turn"))
    .values(buttons=None)
)
_TAKE_BACK = update(deliveries).where(deliveries.c.turn_id == bindparam("turn"), deliveries.c.finished_at.is_not(None))
_CHAT_OF_TURN = select(turns.c.context_id, turns.c.transport).where(turns.c.id == bindparam("turn"))


def take_back(connection: Connection, turn_id: int) -> None:
    """Empty what was told of a turn whose question is asked again: no page shows it any more."""
    connection.execute(_TAKE_BACK, {"turn": turn_id, "payload": {}})


def owe_in_turn(connection: Connection, turn_id: int, payloads: Sequence[Payload], now: datetime) -> None:
    """Store messages for the chat of an ended turn; nothing happens if the turn is gone."""
    turn = connection.execute(_CHAT_OF_TURN, {"turn": turn_id}).one_or_none()
    if turn is None:
        return
    platform = turn.transport.removeprefix(HOOKS)
    for payload in payloads:
        _owe(connection, turn.context_id, turn_id, platform, content_columns(payload), now)


def owe_unplanned(
    connection: Connection, context_id: int, turn_id: int, transport: str, payload: Payload, now: datetime
) -> None:
    """Store a program's message, which its platform plans before the first try."""
    _owe(connection, context_id, turn_id, transport, {"payload": payload}, now, kind=DeliveryKind.UNPLANNED)


def owe_in_place(connection: Connection, turn: Turn, delivery_id: int, payload: Payload, now: datetime) -> None:
    """Store a replacement of a message that was sent, or is about to be; the old buttons do nothing any more."""
    connection.execute(_LAY_OFF, {"row": delivery_id, "turn": turn.id})
    asked = connection.execute(select(deliveries.c.status).where(deliveries.c.id == delivery_id)).scalar_one_or_none()
    if asked is None or asked == DeliveryStatus.FAILED.value:
        return  # nobody has seen it
    shown = {**content_columns(payload), "replaces": delivery_id}
    _owe(connection, turn.context_id, turn.id, turn.platform, shown, now)


def _owe(
    connection: Connection,
    context_id: int,
    turn_id: int,
    transport: str,
    content: Mapping[str, Any],
    now: datetime,
    *,
    kind: DeliveryKind = DeliveryKind.MESSAGE,
) -> None:
    of_turn = {"context_id": context_id, "turn_id": turn_id, "transport": transport, "created_at": now}
    state = {"kind": kind.value, "status": DeliveryStatus.PENDING.value, "attempts": 0, **set_due(now, now)}
    connection.execute(_INSERT_NOTICE, {**of_turn, **state, **content})


_IS_SHOWN = select(exists().where(deliveries.c.turn_id == bindparam("turn")))


def is_shown(connection: Connection, turn_id: int) -> bool:
    """Return whether people have seen something of a turn, or are about to."""
    return bool(connection.execute(_IS_SHOWN, {"turn": turn_id}).scalar_one())


# Buttons under messages


def owes_buttons(connection: Connection, context_id: int) -> bool:
    """Return whether some buttons are on their way or wait to be sent: they may have arrived without a word of it."""
    owed = select(deliveries.c.id).where(DELIVERY_IS_OWED, DELIVERY_HAS_BUTTONS, deliveries.c.context_id == context_id)
    return connection.execute(owed.limit(1)).first() is not None


def has_arrived(connection: Connection, context_id: int, transport: str, message_id: str) -> bool:
    """Return whether a message is known to have arrived, with or without buttons."""
    is_it = deliveries.c.external_id == message_id, deliveries.c.transport == transport
    arrived = select(deliveries.c.id).where(deliveries.c.context_id == context_id, *is_it)
    return connection.execute(arrived.limit(1)).first() is not None


def find_offered(connection: Connection, context_id: int, transport: str, message_id: str) -> Offered | None:
    """Return the buttons under a message, or None if it is not known to have any."""
    is_it = deliveries.c.external_id == message_id, deliveries.c.transport == transport
    arrived = (
        select(deliveries.c.turn_id, deliveries.c.buttons)
        .where(deliveries.c.context_id == context_id, *is_it, DELIVERY_HAS_BUTTONS)
        .order_by(deliveries.c.id.desc())
        .limit(1)
    )
    row = connection.execute(arrived).one_or_none()
    if row is None:
        return None
    asked = select(events.c.raw).where(events.c.turn_id == row.turn_id, events.c.raw.is_not(None))
    return Offered(read_buttons(row.buttons), connection.execute(asked).scalars().all())
