"""Servers to which each person signs in: connections of their own, and the link that they are given in private."""

import asyncio
import importlib
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botservice.agent.tool import Tool
from botservice.agent.tool_outputs import OutputError
from botservice.conversation.context import AgentContext
from botservice.core.messages import Button
from botservice.mcp.config import ServerConfig
from botservice.mcp.connection import ServerConnection
from botservice.mcp.failures import ServerDown
from botservice.mcp.sign_ins import SignIn, SignIns, find_asker, make_code
from botservice.mcp.stdio import Children
from botservice.mcp.tool import make_tools
from botservice.storage.database import Storage
from botservice.storage.encryption import Cipher
from botservice.texts import in_language

if TYPE_CHECKING:
    from botservice.mcp.oauth import PersonalAuth

CALLBACK_PATH: Final = "/mcp/callback"
_MOST_CONNECTIONS: Final = 100
_IDLE_SECONDS: Final = 900.0
_ASKED: Final = (
    "The person is asked to sign in: a button under your answer leads there. Tell them that, and to say the six digits "
    "here that they see when they have done so; then call this tool with them. The link lasts 15 minutes."
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Returned:
    """What came of a person's return.

    Attributes:
        server: To which they signed in, or None if they did not.
        code: What they are to say in the chat.
    """

    server: str | None = None
    language: str | None = None
    code: str = field(default="", repr=False)


@dataclass(slots=True)
class _Personal:
    """One person's connection."""

    connection: ServerConnection
    auth: "PersonalAuth"
    used_at: float


class PersonalServers:
    """The connections of people, one for each account and server: what is one's is never used for another."""

    def __init__(self, public_url: str, encryption_key: str, wait_seconds: float) -> None:
        """Make it; nothing is connected yet.

        Args:
            public_url: Where people's browsers reach this service.
            encryption_key: What tokens are encrypted with, as ENCRYPTION_KEY is written.
        """
        self._sign_ins = SignIns(Cipher(encryption_key))
        self._returning = f"{public_url.rstrip('/')}{CALLBACK_PATH}"
        self._wait_seconds = wait_seconds
        self._open: OrderedDict[tuple[int, str], _Personal] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    async def tools_for(self, context: AgentContext, configs: Sequence[ServerConfig]) -> list[list[Tool]]:
        """Return the tools of each server for the person who asks in private; where others listen there are none."""
        asker = await find_asker(context)
        if asker is None:
            return []
        self._let_idle_go()
        return list(await asyncio.gather(*(self._tools_of(context.storage, asker, each) for each in configs)))

    async def finish(
        self, storage: Storage, configs: Sequence[ServerConfig], server: str, query: Mapping[str, str]
    ) -> "Returned":
        """Take in a person who returns: they have signed in once they say in the chat what their page shows.

        Each server has an address of its own for that (RFC 9700, 4.4.2.2): one that sends people to the page of
        another does not get what they bring from there.
        """
        await asyncio.to_thread(importlib.import_module, "mcp.client.auth")  # takes a second, in which others go on
        from botservice.mcp.oauth import SignInRefused, finish

        taken = await self._sign_ins.take(storage, server, query.get("state", ""))
        if taken is None:
            return Returned()
        asker, grant = taken
        config = next((each for each in configs if each.prefix == server and each.url == grant.url), None)
        if config is None:
            return Returned(language=grant.language)
        try:
            made = await finish(config, grant, query)
        except (SignInRefused, ServerDown) as error:
            logger.warning("mcp.not_signed_in", extra={"server": server, "reason": type(error).__name__})
            return Returned(language=grant.language)
        code = make_code()
        is_kept = await self._sign_ins.keep(storage, asker, replace(made, code=code))
        return Returned(config.name, grant.language, code) if is_kept else Returned(language=grant.language)

    async def close(self) -> None:
        """Let go of all connections, side by side."""
        for key in list(self._open):
            self._drop(key)
        await asyncio.gather(*self._closing)

    async def _tools_of(self, storage: Storage, asker: int, config: ServerConfig) -> list[Tool]:
        found = await self._sign_ins.find(storage, asker, config.prefix, config.url or "")
        if found is not None and found.code is None:
            connection = self._connect(storage, asker, config, found)
            await connection.wait(self._wait_seconds)
            if not connection.is_refused:
                return [self._sign_out_tool(config, found), *make_tools(connection, partial(self._ask, config))]
        self._drop((asker, config.prefix))
        return [self._sign_in_tool(config)]

    def _connect(self, storage: Storage, asker: int, config: ServerConfig, found: SignIn) -> ServerConnection:
        from botservice.mcp.oauth import PersonalAuth

        key = (asker, config.prefix)
        known = self._open.get(key)
        if known is not None and known.auth.signed_in.id != found.id:
            self._drop(key)
            known = None
        if known is None:
            auth = PersonalAuth(config, self._sign_ins, storage, asker, found)
            known = _Personal(ServerConnection(config, Children(), self._wait_seconds, auth), auth, 0.0)
            self._open[key] = known
        known.used_at = time.monotonic()
        self._open.move_to_end(key)
        return known.connection

    def _let_idle_go(self) -> None:
        for key, each in list(self._open.items()):
            is_idle = each.used_at < time.monotonic() - _IDLE_SECONDS and not each.connection.is_asking
            if len(self._open) > _MOST_CONNECTIONS or is_idle:
                self._drop(key)

    def _drop(self, key: tuple[int, str]) -> None:
        known = self._open.pop(key, None)
        if known is not None:
            closing = asyncio.create_task(known.connection.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _ask(self, config: ServerConfig, context: AgentContext) -> list[Any]:
        """Return a link to sign in for the person who asks."""
        from botservice.mcp.oauth import begin

        asker = await find_asker(context)
        if asker is None:
            raise OutputError("people sign in to this server in a private chat with you alone: tell them so")
        keep = partial(self._sign_ins.begin, context.storage, asker, config.prefix)
        try:
            link = await begin(config, f"{self._returning}/{config.prefix}", keep, language=context.language)
        except ServerDown as error:
            raise OutputError(f"nobody can sign in to server {config.name} at this moment: {error}") from None
        return [_ASKED, Button(in_language("sign_in.button", context.language, server=config.name), url=link)]

    def _sign_in_tool(self, config: ServerConfig) -> Tool:
        async def sign_in(context: AgentContext, code: str = "") -> list[Any]:
            """Sign in.

            Args:
                code: The six digits that the person saw when they had signed in, where they say them; else nothing.
            """
            if not code:
                return await self._ask(config, context)
            if await self._confirm(context, config, code):
                return [f"The person has signed in: you can use the tools of {config.name} for them now."]
            raise OutputError("this is not what their page shows: have them look again, or sign in again")

        said = f"Have the person sign in to {config.name}, whose tools you can use for them then."
        return Tool(
            sign_in,
            name=f"{config.prefix}__sign_in",
            description=said,
            idempotent=True,
            max_calls=1,
            roles=config.roles_of(),
        )

    async def _confirm(self, context: AgentContext, config: ServerConfig, code: str) -> bool:
        asker = await find_asker(context)
        if asker is None:
            return False
        found = await self._sign_ins.find(context.storage, asker, config.prefix, config.url or "")
        return found is not None and await self._sign_ins.confirm(context.storage, found, code)

    def _sign_out_tool(self, config: ServerConfig, found: SignIn) -> Tool:
        async def sign_out(context: AgentContext) -> str:
            await self._sign_ins.drop(context.storage, found.id)
            return "The person is signed out: nothing that they signed in with is kept here any more."

        said = f"Sign the person out of {config.name}, where they ask for that."
        return Tool(sign_out, name=f"{config.prefix}__sign_out", description=said, idempotent=True)
