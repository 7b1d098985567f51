"""`POST /hooks/NAME`: an event of another program, stored before it is acknowledged."""

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from botservice.app import Application
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context, read_context_keys
from botservice.core.messages import is_blank
from botservice.core.policies import Period
from botservice.people.names import HOOKS, transport_of
from botservice.people.usage import period_end, period_start
from botservice.people.usage_queries import HOOK_RATE, count_message
from botservice.storage.database import Connection
from botservice.turns.event_queries import event_key, find_event, let_go_of_key
from botservice.turns.hook_events import HookEvent
from botservice.turns.inbox import Inbox
from botservice.turns.proactive_messages import check_let_in, find_chat
from botservice.turns.queries import place_in_line
from botservice.turns.turn import InboundEvent
from transports.api.hooks_file import Hook, HookAction, read_hooks
from transports.api.requests import answering
from transports.api.signatures import SenderKind, delivery_id
from transports.common.requests import CLOSE, Unproven, parse_json

logger = logging.getLogger(__name__)

PATH: Final = "/hooks/{name}"
_MAX_BYTES: Final = 4 * 1024 * 1024
_REST: Final = 2.0  # of a burst, times what an event took: so people's questions find the database free meanwhile
_REMEMBERED: Final = timedelta(hours=24)
_MAX_FIELDS: Final = 1_000
_FORM: Final = "application/x-www-form-urlencoded"


