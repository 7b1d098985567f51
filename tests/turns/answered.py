"""Turns that were answered long ago, with all that is kept of them."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, insert, update

from botservice import Author
from botservice.history.rows import NewMessage, insert_message
from botservice.messages import Role
from botservice.storage.tables.conversations import deliveries, events, prompt_log, steps, tool_calls, turns
from botservice.turns.records import insert_turn
from botservice.turns.turn import TurnStatus


def answer_often(connection: Connection, context_id: int, asker: Author, times: int, now: datetime) -> None:
    """Have somebody be answered in a chat so often, once a second."""
    for number in range(times):
        _answer(connection, context_id, asker, number, now + timedelta(seconds=number))


def _answer(connection: Connection, context_id: int, asker: Author, number: int, now: datetime) -> None:
    turn_id = insert_turn(connection, context_id, "telegram", now, status=TurnStatus.DONE)
    connection.execute(update(turns).where(turns.c.id == turn_id).values(started_at=now, finished_at=now))
    here = {"context_id": context_id, "turn_id": turn_id}
    brought = {"key": f"{context_id}:{turn_id}", "transport": "telegram", "kind": "message", "order_key": number}
    event = insert(events).values(**here, **brought, raw=b"{}", received_at=now, handled_at=now)
    event_id = connection.execute(event.returning(events.c.id)).scalar_one()
    step = {"kind": "TaskStep", "data": '{"kind": "task", "version": 1, "task": "hm"}', "position": float(turn_id)}
    connection.execute(insert(steps).values(**here, **step))
    question = NewMessage(Role.USER, f"question {number}", now, asker, event_id=event_id)
    answer = NewMessage(Role.ASSISTANT, f"answer {number}", now, answers_turn_id=turn_id)
    insert_message(connection, context_id, question)
    insert_message(connection, context_id, answer)
    sent = {"transport": "telegram", "kind": "message", "status": "delivered", "payload": {"text": "yes"}}
    times = {"due_at": now, "created_at": now, "finished_at": now}
    connection.execute(insert(deliveries).values(**here, **sent, **times, attempts=1, external_id=str(turn_id)))


def work_with(connection: Connection, context_id: int, text: str, now: datetime) -> None:
    """Have a turn keep a text in all records of its work."""
    turn_id = insert_turn(connection, context_id, "telegram", now, status=TurnStatus.DONE)
    here = {"context_id": context_id, "turn_id": turn_id}
    step = insert(steps).values(**here, kind="TaskStep", data=f'{{"task": "{text}"}}', position=1.0)
    step_id = connection.execute(step.returning(steps.c.id)).scalar_one()
    connection.execute(insert(prompt_log).values(**here, seq=0, content={"role": "user", "content": text}))
    called = {"context_id": context_id, "step_id": step_id, "call_index": 0, "status": "done", "result": text}
    connection.execute(insert(tool_calls).values(called))
    sent = {"transport": "telegram", "kind": "message", "status": "delivered", "payload": {"text": text}}
    times = {"due_at": now, "created_at": now, "finished_at": now}
    connection.execute(insert(deliveries).values(**here, **sent, **times, attempts=1))
