"""The chat page and what its script asks for."""

import contextlib
import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Send

from botservice.messages import Author
from botservice.storage import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent
from transports.web import inbound
from transports.web.entering.access import Access, Mode
from transports.web.entering.gate import path_number, read_within
from transports.web.entering.sessions import (
    SESSION_COOKIE,
    SESSION_SECONDS,
    author_of,
    browser_of,
    find_session,
    new_secret,
    open_session,
    set_cookie,
)
from transports.web.inbound import Refusal
from transports.web.outgoing.events import PageStream
from transports.web.outgoing.outbound import SHOWN_IMAGES
from transports.web.outgoing.streaming import Hub
from transports.web.outgoing.timeline import Cursor, read_earlier, read_file, read_notice_file
from transports.web.pages import HEADERS, Pages

MAX_STREAMS: Final = 2_000
_MAX_SMALL_BYTES: Final = 1_000
_MAX_DECISION_BYTES: Final = 10_000
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")  # in the name of a file that is saved

_NO_CHAT: Final = "There is no chat in this browser yet: load the page first."
_ABOUT_TO_STOP: Final = "The service is about to stop, or has not started yet."
_OTHER_CHAT: Final = "A new chat was begun in another tab. Reload the page to go on there."


class Chat:
    """The endpoints of the chat."""

    def __init__(self, access: Access, pages: Pages, hub: Hub) -> None:
        self._access = access
        self._pages = pages
        self._hub = hub
        self._order_keys = inbound.OrderKeys(lambda: self._opened().now())
        self._inbox: Inbox | None = None
        self._storage: Storage | None = None

    def connect(self, inbox: Inbox, storage: Storage) -> None:
        """Take messages from now on."""
        self._inbox = inbox
        self._storage = storage

    def disconnect(self) -> None:
        """Take no more."""
        self._inbox = None

    async def page(self, request: Request) -> Response:
        """Answer with the page, and give the browser a session where it has none."""
        session, secret = open_session(request)
        browser = browser_of(request)
        response = self._pages.show(
            "chat.html",
            session=session,
            account=None if browser is None else browser.asker.label.replace("`", ""),
            max_text=inbound.MAX_TEXT,
            max_images=inbound.MAX_IMAGES,
            max_images_bytes=inbound.MAX_IMAGES_BYTES,
            can_log_out=browser is not None or self._access.mode is Mode.TOKEN,
        )
        if secret is not None:
            self._keep(response, secret, request)
        return response

    async def post_message(self, request: Request) -> Response:
        """Accept a message; the answer comes only once it is stored."""
        session, body = _session(request), await _read_json(request, inbound.MAX_BODY_BYTES)
        fields = inbound.parse_fields(body)
        _check_chat(fields, session)
        event = inbound.message_event(session, inbound.parse_post(fields), body, self._order_keys.next())
        return await self._accept(session, event)

    async def post_stop(self, request: Request) -> Response:
        """Accept the wish that what runs be stopped."""
        session, body = _session(request), await _read_json(request, _MAX_SMALL_BYTES)
        fields = inbound.parse_fields(body)
        _check_chat(fields, session)
        event = inbound.stop_event(session, inbound.parse_client_id(fields), self._order_keys.next())
        return await self._accept(session, event)

    async def post_decision(self, request: Request) -> Response:
        """Carry out what a pressed button decides about a call of a tool; the message that asked will say so."""
        session, body = _session(request), await _read_json(request, _MAX_DECISION_BYTES)
        fields = inbound.parse_fields(body)
        _check_chat(fields, session)
        post = inbound.parse_post(fields)
        if self._inbox is None:
            raise Refusal(503, _ABOUT_TO_STOP)
        decision = await self._inbox.decide(
            inbound.context_keys(session),
            post.text,
            Author(inbound.NAME, author_of(session), post.name),
        )
        if decision is None:
            raise Refusal(400, "This button decides nothing.")
        self._hub.note_stored(session)
        return JSONResponse({"text": decision.text, "is_taken": decision.is_taken}, headers=HEADERS)

    async def post_new(self, request: Request) -> Response:
        """Give the browser another session; the old chat stays where it is."""
        await _read_json(request, _MAX_SMALL_BYTES)
        response = JSONResponse({"ok": True}, headers=HEADERS)
        self._keep(response, new_secret(), request)
        return response

    async def events(self, request: Request) -> Response:
        """Answer with the events of the session, from where the page has them."""
        headers = {**HEADERS, "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=headers)
        session = _session(request)
        if self._hub.is_closed or self._hub.count_watchers() >= MAX_STREAMS:
            raise Refusal(503, "Too many pages are open at the moment.")
        cursor = Cursor.parse(request.headers.get("last-event-id") or request.query_params.get("after", ""))
        stream = PageStream(self._opened(), self._hub, session, cursor)
        return _EventStream(stream.events(), media_type="text/event-stream", headers=headers)

    async def earlier(self, request: Request) -> Response:
        """Answer with the messages before one."""
        before = request.query_params.get("before", "")
        if not (before.isascii() and before.isdecimal() and len(before) < 19):
            raise Refusal(400, '"before" must be the number of a message.')
        session = _session(request)
        span = await self._opened().read(lambda connection: read_earlier(connection, session, int(before)))
        shown = {"messages": span.messages, "notices": span.notices, "has_earlier": span.has_earlier}
        return JSONResponse(shown, headers=HEADERS)

    async def file(self, request: Request) -> Response:
        """Answer with a file of a message: an image to be shown, anything else to be saved."""
        session, message_id, index = _session(request), path_number(request, "message"), path_number(request, "index")
        found = await self._opened().read(lambda connection: read_file(connection, session, message_id, index))
        if found is None or found.data is None:
            raise Refusal(404, "This file is not there any more.")
        headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox"}
        if found.mime_type in SHOWN_IMAGES:
            headers["Cache-Control"] = "private, max-age=3600"
            return Response(found.data, media_type=found.mime_type, headers=headers)
        headers["Content-Disposition"] = "attachment"
        return Response(found.data, media_type="application/octet-stream", headers=headers)

    async def notice_file(self, request: Request) -> Response:
        """Answer with a file that came with what is no part of the conversation, to be saved under its name."""
        session, notice_id, index = _session(request), path_number(request, "notice"), path_number(request, "index")
        found = await self._opened().read(lambda connection: read_notice_file(connection, session, notice_id, index))
        if found is None or found.data is None:
            raise Refusal(404, "This file is not there any more.")
        name = _UNSAFE.sub("-", found.name or "file")
        headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox"}
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
        return Response(found.data, media_type="application/octet-stream", headers=headers)

    async def _accept(self, session: str, event: InboundEvent) -> Response:
        if self._inbox is None:
            raise Refusal(503, _ABOUT_TO_STOP)
        is_new = await self._inbox.accept(inbound.NAME, [event]) > 0
        self._hub.note_stored(session)
        return JSONResponse({"accepted": True, "is_new": is_new}, 202, headers=HEADERS)

    def _opened(self) -> Storage:
        if self._storage is None:
            raise Refusal(503, "The service has not started yet.")
        return self._storage

    def _keep(self, response: Response, secret: str, request: Request) -> None:
        is_https = self._access.is_https(request)
        set_cookie(response, SESSION_COOKIE, secret, seconds=SESSION_SECONDS, is_https=is_https)


class _EventStream(StreamingResponse):
    """A stream that lets go of everything at once when its reader leaves."""

    async def stream_response(self, send: Send) -> None:
        async with contextlib.aclosing(self.body_iterator):  # type: ignore[type-var]  # made from a generator above
            await super().stream_response(send)


def _session(request: Request) -> str:
    session = find_session(request)
    if session is None:
        raise Refusal(409, _NO_CHAT)
    return session


async def _read_json(request: Request, limit_bytes: int) -> bytes:
    """Return the body of a request that says that it is JSON, which no other site's form can."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refusal(415, "This takes application/json.")
    return await read_within(request, limit_bytes)


def _check_chat(fields: Mapping[str, Any], session: str) -> None:
    """Refuse what was written for another chat than the one that the browser has now."""
    if fields.get("chat") not in (None, session):
        raise Refusal(409, _OTHER_CHAT)
