"""Explaining any answer as the command /why explains the last one."""

from typing import Any

from sqlalchemy import Connection

from botservice.commands.why import explain, read_sources
from botservice.contexts.step_records import read_steps
from botservice.texts import in_language
from botservice.turns.start.exchanges import find_attempt
from transports.web.conversations.conversation_list import find_chat


class _Speaker:
    def say(self, key: str, /, **values: object) -> str:
        return in_language(key, None, **values)


def explain_answer(connection: Connection, chat: str, message_id: int) -> dict[str, Any] | None:
    """Return the explanation of an answer and the address of its turn in the inspector, or None if its turn is gone."""
    from transports.web.outgoing.markdown import render_markdown

    context_id = find_chat(connection, chat)
    attempt = None if context_id is None else find_attempt(connection, context_id, message_id)
    if context_id is None or attempt is None:
        return None
    steps = read_steps(connection, context_id, turn_ids=[attempt.turn_id])
    sources = read_sources([each.item for each in steps])
    text = explain(_Speaker(), attempt, sources, may_see=True, is_last=False)
    inspected = f"/inspect/t/{attempt.turn_id}"
    return {"text": text, "html": "".join(render_markdown(text)), "inspect": inspected}
