"""A service with the routes for programs, on a real web server, with a messenger as its platform."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
from standins.web_server import web_server
from turns.messenger import Messenger, echo

from botservice import AgentService, FunctionsBasedAgent, NoMessages, ScriptedChatLLM, Storage
from botservice.app import Application, running
from botservice.config.settings import Settings
from botservice.server.web_app import build_web_app
from botservice.turns.commands import parse_command

TOKEN = "a-token-of-programs"
CHAT = "transport=messenger chat_id=1"


@dataclass(frozen=True, slots=True)
class Served:
    """A running service."""

    application: Application
    client: httpx.AsyncClient
    messenger: Messenger
    url: str
    llm: Any

    async def post(self, path: str, body: Any, *, token: str | None = TOKEN, **options: Any) -> httpx.Response:
        """Post JSON, with a bearer token where there is one."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return await self.client.post(path, json=body, headers=headers, **options)

    async def announce(self, path: str, size: int, **headers: str) -> int:
        """Announce a body of so many bytes, send none of it, and return the status of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.url.rpartition(":")[2]))
        lines = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {size}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        status = int((await reader.readline()).split()[1])
        writer.close()
        await writer.wait_closed()
        return status

    async def send(self, text: str, chat: str = CHAT, **fields: Any) -> httpx.Response:
        """Say something in a chat."""
        return await self.post("/api/send", {"chat": chat, "text": text, **fields})


class Commanded(Messenger):
    """A messenger in which commands are some."""

    async def read(self, event):
        message = await super().read(event)
        return replace(message, command=parse_command(message.text))


@contextlib.asynccontextmanager
async def serving(
    storage: Storage, script: Any = echo, *, tools: Any = (), agent_options: Any = None, **settings: Any
) -> AsyncIterator[Served]:
    """Serve until the block is left."""
    chosen = Settings(_env_file=None, **{"api_token": TOKEN, **settings})
    llm = script if hasattr(script, "chat") else ScriptedChatLLM(script)
    given = {"search_k": 0, "message_selector": NoMessages(), "prompt": "", **(agent_options or {})}
    service = AgentService(FunctionsBasedAgent(tools=tools, llm=llm, **given), storage)
    messenger = Commanded()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with running(chosen, service, [messenger]) as application:
            app = build_web_app(application)
            async with web_server(app.routes, listener), httpx.AsyncClient(base_url=url, timeout=60) as client:
                yield Served(application, client, messenger, url, llm)
