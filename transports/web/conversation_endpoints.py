"""The endpoints of the page's script beside the chat: the list of conversations, ratings, reasons and commands."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from botservice.commands.command import Command
from botservice.commands.why import explain, read_sources
from botservice.conversation.queries import VERDICTS
from botservice.conversation.step_records import read_steps
from botservice.core.formatted_text import FormattedText
from botservice.privacy.forgetting import forget_chat
from botservice.storage.database import Connection
from botservice.texts.formatted import Value, say
from botservice.turns.exchanges import find_attempt
from transports.web.backend import Backend, Refusal
from transports.web.conversation_list import LONGEST_SEARCH, PAGE, Listed, find_mine, rename
from transports.web.files import parse_text
from transports.web.outbound import iso
from transports.web.pages import HEADERS
from transports.web.queries import find_chat, store_verdict
from transports.web.requests import chat_of_fields, chat_of_request, read_fields, row_number, session_of_request
from transports.web.search import to_json
from transports.web.sessions import browser_of
from transports.web.streaming import Hub

_NO_CONVERSATION: Final = "This conversation is not there, or not any more."
_NO_ANSWER: Final = "This answer is not there, or nothing is kept of how it was made."


def _say(key: str, /, **values: Value) -> FormattedText:
    return say(key, None, **values)


def explain_answer(connection: Connection, chat: str, message_id: int) -> dict[str, Any] | None:
    """Return the explanation of an answer and the address of its turn in the inspector, or None if its turn is gone."""
    from transports.web.formatted import render_formatted

    context_id = find_chat(connection, chat)
    attempt = None if context_id is None else find_attempt(connection, context_id, message_id)
    if context_id is None or attempt is None:
        return None
    steps = read_steps(connection, context_id, turn_ids=[attempt.turn_id])
    sources = read_sources([each.item for each in steps])
    text = explain(_say, attempt, sources, may_see=True, is_last=False)
    inspected = f"/inspect/t/{attempt.turn_id}"
    return {"text": text.plain, "html": "".join(render_formatted(text)), "inspect": inspected}


class Conversations:
    """The endpoints beside the chat's own."""

    def __init__(self, hub: Hub, backend: Backend, commands: Iterable[Command]) -> None:
        self._hub = hub
        self._backend = backend
        self._commands = [{"name": each.name, "about": each.description(None)} for each in commands if each.is_listed]

    async def list_mine(self, request: Request) -> Response:
        """Answer with the conversations of the session."""
        session, search = session_of_request(request), request.query_params.get("search", "")[:LONGEST_SEARCH]
        below = request.query_params.get("before")
        before = None if below is None else row_number(below, "before")

        def find(connection: Any) -> list[Listed]:
            return find_mine(connection, session, search=search, before=before, limit=PAGE + 1)

        found = await self._backend.storage.read(find)
        shown = [_show(each) for each in found[:PAGE]]
        return _json({"conversations": shown, "has_more": len(found) > PAGE})

    async def rename(self, request: Request) -> Response:
        """Give a conversation a title."""
        fields = await read_fields(request)
        chat, title = chat_of_fields(request, fields), parse_text(fields, "title") or ""
        if not await self._backend.storage.write(lambda connection: rename(connection, chat, title)):
            raise Refusal(404, _NO_CONVERSATION)
        return _json({"ok": True})

    async def delete(self, request: Request) -> Response:
        """Forget a conversation with all that came of it."""
        chat, storage = chat_of_fields(request, await read_fields(request)), self._backend.storage
        context_id = await storage.read(lambda connection: find_chat(connection, chat))
        if context_id is None:
            raise Refusal(404, _NO_CONVERSATION)
        await forget_chat(storage, context_id)
        self._hub.note_stored(chat)
        return _json({"ok": True})

    async def post_feedback(self, request: Request) -> Response:
        """Store a rating of an answer."""
        fields = await read_fields(request)
        chat, message_id = chat_of_fields(request, fields), row_number(fields.get("message"), "message")
        verdict = parse_text(fields, "verdict")
        if verdict is not None and verdict not in VERDICTS:
            raise Refusal(400, '"verdict" must be "good", "bad" or null.')
        storage, now = self._backend.storage, self._backend.storage.now()
        if not await storage.write(lambda connection: store_verdict(connection, chat, message_id, verdict, now)):
            raise Refusal(404, _NO_ANSWER)
        return _json({"ok": True})

    async def why(self, request: Request) -> Response:
        """Answer with what an answer was made of."""
        chat = chat_of_request(request)
        message_id = row_number(request.query_params.get("message", ""), "message")
        shown = await self._backend.storage.read(lambda connection: explain_answer(connection, chat, message_id))
        if shown is None:
            raise Refusal(404, _NO_ANSWER)
        return _json(shown if browser_of(request) is None else {**shown, "inspect": None})

    async def list_commands(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint
        """Answer with the commands that this agent offers."""
        return _json({"commands": self._commands})


def _show(listed: Listed) -> dict[str, Any]:
    at = None if listed.at is None else iso(listed.at)
    hit = None if listed.hit is None else to_json(listed.hit)
    return {"name": listed.name, "title": listed.title, "at": at, "place": listed.place, "hit": hit}


def _json(values: Mapping[str, Any]) -> Response:
    return JSONResponse(values, headers=HEADERS)
