"""The inspector: what is kept of every conversation, to be read; nothing of it can be changed, and notes be deleted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, func, select
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from botservice.commands.notes import erase_note
from botservice.errors import StorageError, StorageUnavailable
from botservice.history.notes import read_notes
from botservice.memory import FailedStep, MemoryItem, TaskStep
from botservice.memory.replay import visible
from botservice.overview import TurnRecord, list_contexts, read_turns
from botservice.storage import Storage
from botservice.storage.references import full_text_of
from botservice.storage.tables.conversations import contexts, deliveries, messages, steps, turns
from botservice.turns.waiting.records import find_of_turn, list_waiting
from transports.web.entering.gate import path_number
from transports.web.inspector.steps import show_steps, show_text
from transports.web.inspector.waiting import show_waiting
from transports.web.pages import Pages
from transports.web.refusal import Refusal

PAGE: Final = 50

_EXCERPT: Final = 300  # characters
_NOT_THERE: Final = "This is not there, or not any more."


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn in a line.

    Attributes:
        state: Its status, and its outcome where it has one.
        steps: How many times tools were run.
    """

    id: int
    state: str
    transport: str
    question: str
    answer: str
    steps: int
    created_at: datetime
    seconds: float | None


class Inspector:
    """The endpoints of the inspector."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._storage: Storage | None = None

    def connect(self, storage: Storage) -> None:
        """Look into storage from now on."""
        self._storage = storage

    async def list_contexts(self, request: Request) -> Response:
        """Answer with the conversations, those with the newest messages first."""
        page = _page(request)
        storage = self._opened()
        found = await list_contexts(storage, limit=PAGE + 1, offset=page * PAGE)
        context_ids = [each.id for each in found]
        last = await storage.read(lambda connection: _read_last_messages(connection, context_ids), is_long=True)
        waiting = await list_waiting(storage) if page == 0 else []
        return self._pages.show(
            "inspect_contexts.html",
            waiting=show_waiting(waiting[:PAGE]),
            more_waiting=len(waiting[PAGE:]),
            contexts=[(each, show_keys(each.keys), last.get(each.id, "")) for each in found[:PAGE]],
            page=page,
            has_more=len(found) > PAGE,
        )

    async def show_context(self, request: Request) -> Response:
        """Answer with the notes of a conversation and its turns, the newest first."""
        context_id, page = path_number(request, "context"), _page(request)
        storage = self._opened()
        keys, lines, has_more = await storage.read(
            lambda connection: read_turn_lines(connection, context_id, limit=PAGE, offset=page * PAGE), is_long=True
        )
        noted = await storage.read(lambda connection: read_notes(connection, context_id))
        return self._pages.show(
            "inspect_context.html",
            context_id=context_id,
            name=show_keys(keys),
            notes=[(each.note, show_text(each.note.text)) for each in noted] if page == 0 else [],
            turns=lines,
            page=page,
            has_more=has_more,
        )

    async def delete_note(self, request: Request) -> Response:
        """Delete a note of a conversation for good, and show what is left."""
        context_id, number = path_number(request, "context"), path_number(request, "note")
        storage = self._opened()
        now = storage.now()
        await storage.write(lambda connection: erase_note(connection, context_id, number, now))
        await storage.scrub()
        return RedirectResponse(f"/inspect/{context_id}", status_code=303)

    async def show_turn(self, request: Request) -> Response:
        """Answer with the replay of a turn."""
        context_id, turn_id = path_number(request, "context"), path_number(request, "turn")
        storage = self._opened()
        try:
            turn = (await read_turns(storage, context_id, turn_id))[0]
        except StorageUnavailable:
            raise
        except StorageError:
            raise Refusal(404, _NOT_THERE) from None
        keys, answer, sent = await storage.read(
            lambda connection: _read_surroundings(connection, context_id, turn_id), is_long=True
        )
        waiting = await storage.read(lambda connection: find_of_turn(connection, turn_id), is_long=True)
        blocks = show_steps(turn.steps)
        if any(part.text == answer for block in blocks for part in block.parts):
            answer = None
        return self._pages.show(
            "inspect_turn.html",
            context_id=context_id,
            name=show_keys(keys),
            turn=turn,
            state=_state(turn.status, turn.outcome),
            seconds=_seconds(turn),
            blocks=blocks,
            waiting=show_waiting(waiting, turn.steps),
            answer=answer,
            deliveries=sent,
        )

    def _opened(self) -> Storage:
        if self._storage is None:
            raise Refusal(503, "The service has not started yet.")
        return self._storage


def show_keys(keys: Mapping[str, str]) -> str:
    """Return context keys in a line, the transport first."""
    rest = [f"{visible(key)}={visible(value)}" for key, value in keys.items() if key != "transport"]
    return " · ".join([visible(keys["transport"]), *rest] if "transport" in keys else rest)


def read_turn_lines(
    connection: Connection, context_id: int, *, limit: int, offset: int
) -> tuple[Mapping[str, str], list[TurnLine], bool]:
    """Return the keys of a context, its turns, the newest first, and whether there are older ones."""
    keys = _read_keys(connection, context_id)
    rows = connection.execute(
        select(turns, messages.c.text)
        .outerjoin(messages, messages.c.answers_turn_id == turns.c.id)
        # Not "equal", and ordered by both: Postgres would go through the turns of all contexts for the newest of one.
        .where(turns.c.context_id.between(context_id, context_id))
        .order_by(turns.c.context_id.desc(), turns.c.id.desc())
        .limit(limit + 1)
        .offset(offset)
    ).all()
    turn_ids = [row.id for row in rows[:limit]]
    questions = _read_questions(connection, turn_ids)
    counts = _count_steps(connection, turn_ids)
    lines = [
        TurnLine(
            row.id,
            _state(row.status, row.outcome),
            row.transport,
            questions.get(row.id, ""),
            _excerpt(row.text or ""),
            counts.get(row.id, 0),
            row.created_at,
            _seconds(row),
        )
        for row in rows[:limit]
    ]
    return keys, lines, len(rows) > limit


def _read_last_messages(connection: Connection, context_ids: list[int]) -> dict[int, str]:
    newest = select(contexts.c.last_message_id).where(contexts.c.id.in_(context_ids))
    query = select(messages.c.context_id, messages.c.text, messages.c.said_by_others).where(messages.c.id.in_(newest))
    return {row.context_id: _excerpt(full_text_of(row)) for row in connection.execute(query)}


def _read_keys(connection: Connection, context_id: int) -> Mapping[str, str]:
    query = select(contexts.c.context_keys).where(contexts.c.id == context_id)
    keys: Mapping[str, str] | None = connection.execute(query).scalar_one_or_none()
    if keys is None:
        raise Refusal(404, _NOT_THERE)
    return keys


def _read_questions(connection: Connection, turn_ids: list[int]) -> dict[int, str]:
    query = select(steps.c.turn_id, steps.c.data).where(
        steps.c.turn_id.in_(turn_ids), steps.c.kind == TaskStep.__name__
    )
    tasks = {row.turn_id: MemoryItem.from_json(row.data) for row in connection.execute(query)}
    return {turn_id: _excerpt(show_text(task.get_value("task"))) for turn_id, task in tasks.items()}


def _count_steps(connection: Connection, turn_ids: list[int]) -> dict[int, int]:
    query = (
        select(steps.c.turn_id, func.count().label("step_count"))
        .where(steps.c.turn_id.in_(turn_ids), steps.c.step_number.is_not(None), steps.c.kind != FailedStep.__name__)
        .group_by(steps.c.turn_id)
    )
    return {row.turn_id: row.step_count for row in connection.execute(query)}


def _read_surroundings(
    connection: Connection, context_id: int, turn_id: int
) -> tuple[Mapping[str, str], str | None, list[str]]:
    """Return the keys of a turn's context, the answer as it stands in the history, and what became of each delivery."""
    query = select(messages.c.text).where(messages.c.answers_turn_id == turn_id)
    answer = connection.execute(query).scalar_one_or_none()
    rows = connection.execute(select(deliveries).where(deliveries.c.turn_id == turn_id).order_by(deliveries.c.id))
    return (
        _read_keys(connection, context_id),
        None if answer is None else show_text(answer),
        [_show_delivery(row) for row in rows],
    )


def _show_delivery(row: Any) -> str:
    tries = f"{row.attempts} {'try' if row.attempts == 1 else 'tries'}"
    reason = f": {visible(row.error)}" if row.error else ""
    return f"{row.transport} {row.kind}, {row.status} after {tries}{reason}"


def _state(status: str, outcome: str | None) -> str:
    return status.replace("_", " ") if outcome is None else f"{status}, {outcome}".replace("_", " ")


def _seconds(turn: Any | TurnRecord) -> float | None:
    return None if turn.finished_at is None else float((turn.finished_at - turn.created_at).total_seconds())


def _excerpt(text: str) -> str:
    line = " ".join(visible(text[: 2 * _EXCERPT]).split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"


def _page(request: Request) -> int:
    text = request.query_params.get("page", "0")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0
