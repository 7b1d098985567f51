"""The chat page, what is said and shown on it, and its files."""

import contextlib
import json
import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Send

from botservice.core.messages import Attachment, Author
from botservice.core.states import EventKind
from botservice.texts import DEFAULT_LANGUAGE
from botservice.turns.turn import InboundEvent
from transports.common.requests import parse_fields
from transports.common.suggested_questions import find_starters
from transports.web.backend import Backend
from transports.web.conversations import find_mine
from transports.web.files import BROWSER_FILES, BROWSER_FILES_BYTES
from transports.web.inbound_events import (
    FIRST,
    MAX_BODY_BYTES,
    MAX_TEXT,
    NAME,
    OrderKeys,
    chat_of,
    context_keys,
    find_chat,
    make_event,
    parse_client_id,
    parse_post,
    session_in,
)
from transports.web.outbound import SHOWN_IMAGES
from transports.web.owner_token import Mode, PageAccess
from transports.web.pages import HEADERS, PageRenderer
from transports.web.requests import (
    chat_of_fields,
    chat_of_request,
    path_number,
    preferred_language,
    read_fields,
    read_json,
    row_number,
    session_of_request,
)
from transports.web.server_sent_events import PageStream, StreamPace
from transports.web.sessions import (
    SESSION_COOKIE,
    SESSION_SECONDS,
    browser_of,
    new_conversation,
    open_session,
    set_cookie,
)
from transports.web.streaming import Hub
from transports.web.timeline import TimelineCursor, read_earlier, read_file, read_notice_file

MAX_STREAMS: Final = 2_000
MOST_STREAMS_EACH: Final = 50  # of one person, who does not keep others out with them
_MAX_DECISION_BYTES: Final = 10_000

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")  # in the name of a file that is saved

_GONE: Final = "This file is not there any more."
_UNKNOWN: Final = "There is no such conversation in this browser: it was deleted, or it is another person's."


