"""Guest mode (Bot API 10.0): people call the bot into chats that it is no member of, and it writes one message there.

What it may do there is little: one answer to each question, while that is young, and edits of that answer by its
inline_message_id. Every other method does not know the chat.
"""

import itertools
import json
import time
from dataclasses import dataclass, field, replace
from typing import Any

from standins.bot_api.calls import Call, bad_request
from standins.bot_api.chats import Person
from standins.bot_api.entities import detect, formatted
from standins.bot_api.messages import NOT_MODIFIED
from standins.bot_api.methods import Bench, method
from standins.bot_api.rich import edit_message_text
from standins.bot_api.updates import Updates
from standins.serving import Served

TOO_OLD = "query is too old and response timeout expired or query ID is invalid"
_queries = itertools.count(990_000_000_000_000_001)
_message_ids = itertools.count(5001)


@dataclass(slots=True)
class GuestQuery:
    """A question, and what the bot has written as a guest.

    Attributes:
        shown: What stood there, one after the other; the last is what people see.
        is_open: Whether it may still be answered.
        is_editable: Whether what was answered may still be changed.
    """

    id: str
    text: str
    shown: list[str] = field(default_factory=list)
    entities: list[dict[str, Any]] = field(default_factory=list)
    is_open: bool = True
    is_editable: bool = True

    @property
    def inline_message_id(self) -> str:
        return f"inline-{self.id}"


class Guests(Served):
    """The half of the stand-in that people use who call a guest."""

    updates: Updates
    guest_queries: dict[str, GuestQuery]

    def guest_is_asked(
        self, text: str, *, user: Person, chat: dict[str, Any] | None = None, extra: dict[str, Any] | None = None
    ) -> GuestQuery:
        """Let a person mention the bot in a chat that it is no member of."""
        with self.condition:
            query = GuestQuery(str(next(_queries)), text)
            self.guest_queries[query.id] = query
            message = {
                "message_id": next(_message_ids),
                "date": int(time.time()),
                "chat": chat or {"id": -1009000000001, "type": "supergroup", "title": "Elsewhere"},
                "from": user.as_user(),
                "text": text,
                "guest_query_id": query.id,
                **({"entities": found} if (found := detect(text)) else {}),
                **(extra or {}),
            }
            self._push({"guest_message": message})  # type: ignore[attr-defined]  # the other half has it
            return query

    async def guest_shows(self, query: GuestQuery, text: str) -> None:
        """Return once a guest's message says something."""
        await self.until(lambda: query.shown[-1:] == [text])  # type: ignore[attr-defined]  # the other half has it


@method("answerGuestQuery")
def answer_guest_query(bench: Bench, call: Call) -> dict[str, str]:
    query = bench.guest_queries.get(call.text("guest_query_id"))
    result = json.loads(call.text("result") or "null")
    if not isinstance(result, dict):
        raise bad_request("can't parse inline query result: Object expected")
    if result.get("type") != "article" or not result.get("title"):
        raise bad_request("can't parse inline query result: article must have a title")
    if not 1 <= len(str(result.get("id", "")).encode()) <= 64:
        raise bad_request("RESULT_ID_INVALID")
    content = result.get("input_message_content")
    if not isinstance(content, dict) or not content.get("message_text"):
        raise bad_request("message text is empty")
    said = {"text": content["message_text"], "entities": content.get("entities") or []}
    text, entities = formatted(replace(call, params=said), set(bench.world.people), strict=bench.strict)
    if query is None or query.shown or not query.is_open:
        raise bad_request(TOO_OLD)
    query.shown.append(text)
    query.entities = entities
    return {"inline_message_id": query.inline_message_id}


@method("editMessageText")
def edit_text(bench: Bench, call: Call) -> Any:
    inline_message_id = call.text("inline_message_id")
    if not inline_message_id:
        return edit_message_text(bench, call)
    text, entities = formatted(call, set(bench.world.people), strict=bench.strict)
    query = next((each for each in bench.guest_queries.values() if each.inline_message_id == inline_message_id), None)
    if query is None or not query.shown or not query.is_editable:
        raise bad_request("MESSAGE_ID_INVALID")
    if (query.shown[-1], query.entities) == (text, entities):
        raise bad_request(NOT_MODIFIED)
    query.shown.append(text)
    query.entities = entities
    return True
