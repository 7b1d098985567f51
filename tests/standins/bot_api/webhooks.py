"""Webhook delivery: again and again until 2xx, one at a time per chat, as many side by side as was asked for."""

import asyncio
import json
import random
import re
import time
from collections import deque
from dataclasses import dataclass
from threading import Condition
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import h11

from standins.bot_api.calls import Call, bad_request
from standins.bot_api.journal import WebhookAnswered
from standins.bot_api.posting import Poster
from standins.bot_api.updates import Updates, chat_of
from standins.serving import Journal

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORTS = (80, 88, 443, 8443)


@dataclass(frozen=True, slots=True)
class Delivery:
    """How updates are brought.

    `order`: "chat" is what the real one does, chats side by side and each in order; "at_once" waits for nothing;
    "shuffled" and "reversed" pick among what waits (make it wait with `webhook_paused()`).
    `twice`: "after" posts again once it was accepted, as after a lost answer; "at_once" posts both copies together.
    """

    order: str = "chat"
    twice: str = "no"
    backoff_seconds: float = 0.02
    backoff_limit_seconds: float = 0.5
    timeout_seconds: float = 10.0
    seed: int = 0


class Webhooks:
    """The bot's webhook. All of it runs in the server's loop, but for the settings, which the lock guards."""

    def __init__(self, condition: Condition, journal: Journal, updates: Updates):
        self._condition = condition
        self._journal = journal
        self._updates = updates
        self.url = ""
        self.secret = ""
        self.max_connections = 40
        self.paused = 0
        self.reach_at = ""
        self.how = Delivery()
        self.peak = 0
        self._random = random.Random(0)
        self._last_error = (0, "")
        self._lanes: dict[int, deque[int]] = {}
        self._ready: list[int] = []
        self._ready_first: deque[int] = deque()
        self._busy: set[int] = set()
        self._flying: set[int] = set()
        self._waiting: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._poster = Poster()

    def configure(self, call: Call) -> str:
        """Set or remove the webhook, and return how the API puts it."""
        url, secret = call.text("url"), call.text("secret_token")
        if url:
            _check_url(url, mapped=bool(self.reach_at))
        if len(secret) > 256:
            raise bad_request("secret token is too long")
        if not re.fullmatch(r"[A-Za-z0-9_-]*", secret):
            raise bad_request("secret token contains unallowed characters")
        before, self.url, self.secret = self.url, url, secret if url else ""
        self.max_connections = max(1, min(100, call.integer("max_connections", 40)))
        if not url:
            return "Webhook was deleted" if before else "Webhook is already deleted"
        return "Webhook is already set" if before == url else "Webhook was set"

    def info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            "url": self.url,
            "has_custom_certificate": False,
            "pending_update_count": len(self._updates.pending),
        }
        if self.url:
            info |= {"max_connections": self.max_connections, "ip_address": "127.0.0.1"}
        if self.url and self._last_error[1]:
            info |= {"last_error_date": self._last_error[0], "last_error_message": self._last_error[1]}
        if self._updates.allowed is not None:
            info["allowed_updates"] = sorted(self._updates.allowed)
        return info

    def rebuild(self) -> None:
        """Queue everything pending again: after the webhook or the way of delivery changed."""
        with self._condition:
            self._random = random.Random(self.how.seed)
            self._lanes.clear()
            self._ready.clear()
            self._ready_first.clear()
            self._waiting = set(self._flying)
            for update_id in self._updates.pending:
                self._enqueue(update_id)
        self.pump()

    def offer(self, update_id: int) -> None:
        """Queue a new update, from any thread; `pump` in the loop then brings it."""
        with self._condition:
            if self.url:
                self._enqueue(update_id)

    def pump(self) -> None:
        """Start as many deliveries as may run."""
        with self._condition:
            while self.url and not self.paused and len(self._flying) < self.max_connections:
                lane = self._pick()
                if lane is None:
                    return
                update_id = self._lanes[lane].popleft()
                if update_id not in self._updates.pending:
                    self._waiting.discard(update_id)
                    self._free(lane)
                    continue
                self._flying.add(update_id)
                self.peak = max(self.peak, len(self._flying))
                task = asyncio.get_running_loop().create_task(self._deliver(lane, self._updates.pending[update_id]))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        self._poster.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._poster.close()
        with self._condition:
            self._flying.clear()
            self._busy.clear()

    def _enqueue(self, update_id: int, *, again: bool = False) -> None:
        if update_id in self._waiting:
            return
        self._waiting.add(update_id)
        lane = update_id
        if self.how.order == "chat":
            lane = chat_of(self._updates.pending[update_id]) or 0
        queue = self._lanes.setdefault(lane, deque())
        if again:
            queue.appendleft(update_id)
        else:
            queue.append(update_id)
        if len(queue) == 1 and lane not in self._busy:
            self._make_ready(lane)

    def _make_ready(self, lane: int) -> None:
        if self.how.order in {"shuffled", "reversed"}:
            self._ready.append(lane)
        else:
            self._ready_first.append(lane)

    def _pick(self) -> int | None:
        if self._ready_first:
            lane = self._ready_first.popleft()
        elif not self._ready:
            return None
        elif self.how.order == "reversed":
            lane = self._ready.pop()
        else:
            place = self._random.randrange(len(self._ready))
            self._ready[place], self._ready[-1] = self._ready[-1], self._ready[place]
            lane = self._ready.pop()
        self._busy.add(lane)
        return lane

    def _free(self, lane: int) -> None:
        self._busy.discard(lane)
        if self._lanes.get(lane):
            self._make_ready(lane)
        else:
            self._lanes.pop(lane, None)

    async def _deliver(self, lane: int, update: dict[str, Any]) -> None:
        update_id, body = update["update_id"], json.dumps(update).encode()
        accepted = False
        try:
            if self.how.twice == "at_once":
                results = await asyncio.gather(self._post(update_id, body), self._post(update_id, body))
                accepted = any(results)
            else:
                accepted = await self._post(update_id, body)
                if accepted and self.how.twice == "after":
                    await self._post(update_id, body)
        finally:
            with self._condition:
                self._flying.discard(update_id)
                self._waiting.discard(update_id)
        if accepted:
            with self._condition:
                self._updates.confirm(update_id, "webhook")
                self._free(lane)
        else:
            attempt = self._updates.attempts.get(update_id, 1)
            pause = min(self.how.backoff_limit_seconds, self.how.backoff_seconds * 2 ** min(attempt - 1, 20))
            asyncio.get_running_loop().call_later(pause, self._again, lane, update_id)
        self.pump()

    def _again(self, lane: int, update_id: int) -> None:
        with self._condition:
            if self.url and update_id in self._updates.pending:
                self._enqueue(update_id, again=True)
            self._free(lane)
        self.pump()

    async def _post(self, update_id: int, body: bytes) -> bool:
        with self._condition:
            url, secret = self._target(), self.secret
            attempt = self._updates.sent(update_id, "webhook")
        headers = {"Content-Type": "application/json"}
        if secret:
            headers["X-Telegram-Bot-Api-Secret-Token"] = secret
        status: int | None = None
        error, answer = "", b""
        try:
            async with asyncio.timeout(self.how.timeout_seconds):
                status, answer = await self._poster.post(url, body, headers)
        except TimeoutError:
            error = "Read timeout expired"
        except (OSError, h11.RemoteProtocolError) as problem:
            error = "Connection refused" if isinstance(problem, ConnectionRefusedError) else str(problem)
        accepted = status is not None and 200 <= status < 300
        if not accepted:
            self._last_error = (int(time.time()), error or f"Wrong response from the webhook: {status}")
        self._journal.record(
            WebhookAnswered, update_id=update_id, attempt=attempt, status=status, error=error, body=answer
        )
        return accepted

    def _target(self) -> str:
        if not self.reach_at:
            return self.url if urlsplit(self.url).hostname in LOOPBACK else "http://127.0.0.1:9"  # nothing goes out
        place = urlsplit(self.reach_at)
        return urlunsplit(urlsplit(self.url)._replace(scheme=place.scheme, netloc=place.netloc))


def _check_url(url: str, *, mapped: bool) -> None:
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in {"http", "https"}:
        raise bad_request("bad webhook: invalid webhook URL specified")
    if parts.hostname in LOOPBACK and not mapped:
        if parts.scheme == "https":
            raise bad_request("bad webhook: the stand-in speaks plain HTTP only")
        return
    if parts.scheme != "https":
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if (parts.port or 443) not in PORTS:
        raise bad_request("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