class ChatEndpoints:
    """The endpoints of the chat."""

    def __init__(
        self,
        access: PageAccess,
        pages: PageRenderer,
        hub: Hub,
        backend: Backend,
        pace: StreamPace,
        tools: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self._access = access
        self._pages = pages
        self._hub = hub
        self._backend = backend
        self._pace = pace
        self._tools = tools
        self._order_keys = OrderKeys(lambda: backend.storage.now())  # noqa: PLW0108 - it is not there yet

    async def page(self, request: Request) -> Response:
        """Answer with the page of a conversation, and give the browser a session where it has none."""
        session, secret = open_session(request)
        browser = browser_of(request)
        language = preferred_language(request.headers.get("accept-language", ""))
        response = self._pages.show(
            "chat.html",
            starters=[] if self._tools is None else find_starters(self._tools(), language),
            starters_language=language or DEFAULT_LANGUAGE,
            session=session,
            conversation=await self._conversation(request, session),
            account=None if browser is None else browser.asker.label.plain,
            max_text=MAX_TEXT,
            max_files=BROWSER_FILES,
            max_files_bytes=BROWSER_FILES_BYTES,
            can_log_out=browser is not None or self._access.mode is Mode.TOKEN,
        )
        if secret is not None:
            is_https = self._access.is_https(request)
            set_cookie(response, SESSION_COOKIE, secret, seconds=SESSION_SECONDS, is_https=is_https)
        return response

    async def post_message(self, request: Request) -> Response:
        """Accept a message; the answer comes only once it is stored."""
        body = await read_json(request, MAX_BODY_BYTES)
        fields = parse_fields(body)
        chat, post = chat_of_fields(request, fields), parse_post(fields)
        make = partial(make_event, chat, post.client_id)
        if post.edits is None:
            return await self._accept(chat, make(self._order_keys.next(), body))
        edit = make(self._order_keys.next(), body, EventKind.EDIT, post.edits)
        retry = {"id": post.client_id, "text": "/retry", "is_pressed": True}
        return await self._accept(chat, edit, make(self._order_keys.next(), json.dumps(retry).encode()))

    async def post_stop(self, request: Request) -> Response:
        """Accept the wish that what runs be stopped."""
        fields = await read_fields(request)
        chat, client_id = chat_of_fields(request, fields), parse_client_id(fields)
        return await self._accept(chat, make_event(chat, client_id, self._order_keys.next(), kind=EventKind.STOP))

    async def post_decision(self, request: Request) -> Response:
        """Carry out what a pressed button decides about a call of a tool; the message that asked will say so."""
        fields = await read_fields(request, _MAX_DECISION_BYTES)
        chat, post = chat_of_fields(request, fields), parse_post(fields)
        author = Author(NAME, session_in(chat), post.name)
        decision = await self._backend.inbox.decide(context_keys(chat), post.text, author)
        if decision is None:
            raise HTTPException(400, "This button decides nothing.")
        self._hub.note_stored(chat)
        return JSONResponse({"text": decision.text.plain, "is_taken": decision.is_taken}, headers=HEADERS)

    async def post_new(self, request: Request) -> Response:
        """Answer with the name of a new conversation; it is stored with the first words that are said in it."""
        await read_json(request, _MAX_DECISION_BYTES)
        session_of_request(request)
        return JSONResponse({"ok": True, "conversation": new_conversation()}, headers=HEADERS)

    async def events(self, request: Request) -> Response:
        """Answer with the events of a conversation, from where the page has them."""
        headers = {**HEADERS, "X-Accel-Buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=headers)
        chat = chat_of_request(request)
        is_one_too_many = self._hub.count_watchers(session_in(chat)) >= MOST_STREAMS_EACH
        if self._hub.is_closed or is_one_too_many or self._hub.count_watchers() >= MAX_STREAMS:
            raise HTTPException(503, "Too many pages are open at the moment.")
        cursor = TimelineCursor.parse(request.headers.get("last-event-id") or request.query_params.get("after", ""))
        stream = PageStream(self._backend.storage, self._hub, chat, cursor, self._pace)
        return _EventStream(stream.events(), media_type="text/event-stream", headers=headers)

    async def earlier(self, request: Request) -> Response:
        """Answer with the messages before one."""
        before = row_number(request.query_params.get("before", ""), "before")
        chat = chat_of_request(request)
        span = await self._backend.storage.read(lambda connection: read_earlier(connection, chat, before))
        shown = {"messages": span.messages, "notices": span.notices, "has_earlier": span.has_earlier}
        return JSONResponse(shown, headers=HEADERS)

    async def file(self, request: Request) -> Response:
        """Answer with a file of a message: an image to be shown, anything else to be saved."""
        place = session_of_request(request), path_number(request, "message"), path_number(request, "index")
        return _give(await self._backend.storage.read(lambda connection: read_file(connection, *place)))

    async def notice_file(self, request: Request) -> Response:
        """Answer with a file that came with what is no part of the conversation, to be saved under its name."""
        place = session_of_request(request), path_number(request, "notice"), path_number(request, "index")
        found = await self._backend.storage.read(lambda connection: read_notice_file(connection, *place))
        return _give(found, is_shown=False)

    async def _conversation(self, request: Request, session: str) -> str:
        """Return which conversation a page shows: the one that its address names, or the newest."""
        named = request.query_params.get("conversation")
        if named is not None:
            return await self._find_named(session, named, is_new="new" in request.query_params)
        if self._backend.opened is None:
            return FIRST
        found = await self._backend.opened.read(lambda connection: find_mine(connection, session, limit=1))
        return str(found[0]["name"]) if found else FIRST

    async def _find_named(self, session: str, name: str, *, is_new: bool) -> str:
        """Return the conversation that an address names, which is there, or is begun with its first message."""
        chat, storage = chat_of(session, name), self._backend.opened
        if name != FIRST and not is_new and storage is not None:
            context_id = await storage.read(lambda connection: find_chat(connection, chat))
            if context_id is None:
                raise HTTPException(404, _UNKNOWN)
        return name

    async def _accept(self, chat: str, *events: InboundEvent) -> Response:
        is_new = await self._backend.inbox.accept(NAME, events) > 0
        self._hub.note_stored(chat)
        return JSONResponse({"accepted": True, "is_new": is_new}, 202, headers=HEADERS)


class _EventStream(StreamingResponse):
    """A stream that lets go of everything at once when its reader leaves."""

    async def stream_response(self, send: Send) -> None:
        async with contextlib.aclosing(self.body_iterator):  # type: ignore[type-var]  # made from a generator above
            await super().stream_response(send)


def _give(file: Attachment | None, *, is_shown: bool = True) -> Response:
    """Return a file: one of the images that pages show as what it is, anything else to be saved under its name."""
    if file is None or file.data is None:
        raise HTTPException(404, _GONE)
    headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox"}
    if is_shown and file.mime_type in SHOWN_IMAGES:
        headers["Cache-Control"] = "private, max-age=3600"
        return Response(file.data, media_type=file.mime_type, headers=headers)
    # RFC 6266 and 8187: the whole name with every byte escaped that is not plain, and one in plain letters next to it.
    name = file.name or "file"
    whole, plain = quote(name, safe=""), _UNSAFE.sub("-", name)
    headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{whole}; filename=\"{plain}\""
    return Response(file.data, media_type="application/octet-stream", headers=headers)
