"""The stand-in itself: requests come in here, meet what was ordered to go wrong, and take effect."""

import asyncio
import contextlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from standins.bot_api import guests, media, messages, personal, rich, settings, topics  # noqa: F401 - they fill the table of methods
from standins.bot_api.calls import ApiError, Call, read_parameters, too_many_requests
from standins.bot_api.chats import World
from standins.bot_api.entities import Strictness
from standins.bot_api.faults import Delay, Drop, Fault, Faults, Hang, LoseAnswer, Order, Refuse
from standins.bot_api.guests import GuestQuery, Guests
from standins.bot_api.journal import CallAnswered, CallReceived, Outcome
from standins.bot_api.limits import RateLimits
from standins.bot_api.methods import Described, Method, method
from standins.bot_api.people import People
from standins.bot_api.updates import Updates
from standins.bot_api.watching import Watching
from standins.bot_api.webhooks import Delivery, Webhooks
from standins.serving import ClientGoneError, Exchange

TOKEN = "7140000001:AAtest-token-of-the-stand-in-000000000"
NO_RESULT = object()


class BotApi(People, Guests, Watching):
    """A Bot API server with one bot. See `running`, `person_says`, `wait_for_message`, `order`, `journal`."""

    def __init__(self, *, token: str = TOKEN, username: str = "stand_in_bot", strict: Strictness = Strictness()):  # noqa: B008 - frozen
        super().__init__()
        self.token = token
        self.strict = strict
        self.privacy_mode = False
        bot = {"id": int(token.partition(":")[0]), "is_bot": True, "first_name": "Bot", "username": username}
        self.world = World(bot, self.journal)
        self.updates = Updates(self.journal)
        self.webhooks = Webhooks(self.condition, self.journal, self.updates)
        self.faults = Faults()
        self.limits: RateLimits | None = None
        self.commands: dict[tuple[str, str], list[dict[str, str]]] = {}
        self.callback_answers: dict[str, dict[str, Any] | None] = {}
        self.names: dict[str, str] = {}
        self.abilities: dict[str, bool] = {}
        self.guest_queries: dict[str, GuestQuery] = {}
        self.methods: dict[str, Method] = dict(method.methods)

    @classmethod
    @contextlib.contextmanager
    def running(cls, *, port: int = 0, **options: Any) -> Iterator["BotApi"]:
        """Run a fresh server while the block runs."""
        api = cls(**options)
        with api.serving(port):
            yield api

    @property
    def base_url(self) -> str:
        """What python-telegram-bot calls base_url; `url` is what TELEGRAM_API_URL holds."""
        return f"{self.url}/bot"

    @property
    def base_file_url(self) -> str:
        return f"{self.url}/file/bot"

    @property
    def username(self) -> str:
        return str(self.world.bot["username"])

    def order(
        self,
        fault: Fault,
        method: str | None = None,
        *,
        chat_id: int | None = None,
        when: Callable[[Call], bool] = lambda _: True,
        times: int | None = 1,
    ) -> Order:
        """Let the next `times` fitting calls go wrong; None is always. The first order that fits is used."""
        with self.condition:
            return self.faults.order(fault, method, chat_id, when, times)

    def deliver(self, **how: Any) -> None:
        """Change how webhooks are brought: the fields of `Delivery`."""
        with self.condition:
            self.webhooks.how = replace(Delivery(), **how)
        self.in_loop(self.webhooks.rebuild)

    def reach_webhooks_at(self, base_url: str) -> None:
        """Bring what goes to a public webhook address to this one on loopback instead."""
        with self.condition:
            self.webhooks.reach_at = base_url

    @contextlib.contextmanager
    def webhook_paused(self) -> Iterator[None]:
        """Bring nothing while the block runs, so that updates pile up."""
        with self.condition:
            self.webhooks.paused += 1
        try:
            yield
        finally:
            with self.condition:
                self.webhooks.paused -= 1
            self.in_loop(self.webhooks.pump)

    async def after_start(self) -> None:
        self.webhooks.rebuild()

    async def before_stop(self) -> None:
        await self.webhooks.stop()

    async def handle(self, exchange: Exchange) -> None:
        found = re.fullmatch(r"/(file/)?bot([^/]+)/(.+)", exchange.path)
        if found is None or not re.fullmatch(r"\d+:[\w-]+", found[2]):
            await _answer(exchange, ApiError(404, "Not Found"))
        elif found[2] != self.token:
            await exchange.body()
            await _answer(exchange, ApiError(401, "Unauthorized"))
        elif found[1]:
            await self._file(exchange, found[3])
        else:
            await self._call(exchange, found[3])

    async def _file(self, exchange: Exchange, path: str) -> None:
        with self.condition:
            file = self.world.files.by_path.get(path)
            call = Call("downloadFile", {"path": path}, {})
            order = self.faults.take(call)
        if order is not None and not await self._before(exchange, order):
            return
        if file is None:
            await _answer(exchange, ApiError(404, "Not Found"))
        else:
            await exchange.answer(200, file.data, content_type="application/octet-stream")

    async def _call(self, exchange: Exchange, name: str) -> None:
        body = await exchange.body()
        refused: ApiError | None = None
        call = Call(name, {}, {})
        try:
            params, files = read_parameters(exchange.query, exchange.headers.get("content-type", ""), body)
            call = Call(name, params, files)
        except ApiError as error:
            refused = error
        with self.condition:
            received = self.journal.record(
                CallReceived,
                method=name,
                chat_id=call.chat_id,
                params=call.params,
                files=tuple(f"{upload.field}: {upload.filename}" for upload in call.files.values()),
            )
            call = replace(call, seq=received.seq)
            order = self.faults.take(call)
        ending = _Ending(self, call)
        try:
            if order is not None and not await self._before(exchange, order, ending):
                return
            try:
                if refused is not None:
                    raise refused
                ending.succeed(await self._effect(exchange, call))
            except ApiError as error:
                ending.fail(error)
            if order is None or await self._after_effect(exchange, order, ending):
                await ending.answer(exchange)
        except ClientGoneError:
            ending.close(Outcome.ABANDONED)

    async def _before(self, exchange: Exchange, order: Order, ending: "_Ending | None" = None) -> bool:
        """Do what was ordered to happen before the effect, and return whether the call goes on."""
        match order.fault:
            case Refuse(status, description, parameters, html):
                refusal = ApiError(status, description, parameters)
                if ending is not None:
                    ending.fail(refusal)
                    ending.close(Outcome.ANSWERED)
                await _answer(exchange, refusal, html=html)
                return False
            case Drop():
                if ending is not None:
                    ending.close(Outcome.DROPPED)
                await exchange.drop()
                return False
            case Delay(seconds, after_effect=False):
                await exchange.unless_gone(asyncio.sleep(seconds))
            case Hang(after_effect=False):
                await exchange.unless_gone(order.gate.passed())
        return True

    async def _after_effect(self, exchange: Exchange, order: Order, ending: "_Ending") -> bool:
        """Do what was ordered to happen after the effect, and return whether the answer is sent."""
        match order.fault:
            case LoseAnswer():
                ending.close(Outcome.LOST)
                await exchange.drop()
                return False
            case Delay(seconds, after_effect=True):
                await exchange.unless_gone(asyncio.sleep(seconds))
            case Hang(after_effect=True):
                await exchange.unless_gone(order.gate.passed())
        return True

    async def _effect(self, exchange: Exchange, call: Call) -> Any:
        if call.method.lower() == "getupdates":
            return await self._get_updates(exchange, call)
        with self.condition:
            chosen = self.methods.get(call.method.lower())
            if chosen is None:
                raise ApiError(404, "Not Found: method not found")
            self._keep_to_limits(call)
            return chosen(self, call)

    def _keep_to_limits(self, call: Call) -> None:
        if self.limits is not None and isinstance(call.chat_id, int):
            wait = self.limits.wait_needed(call.method, call.chat_id, is_group=call.chat_id < 0)
            if wait:
                raise too_many_requests(wait)

    async def _get_updates(self, exchange: Exchange, call: Call) -> list[dict[str, Any]]:
        with self.condition:
            if self.webhooks.url:
                raise ApiError(
                    409,
                    "Conflict: can't use getUpdates method while webhook is active; "
                    "use deleteWebhook to delete the webhook first",
                )
            self.updates.allow(call.object("allowed_updates", list, "allowed updates"))
            self.condition.notify_all()

        def take() -> list[dict[str, Any]]:
            with self.condition:
                return self.updates.take(call)

        return await exchange.unless_gone(self.updates.long_poll(call, take))


