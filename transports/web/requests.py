"""Reading requests: the session, the conversation, the language, and the fields of a body, a form or a path."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request

from botservice.texts import DEFAULT_LANGUAGE, LANGUAGES
from transports.common.requests import parse_fields, read_body
from transports.web.inbound_events import FIRST, chat_of
from transports.web.sessions import find_session

_LARGEST_ID: Final = 2**63
MAX_SMALL_BYTES: Final = 2_000

_NO_CHAT: Final = "There is no chat in this browser yet: load the page first."
_OTHER_CHAT: Final = "Somebody else has begun to use this browser. Reload the page to go on."


def session_of_request(request: Request) -> str:
    """Return the session that sent a request."""
    session = find_session(request)
    if session is None:
        raise HTTPException(409, _NO_CHAT)
    return session


def chat_of_request(request: Request) -> str:
    """Return the chat of the sender that the address of a request names."""
    return chat_of(session_of_request(request), request.query_params.get("conversation", FIRST))


def chat_of_fields(request: Request, fields: Mapping[str, Any]) -> str:
    """Return the chat of the sender that the body of a request names."""
    session, conversation = session_of_request(request), fields.get("conversation", FIRST)
    if fields.get("chat") not in (None, session):
        raise HTTPException(409, _OTHER_CHAT)
    if not isinstance(conversation, str):
        raise HTTPException(400, '"conversation" must be a text.')
    return chat_of(session, conversation)


async def read_json(request: Request, limit_bytes: int) -> bytes:
    """Return the body of a request that says that it is JSON, which no other site's form can."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HTTPException(415, "This takes application/json.")
    return await read_body(request, limit_bytes)


async def read_fields(request: Request, limit_bytes: int = MAX_SMALL_BYTES) -> Mapping[str, Any]:
    """Return what the body of a request holds."""
    return parse_fields(await read_json(request, limit_bytes))


def row_number(value: object, what: str) -> int:
    """Return a number that can be a row's."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise HTTPException(400, f'"{what}" must be the number of a message.')
    return int(text)


async def read_form(request: Request, limit_bytes: int, *, keeps_blank: bool = False) -> dict[str, list[str]]:
    """Return the fields of a posted form."""
    return parse_qs((await read_body(request, limit_bytes)).decode("utf-8", "replace"), keep_blank_values=keeps_blank)


def path_number(request: Request, name: str) -> int:
    """Return a number of a request's address that can be a row's."""
    number = int(request.path_params[name])
    if number >= _LARGEST_ID:
        raise HTTPException(404, "This is not there, or not any more.")
    return number


def language_of(request: Request) -> str:
    """Return the first language of the texts that a browser asks for, such as "de"."""
    return preferred_language(request.headers.get("accept-language", "")) or DEFAULT_LANGUAGE


def preferred_language(accepted: str) -> str | None:
    """Return the first language of an Accept-Language header that has texts, or None."""
    asked = []
    for each in accepted.split(","):
        code, _, quality = each.strip().partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=") or 1)
        except ValueError:
            weight = 0.0
        asked.append((-weight, code.strip().partition("-")[0].lower()))
    return next((code for weight, code in sorted(asked, key=lambda one: one[0]) if weight and code in LANGUAGES), None)