class HooksEndpoint:
    """Answers other programs: 202 once their event is stored, 401 where nothing proves who they are."""

    def __init__(self, application: Application, hooks: Mapping[str, Hook], inbox: Inbox) -> None:
        self._application = application
        self._storage = application.storage
        self._service = application.service
        self._inbox = inbox
        self._hooks = hooks
        self._full_until: dict[str, datetime] = {}  # of hooks, by their names
        self._unproven = Unproven()
        self._storing = asyncio.Lock()
        self._took_seconds = 0.0
        self._now: Callable[[], float] = time.time

    async def answer(self, request: Request) -> Response:
        """Return the answer to one event."""
        hook = self._hooks.get(request.path_params["name"])
        secret = request.path_params.get("secret")
        if hook is None or (secret is not None and hook.sender.kind is not SenderKind.SLACK):
            raise HTTPException(404, "there is no such hook")
        headers = dict(request.headers.items())
        body = await self._read(request, hook, headers, secret)
        self._check_rate(hook, self._service.options.clock())
        payload = _payload(headers, body)
        if headers.get("x-github-event") == "ping":
            return JSONResponse({"event_id": None}, 202)  # GitHub tries the address when a webhook is made
        event_id = await self._store_in_turn(hook, headers, body, payload)
        logger.info("hook.taken", extra={"hook": hook.name, "event": event_id})
        if hook.sender.kind is SenderKind.SLACK:
            return PlainTextResponse("ok")  # as Slack answers, and as some senders want it
        return JSONResponse({"event_id": event_id}, 202)

    async def _read(self, request: Request, hook: Hook, headers: Mapping[str, str], secret: str | None) -> bytes:
        """Return the body of a request once it is proved who sent it; until then it has little room."""
        if not hook.sender.may_be_signed(headers, secret, self._now()):
            raise self._refuse(hook)

        def check(body: bytes) -> None:
            if not hook.sender.is_signed(headers, body):
                raise self._refuse(hook)

        return await self._unproven.read(request, _MAX_BYTES, check)

    def _refuse(self, hook: Hook) -> HTTPException:
        logger.warning("hook.refused", extra={"hook": hook.name, "sender": hook.sender.kind.value})
        said = f"no valid proof of a {hook.sender.kind.value} sender: is the secret the same here?"
        return HTTPException(401, said, CLOSE)

    async def _store_in_turn(self, hook: Hook, headers: Mapping[str, str], body: bytes, payload: Any) -> int | None:
        """Store one event after the other: people wait behind one event of a burst, and not behind all of it."""
        is_in_burst = self._storing.locked()
        async with self._storing:
            if is_in_burst:
                await asyncio.sleep(self._took_seconds * _REST)
            began = time.monotonic()
            try:
                return await self._take(hook, headers, body, payload)
            finally:
                self._took_seconds = time.monotonic() - began

    async def _take(self, hook: Hook, headers: Mapping[str, str], body: bytes, payload: Any) -> int | None:
        """Store an event and return its id; None where nothing is to be said about it."""
        storage, access = self._storage, self._service.options.access
        now = self._service.options.clock()
        delivery = delivery_id(hook.sender.kind, headers, body)
        name = hashlib.sha256(delivery.encode("utf-8", "replace")).hexdigest()
        context_id = await self._find_context(hook, now)
        key = f"hook:{hook.name}:{name}"
        stored_key = event_key(context_id, key) if hook.do is HookAction.SAY else key
        known = await storage.read(lambda connection: find_event(connection, stored_key))
        if known is not None and known[1] >= now - _REMEMBERED:
            return known[0]
        await check_let_in(storage, access, context_id)
        await self._count(hook, now)
        if known is not None:
            await storage.write(lambda connection: let_go_of_key(connection, known[0], stored_key))
        if hook.do is HookAction.SAY:
            text = await self._render(hook, payload, headers)
            if is_blank(text):
                return None
            await self._service.send_to(context_id, text, key=key)
        else:
            await self._ask(hook, payload, context_id, key)
        stored = await storage.read(lambda connection: find_event(connection, stored_key))
        return None if stored is None else stored[0]

    async def _count(self, hook: Hook, now: datetime) -> None:
        """Count a new event, also for the other processes.

        Raises:
            HTTPException: there were as many within this minute as may be.
        """
        minute = period_start(Period.MINUTE, now).isoformat()
        taken = await self._storage.write(
            lambda connection: count_message(connection, HOOK_RATE, hook.name, minute), is_told=False
        )
        if taken > hook.per_minute:
            self._full_until[hook.name] = period_end(Period.MINUTE, now)
            self._check_rate(hook, now)

    def _check_rate(self, hook: Hook, now: datetime) -> None:
        wait = (self._full_until.get(hook.name, now) - now).total_seconds()
        if wait > 0:
            headers = {"retry-after": str(math.ceil(wait))}
            raise HTTPException(429, f"at most {hook.per_minute} events a minute are taken", headers)

    async def _find_context(self, hook: Hook, now: datetime) -> int:
        """Return the context of a hook's chat, which is made at the first event where its platform allows that."""
        storage, keys = self._storage, ContextKeys.of(hook.to.keys)
        if hook.to.number is None:
            found = await storage.read(lambda connection: find_context(connection, keys))
            if found is not None:
                return found
        return await storage.write(lambda connection: find_chat(connection, hook.to, hook.to_name, now))

    async def _render(self, hook: Hook, payload: Any, headers: Mapping[str, str]) -> str:
        from transports.api.templates import render

        try:
            return await asyncio.to_thread(render, hook.template, payload, headers, hook.name)
        except Exception as error:  # a border: a template is the owner's program, and its data are a stranger's
            reason = f"{type(error).__name__}: {error}"
            logger.warning("hook.template_failed", extra={"hook": hook.name, "reason": reason})
            raise HTTPException(422, f"the template of the hook {hook.name} fails on this event") from error

    async def _ask(self, hook: Hook, payload: Any, context_id: int, key: str) -> None:
        def look(connection: Connection) -> tuple[Mapping[str, str], int]:
            return read_context_keys(connection, context_id), place_in_line(connection, context_id)

        keys, order_key = await self._storage.read(look)
        try:
            event = await asyncio.to_thread(HookEvent.of, hook.name, hook.task, hook.tools, payload)
        except RecursionError:
            raise HTTPException(400, "the event is nested too deep") from None
        inbound = InboundEvent(key, keys, order_key, event.to_bytes())
        await self._inbox.accept(f"{HOOKS}{transport_of(keys)}", [inbound])


def _payload(headers: Mapping[str, str], body: bytes) -> Any:
    """Return what a body says: JSON, or a form, in whose field `payload` JSON may stand.

    JSON that is called a form is JSON: `curl -d` calls everything so.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM or body.lstrip()[:1] in (b"{", b"["):
        return parse_json(body)
    try:
        parsed = parse_qs(body.decode(), strict_parsing=True, max_num_fields=_MAX_FIELDS)
        fields = {name: values[-1] for name, values in parsed.items()}
    except ValueError:
        raise HTTPException(400, f"the body is no form in UTF-8 of at most {_MAX_FIELDS:,} fields") from None
    return parse_json(fields["payload"].encode("utf-8", "replace")) if "payload" in fields else fields


def hook_routes(application: Application) -> list[BaseRoute]:
    """Return the routes of the hooks of hooks.json; none where there is no such file."""
    hooks = read_hooks(application.settings.hooks_file)
    if not hooks or application.inbox is None:
        return []
    answer = answering(HooksEndpoint(application, hooks, application.inbox).answer)
    return [Route(path, answer, methods=["POST"]) for path in (PATH, f"{PATH}/{{secret}}")]