class _Ending:
    """How a call ends: told to the journal exactly once, before the client can know."""

    def __init__(self, api: BotApi, call: Call):
        self._api = api
        self._call = call
        self._result: Any = NO_RESULT
        self._error: ApiError | None = None
        self._closed = False

    def succeed(self, result: Any) -> None:
        self._result = result

    def fail(self, error: ApiError) -> None:
        self._error = error

    def close(self, outcome: Outcome) -> None:
        if self._closed:
            return
        self._closed = True
        has_effect = self._result is not NO_RESULT
        self._api.journal.record(
            CallAnswered,
            call_seq=self._call.seq,
            method=self._call.method,
            chat_id=self._call.chat_id,
            status=self._error.status if self._error else 200 if has_effect else 0,
            description=self._error.description if self._error else "",
            outcome=outcome,
            had_effect=has_effect,
            result=self._result if has_effect else None,
        )

    async def answer(self, exchange: Exchange) -> None:
        self.close(Outcome.ABANDONED if exchange.is_gone else Outcome.ANSWERED)
        await _answer(exchange, self._error if self._error is not None else self._result)


async def _answer(exchange: Exchange, outcome: Any, *, html: bool = False) -> None:
    if not isinstance(outcome, ApiError):
        if isinstance(outcome, Described):
            await exchange.answer_json(200, {"ok": True, "result": outcome.result, "description": outcome.description})
        else:
            await exchange.answer_json(200, {"ok": True, "result": outcome})
        return
    if html:
        page = f"<html><head><title>{outcome.status} {outcome.description}</title></head></html>"
        await exchange.answer(outcome.status, page.encode(), content_type="text/html")
        return
    answer = {"ok": False, "error_code": outcome.status, "description": outcome.description}
    headers = {}
    if outcome.parameters:
        answer["parameters"] = outcome.parameters
        if "retry_after" in outcome.parameters:
            headers["Retry-After"] = str(outcome.parameters["retry_after"])
    await exchange.answer_json(outcome.status, answer, headers)


def random_token() -> str:
    """Return another well-formed token, for servers that a test runs side by side."""
    return f"{random.randrange(10**9, 10**10)}:AA{random.randbytes(16).hex()}"
