"""A platform on this machine: so much of Telegram's Bot API as the bot of the proof uses, and the shop's till.

Like the real one it brings the messages of a chat one after the other, and each again until it was taken.

Source: core.telegram.org/bots/api; which process speaks is seen by the address that it was given.
"""

import asyncio
import itertools
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import httpx2
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from botservice.proving.checker import ORDER, BotMessage, OrderAnswer, Paid, SimulationRecord
from botservice.proving.simulated_users import SimulatedChat

TOKEN: Final = f"4242:{'prove' * 7}"
NAME: Final = "prove_bot"
_ME: Final = {"id": 4242, "is_bot": True, "first_name": "Prove", "username": NAME}
_NETWORK_SECONDS: Final = 0.05  # at most, each way: so long a kill may strike between a request and its answer
_AGAIN_SECONDS: Final = 0.1
_SECRET: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name


class Platform:
    """Delivers what people write, and shows what the bot sends; the till is next door."""

    def __init__(
        self,
        chats: Sequence[SimulatedChat],
        record: SimulationRecord,
        chance: random.Random,
        clock: Callable[[], float],
    ) -> None:
        self.ports: set[int] = set()
        self.app = Starlette(
            routes=[
                Route("/{process}/till", self._pay, methods=["POST"]),
                Route(f"/{{process}}/bot{TOKEN}/{{method}}", self._call, methods=["GET", "POST"]),
            ]
        )
        self._record = record
        self._chance = chance
        self._clock = clock
        self._names = {chat.id: chat.name for chat in chats}
        self._lanes: dict[int, asyncio.Queue[dict[str, Any]]] = {chat.id: asyncio.Queue() for chat in chats}
        self._updates = itertools.count(1)
        self._messages = itertools.count(1)
        self._webhook: tuple[str, str] | None = None

    def say(self, chat: SimulatedChat, person: int, text: str) -> None:
        """Deliver a message to the bot, sooner or later. In a group it is called by its name."""
        if chat.is_group:
            text = f"@{NAME} {text}"
        message: dict[str, Any] = {
            "message_id": next(self._messages),
            "date": 1_800_000_000 + next(self._updates),
            "chat": {"id": chat.id, "type": "group" if chat.is_group else "private", "title": chat.name},
            "from": {"id": person, "is_bot": False, "first_name": f"Person {person}"},
            "text": text,
        }
        if chat.is_group:
            message["entities"] = [{"type": "mention", "offset": 0, "length": len(NAME) + 1}]
        self._lanes[chat.id].put_nowait({"update_id": next(self._updates), "message": message})

    async def deliver(self) -> None:
        """Bring the bot what was written, chats side by side, until cancelled."""
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as client, asyncio.TaskGroup() as group:
            for lane in self._lanes.values():
                group.create_task(self._deliver_lane(lane, client))

    async def _deliver_lane(self, lane: "asyncio.Queue[dict[str, Any]]", client: httpx2.AsyncClient) -> None:
        while True:
            update = await lane.get()
            while not await self._post(update, client):  # noqa: ASYNC110 - again and again, as the real one
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _post(self, update: dict[str, Any], client: httpx2.AsyncClient) -> bool:
        """Try to bring one update to any of the processes, and return whether it was taken."""
        if self._webhook is None or not self.ports:
            return False
        path, secret = self._webhook
        address = f"http://127.0.0.1:{self._chance.choice(sorted(self.ports))}{path}"
        try:
            answer = await client.post(address, json=update, headers={_SECRET: secret})
        except httpx2.HTTPError:
            return False
        return answer.is_success

    async def _call(self, request: Request) -> Response:
        """Answer a call of the Bot API."""
        try:
            body = await request.body()
        except ClientDisconnect:  # its process was killed
            return Response(status_code=400)
        form = {name: values[-1] for name, values in parse_qs(body.decode()).items()}
        await self._travel()
        result = self._do(request.path_params["method"], form, request.path_params["process"])
        await self._travel()
        return JSONResponse({"ok": True, "result": result})

    def _do(self, method: str, form: dict[str, str], process: str) -> Any:
        match method:
            case "getMe":
                return _ME
            case "setWebhook":
                self._webhook = (httpx2.URL(form["url"]).path, form.get("secret_token", ""))
                return True
            case "getWebhookInfo":
                return {"url": "", "pending_update_count": 0}
            case "sendMessage":
                return self._show(int(form["chat_id"]), form["text"], process)
            case _:  # drafts, signs of life, menus: nothing that stays
                return True

    def _show(self, chat_id: int, text: str, process: str) -> dict[str, Any]:
        order = next(iter(ORDER.findall(text)), "")
        self._record.show(BotMessage(order, self._names[chat_id], self._clock(), process, OrderAnswer.of(text)))
        return {"message_id": next(self._messages), "date": 1_800_000_000, "chat": {"id": chat_id}, "text": text}

    async def _pay(self, request: Request) -> Response:
        """Take a payment, however often the same one comes: a till does not know better."""
        try:
            order = str(json.loads(await request.body())["order"])
        except ClientDisconnect:  # its process was killed
            return Response(status_code=400)
        await self._travel()
        self._record.paid.append(Paid(order, self._clock(), request.path_params["process"]))
        await self._travel()
        return JSONResponse({"ok": True})

    async def _travel(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, _NETWORK_SECONDS))
