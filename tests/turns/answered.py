"""Turns that were answered long ago, with all that is kept of them."""

import json
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, insert

from botservice import Author
from botservice.core.messages import Role
from botservice.core.states import TurnStatus
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.storage.tables.conversations import deliveries, events, prompt_log, steps, tool_calls, turns

Rows = list[dict[str, Any]]


def answer_often(connection: Connection, context_id: int, asker: Author, times: int, now: datetime) -> None:
    """Have a person be answered in a chat so often, once a second."""
    moments = [now + timedelta(seconds=number) for number in range(times)]
    here = _insert_turns(connection, context_id, moments)
    brought = {"transport": "telegram", "kind": "message", "raw": b"{}"}
    received = [
        turn | brought | {"key": f"{context_id}:{turn['turn_id']}", "order_key": number, "received_at": at}
        for number, (turn, at) in enumerate(zip(here, moments, strict=True))
    ]
    event_ids = _insert(connection, events, [each | {"handled_at": each["received_at"]} for each in received])
    step = {"kind": "TaskStep", "data": '{"kind": "task", "version": 1, "task": "hm"}'}
    _insert(connection, steps, [turn | step | {"position": float(turn["turn_id"])} for turn in here])
    for number, (turn, event_id, at) in enumerate(zip(here, event_ids, moments, strict=True)):
        question = NewMessage(Role.USER, f"question {number}", at, asker, event_id=event_id)
        answer = NewMessage(Role.ASSISTANT, f"answer {number}", at, answers_turn_id=turn["turn_id"])
        insert_message(connection, context_id, question)
        insert_message(connection, context_id, answer)
    sent = [_delivered(turn, at, "yes") for turn, at in zip(here, moments, strict=True)]
    _insert(connection, deliveries, [each | {"external_id": str(each["turn_id"])} for each in sent])


def work_with(connection: Connection, context_id: int, text: str, now: datetime, *, times: int = 1) -> None:
    """Have so many turns keep a text in all records of their work."""
    here = _insert_turns(connection, context_id, [now] * times)
    step = {"kind": "TaskStep", "data": f'{{"task": "{text}"}}', "position": 1.0}
    step_ids = _insert(connection, steps, [turn | step for turn in here])
    prompted = {"seq": 0, "content": json.dumps([{"message": {"role": "user", "content": text}}])}
    connection.execute(insert(prompt_log), [turn | prompted for turn in here])
    called = {"context_id": context_id, "call_index": 0, "status": "done", "result": text}
    connection.execute(insert(tool_calls), [called | {"step_id": each} for each in step_ids])
    _insert(connection, deliveries, [_delivered(turn, now, text) for turn in here])


def _insert_turns(connection: Connection, context_id: int, moments: list[datetime]) -> Rows:
    """Store a turn for each moment, and return what the rows of its work have in common."""
    done = {"context_id": context_id, "transport": "telegram", "status": TurnStatus.DONE.value, "order_key": 0}
    times = ("due_at", "created_at", "started_at", "finished_at")
    ids = _insert(connection, turns, [done | dict.fromkeys(times, each) for each in moments])
    return [{"context_id": context_id, "turn_id": each} for each in ids]


def _delivered(turn: dict[str, Any], at: datetime, text: str) -> dict[str, Any]:
    sent = {"transport": "telegram", "kind": "message", "status": "delivered", "payload": {"text": text}}
    return turn | sent | {"due_at": at, "created_at": at, "finished_at": at, "attempts": 1}


def _insert(connection: Connection, table: Table, rows: Rows) -> list[int]:
    """Store rows all at once, and return their ids in the same order."""
    inserted = insert(table).returning(table.c.id, sort_by_parameter_order=True)
    return list(connection.execute(inserted, rows).scalars())
