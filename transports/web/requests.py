"""Reading requests of the page's script: the session, the conversation and the fields."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from transports.web.authentication import read_within
from transports.web.backend import Refusal
from transports.web.inbound_events import FIRST, chat_of, parse_fields
from transports.web.sessions import find_session

MAX_SMALL_BYTES: Final = 2_000

_NO_CHAT: Final = "There is no chat in this browser yet: load the page first."
_OTHER_CHAT: Final = "Somebody else has begun to use this browser. Reload the page to go on."


def session_of_request(request: Request) -> str:
    """Return the session that sent a request."""
    session = find_session(request)
    if session is None:
        raise Refusal(409, _NO_CHAT)
    return session


def chat_of_request(request: Request) -> str:
    """Return the chat of the sender that the address of a request names."""
    return chat_of(session_of_request(request), request.query_params.get("conversation", FIRST))


def chat_of_fields(request: Request, fields: Mapping[str, Any]) -> str:
    """Return the chat of the sender that the body of a request names."""
    session, conversation = session_of_request(request), fields.get("conversation", FIRST)
    if fields.get("chat") not in (None, session):
        raise Refusal(409, _OTHER_CHAT)
    if not isinstance(conversation, str):
        raise Refusal(400, '"conversation" must be a text.')
    return chat_of(session, conversation)


async def read_json(request: Request, limit_bytes: int) -> bytes:
    """Return the body of a request that says that it is JSON, which no other site's form can."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refusal(415, "This takes application/json.")
    return await read_within(request, limit_bytes)


async def read_fields(request: Request, limit_bytes: int = MAX_SMALL_BYTES) -> Mapping[str, Any]:
    """Return what the body of a request holds."""
    return parse_fields(await read_json(request, limit_bytes))


def row_number(value: object, what: str) -> int:
    """Return a number that can be a row's."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Refusal(400, f'"{what}" must be the number of a message.')
    return int(text)
