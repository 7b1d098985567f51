"""`POST /api/send`: a program's own words in a chat, once for each key."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from botservice.app import Application
from botservice.config.settings import reveal
from botservice.core.chat_addresses import ChatAddress
from botservice.turns.proactive_messages import find_chat
from transports.api.requests import needed_text, read_fields, with_token
from transports.common.requests import parse_text

PATH: Final = "/api/send"
_MAX_BYTES: Final = 1024 * 1024
_FIELDS: Final = ("chat", "text", "key")


def send_route(application: Application) -> Route:
    """Return the route."""

    async def answer(request: Request) -> Response:
        fields = await read_fields(request, _MAX_BYTES)
        name, chat, text, key = _read(fields)
        storage, service = application.storage, application.service
        now = service.options.clock()
        context_id = await storage.write(lambda connection: find_chat(connection, chat, name, now))
        sent = await service.send_to(context_id, text, key=key)
        return JSONResponse({"message_id": sent.message.id}, 202 if sent.is_new else 200)

    return Route(PATH, with_token(reveal(application.settings.api_token), answer), methods=["POST"])


def _read(fields: Mapping[str, Any]) -> tuple[str, ChatAddress, str, str | None]:
    unknown = sorted(name for name in fields if name not in _FIELDS)
    if unknown:
        raise HTTPException(400, f"unknown field {unknown[0]!r:.80}: there are {', '.join(_FIELDS)}")
    name, text = needed_text(fields, "chat"), needed_text(fields, "text")
    try:
        return name, ChatAddress.parse(name), text, parse_text(fields, "key")
    except ValueError as error:
        raise HTTPException(400, f'"chat": {error}') from None
