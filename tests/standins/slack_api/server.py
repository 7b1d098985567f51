"""The stand-in itself: calls come in here, meet what was ordered to go wrong, and take effect."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from aiohttp import web

from standins.serving import LOOK_SECONDS
from standins.slack_api import other  # noqa: F401 - it fills the table of methods
from standins.slack_api.chat import methods
from standins.slack_api.events import Events
from standins.slack_api.faults import Drop, Fault, Faults, Hang, LoseAnswer, Order, Refuse
from standins.slack_api.people import People
from standins.slack_api.world import TEAM, SlackError, World

# What is read takes no JSON. Source: each method's page, "Content types".
FORM_ONLY = frozenset(
    {
        "conversations.history",
        "conversations.info",
        "conversations.replies",
        "files.getUploadURLExternal",
        "files.info",
        "oauth.v2.access",
        "users.info",
    }
)
BOT_TOKEN = "xoxb-1111-stand-in-bot-token"
APP_TOKEN = "xapp-1-stand-in-app-token"
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"


class SlackApi(People):
    """Slack with one workspace. See `running`, `person_says`, `order`, `until`, `calls`."""

    def __init__(self) -> None:
        self.condition = threading.Condition(threading.RLock())
        self.world = World()
        self.world.tokens[BOT_TOKEN] = TEAM
        self.bot_token, self.app_token, self.signing_secret = BOT_TOKEN, APP_TOKEN, SIGNING_SECRET
        self.faults = Faults()
        self.calls_made: list[tuple[str, dict[str, Any], str]] = []
        self.crashes: list[BaseException] = []
        self.port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.events = Events(self)

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator["SlackApi"]:
        """Run a fresh Slack while the block runs."""
        api = cls()
        with api.serving():
            yield api

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        ready = threading.Event()
        thread = threading.Thread(target=self._run, args=(ready,), daemon=True, name="slack-api")
        thread.start()
        if not ready.wait(60):
            raise RuntimeError("the stand-in did not start")
        try:
            yield
        finally:
            with self.condition:
                if self._loop is not None and self._stop is not None:
                    self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(60)
        if self.crashes:
            raise self.crashes[0]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """What SLACK_API_URL holds."""
        return f"{self.base}/api/"

    # What a test orders and asks.

    def order(
        self,
        fault: Fault,
        method: str,
        *,
        times: int | None = 1,
        when: Callable[[dict[str, Any]], bool] = lambda _: True,
    ) -> Order:
        """Have something go wrong at the next calls of a method."""
        with self.condition:
            order = Order(fault, method, times, when)
            self.faults.orders.append(order)
            return order

    def calls(self, method: str) -> list[dict[str, Any]]:
        """Return the arguments of every call of a method, in order."""
        with self.condition:
            return [params for name, params, _ in self.calls_made if name == method]

    def outcomes(self, method: str) -> list[str]:
        """Return how every call of a method ended: "ok", or an error."""
        with self.condition:
            return [outcome for name, _, outcome in self.calls_made if name == method]

    def wait(self, predicate: Callable[[], Any], *, timeout: float = 60.0) -> Any:
        """Return the first true value of predicate, asked after every change and now and then.

        Raises:
            TimeoutError: there was none.
        """
        end = time.monotonic() + timeout
        with self.condition:
            while not (value := predicate()):
                left = end - time.monotonic()
                if left <= 0:
                    shown = [(post.channel, post.thread_ts, post.shown[:60]) for post in self.world.posts]
                    raise TimeoutError(f"not within {timeout} s; posts: {shown}; last calls: {self._tail()}")
                self.condition.wait(min(left, LOOK_SECONDS))
            return value

    async def until(self, predicate: Callable[[], Any], *, timeout: float = 60.0) -> Any:
        """Like `wait`, while a loop goes on."""
        return await asyncio.to_thread(self.wait, predicate, timeout=timeout)

    async def all_taken(self) -> None:
        """Return when the app has acknowledged whatever was sent: it stores it before."""
        await self.until(lambda: not self.events.under_way)

    def _tail(self) -> list[tuple[str, str]]:
        return [(name, outcome) for name, _, outcome in self.calls_made[-12:]]

    def in_loop(self, action: Callable[..., object], *args: Any) -> None:
        """Run action soon in the server's loop."""
        with self.condition:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(action, *args)

    # The server.

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._main(ready))
        except Exception as error:  # noqa: BLE001 - shown to the test when its block ends
            self.crashes.append(error)

    async def _main(self, ready: threading.Event) -> None:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/socket", self.events.socket)
        app.router.add_get("/files/{file}", self._download)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_post("/response/{name}", self._respond)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        with self.condition:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        ready.set()
        await self._stop.wait()
        with self.condition:
            self._loop = None
        await self.events.close()
        await runner.cleanup()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["method"]
        params = await _read(request, name)
        with self.condition:
            order = self.faults.take(name, params)
        if order is not None and isinstance(order.fault, Hang):
            await order.gate.passed()
            order = None
        if order is not None and isinstance(order.fault, Drop):
            self._note(name, params, "dropped")
            return _drop(request)
        if order is not None and isinstance(order.fault, Refuse):
            self._note(name, params, order.fault.error)
            body = {"ok": False, "error": order.fault.error}
            return web.json_response(body, status=order.fault.status, headers=order.fault.headers)
        answer = self._effect(name, params)
        if order is not None and isinstance(order.fault, LoseAnswer):
            return _drop(request)
        return web.json_response(answer, headers={"X-OAuth-Scopes": ",".join(sorted(self.world.scopes or ALL_SCOPES))})

    def _effect(self, name: str, params: dict[str, Any]) -> dict[str, Any]:
        function, arguments, scope = methods.get(name, (_unknown, frozenset(params), ""))
        with self.condition:
            try:
                self._check(params, arguments, scope)
                answer = {"ok": True, **function(self.world, {**params, "url": self.base})}
            except SlackError as error:
                answer = {"ok": False, "error": error.error, **error.extra}
        self._note(name, params, answer.get("error", "ok"))
        return answer

    def _check(self, params: dict[str, Any], arguments: frozenset[str], scope: str) -> None:
        unknown = set(params) - arguments - {"token"}
        if unknown:
            raise SlackError("invalid_arguments", unknown=sorted(unknown))
        token = params["token"]
        if not token.startswith("xapp-") and not arguments & {"client_secret"} and self.world.team_of(token) is None:
            raise SlackError("invalid_auth")
        scopes = self.world.scopes
        if scope and scope != "history" and scopes is not None and scope not in scopes:
            raise SlackError("missing_scope", needed=scope, provided=",".join(sorted(scopes)))

    def _note(self, name: str, params: dict[str, Any], outcome: str) -> None:
        with self.condition:
            self.calls_made.append((name, params, outcome))
            self.condition.notify_all()

    async def _download(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") not in {f"Bearer {token}" for token in self.world.tokens}:
            return web.Response(text="<html>sign in</html>", content_type="text/html")
        data = self.world.file_bytes.get(request.match_info["file"])
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        with self.condition:
            self.world.file_bytes[request.match_info["file"]] = data
        return web.Response(text=f"OK - {len(data)}")

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        with self.condition:
            order = self.faults.take("response_url", body)
            if order is None:
                self.world.responses.append((request.match_info["name"], body))
                if body.get("unfurl_links", True) or body.get("unfurl_media", True):
                    self.world.preview(str(body.get("text", "")))
            self.condition.notify_all()
        return web.Response(text="ok") if order is None else web.Response(status=404, text="expired_url")


ALL_SCOPES = {scope for _, _, scope in methods.values() if scope and scope != "history"}


def _unknown(world: World, params: dict[str, Any]) -> dict[str, Any]:
    raise SlackError("unknown_method")


async def _read(request: web.Request, name: str) -> dict[str, Any]:
    params: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        body = json.loads(await request.text() or "{}")
        params |= {} if name in FORM_ONLY else body
    else:
        params |= dict(await request.post())
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    params["token"] = token if kind == "Bearer" else str(params.get("token", ""))
    return params


def _drop(request: web.Request) -> web.StreamResponse:
    """Cut the connection without a word."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
