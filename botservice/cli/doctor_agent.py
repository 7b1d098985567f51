"""Checking the agent: its own bot can be loaded, and its model answers, calls tools, reads results, sees pictures."""

import asyncio
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jsonschema import Draft202012Validator, SchemaError

from botservice.agent.agent import Agent
from botservice.agent.tool import Tool
from botservice.agent.tool_catalogue import current_time
from botservice.agent.toolbox import Toolset
from botservice.cli.own_bot import OwnBot, load_service
from botservice.conversation.readable_values import image_url
from botservice.core.check_result import Finding
from botservice.core.errors import LLMError
from botservice.core.messages import Attachment
from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, SaidMessage, ToolSchema
from botservice.llm.demo import DemoChatLLM
from botservice.service import AgentService

_SERVERS_SECONDS = 20.0


def check_bot(own: OwnBot) -> tuple[Finding, AgentService]:
    """Return what is said of a bot's own agent and tools, and the bot."""
    service = load_service(own.name, source=own.source)
    tools = service.agent.tools
    wrong = [said for each in tools.values() for said in _faults(each)]
    text = f"{own.name}: {type(service.agent).__name__}, {_counted(tools)}"
    return Finding("bot", "; ".join([text, *wrong]), is_wrong=bool(wrong)), service


def _counted(tools: Mapping[str, Tool]) -> str:
    if not tools:
        return "without tools of its own"
    asking = [name for name, each in tools.items() if each.needs_approval]
    asks = f" ({', '.join(asking)} asks first)" if len(asking) == 1 else f" ({', '.join(asking)} ask first)"
    return f"{len(tools)} tool{'s' * (len(tools) != 1)}: {', '.join(tools)}{asks if asking else ''}"


def _faults(tool: Tool) -> Sequence[str]:
    """Return what a model would stumble over in a tool."""
    parameters: Any = tool.schema["function"]["parameters"]
    try:
        Draft202012Validator.check_schema(parameters)
    except SchemaError as error:
        return [f"{tool.name}: its schema is none ({error.message})"]
    return [] if tool.description.strip() else [f"{tool.name} has no docstring: a model is not told what it does"]


async def check_toolsets(toolsets: Sequence[Toolset]) -> Finding:
    """Return which servers of tools answer, and which are down."""
    said, is_wrong, count = [], False, 0
    for each in toolsets:
        await each.wait(_SERVERS_SECONDS)
        count += len(await each.tools())
        for server, problem in each.problems().items():
            said.append(f"{server}: {'down, ' + problem if problem else 'answers'}")
            is_wrong = is_wrong or problem is not None
    return Finding("tools", f"{'; '.join(said) or 'no MCP servers'}; {count} tools", is_wrong)


_SECONDS: Final = 20.0  # for each request, so that the one of several that hangs is named
_SYSTEM: Final = {"role": "system", "content": "You are being tested. Answer in a few words."}
_READY: Final = {"role": "user", "content": "Say: ready"}
_ASK_TOOL: Final = {"role": "user", "content": "Which time is it in UTC? Call the tool current_time, then say it."}
_TOOLS: Final = (current_time.schema,)
_CALL_ID: Final = "call_of_the_test"
_LONGEST: Final = 40


async def check_model(agent: Agent) -> Finding:
    """Ask the models of an agent as it does, and say what their server refuses.

    Each request is short; there are at most four for each model.
    """
    llm = agent.llm
    if llm is None or isinstance(llm, DemoChatLLM):
        text = "a demo script answers: OPENAI_API_KEY or OPENAI_BASE_URL turns on a real model"
        return Finding("model", text if llm else f"{type(agent).__name__} names none", is_off=True)
    tools = [*agent.tools.values()] or ([current_time] if agent.toolsets else [])
    try:
        found = await asyncio.gather(*(_check_model(each, tools) for each in llm.llms))
    finally:
        await llm.close()
    return Finding("model", "; ".join(each.text for each in found), any(each.is_wrong for each in found))


async def _check_model(llm: ChatLLM, tools: Sequence[Tool]) -> Finding:
    try:
        return await _Check(llm, [each.schema for each in tools]).run()
    except TimeoutError:
        return Finding("model", f"{llm.model}: no answer within {_SECONDS:g} seconds", is_wrong=True)
    except LLMError as error:
        return Finding("model", f"{llm.model}: {error}", is_wrong=True)


class _Check:
    def __init__(self, llm: ChatLLM, tools: Sequence[ToolSchema]) -> None:
        self._llm = llm
        self._tools = tools

    async def run(self) -> Finding:
        try:
            response = await self._ask([_SYSTEM, _READY], self._tools)
        except LLMError as error:
            if self._tools and error.kind.is_of_request and await self._answers([_SYSTEM, _READY]):
                return self._wrong(f"takes no tools, which the agent needs ({error}); or choose another model")
            raise
        if "tools" in self._llm.refused:
            return self._wrong("takes no tools, which the agent needs; choose another model")
        if self._tools and (problem := await self._try_tool()):
            return self._wrong(problem)
        said = response.text.strip()[:_LONGEST]
        answers = f"answers: {said!r}" if said else "answers, and calls tools"
        sees = await self._try_picture()
        left_out = sorted(name for name in self._llm.refused if name not in ("image", "tools"))
        without = f"; its server does not take: {', '.join(left_out)}" if left_out else ""
        return Finding("model", f"{self._llm.model} {answers}{'' if sees else '; it sees no pictures'}{without}")

    async def _try_tool(self) -> str | None:
        """Return what is wrong with a call of a tool and its result; None if the model takes them."""
        asked: list[ChatMessage] = [_SYSTEM, _ASK_TOOL]
        try:
            response = await self._ask(asked, _TOOLS)
        except LLMError as error:
            return f"fails where it is to call a tool ({error})"
        if response.tool_calls:
            calls = [(call.id, call.name) for call in response.tool_calls]
        else:  # it did not want to; its server has to take a call all the same
            calls = [(_CALL_ID, current_time.name)]
        wanted = [{"id": i, "type": "function", "function": {"name": n, "arguments": "{}"}} for i, n in calls]
        message = {"role": "assistant", "content": response.text or None, "tool_calls": wanted}
        results = [{"role": "tool", "tool_call_id": i, "content": "2026-01-01 12:00 UTC"} for i, _ in calls]
        said = SaidMessage(message, response.items if response.tool_calls else ())
        try:
            await self._ask([*asked, said, *results], _TOOLS)
        except LLMError as error:
            return f"does not take back the result of a tool, which the agent needs ({error})"
        return None

    async def _try_picture(self) -> bool:
        """Return whether the model takes a picture."""
        shown = {"type": "image_url", "image_url": {"url": image_url(Attachment("image/png", "dot.png", data=_dot()))}}
        text = {"type": "text", "text": "Which colour is this? One word."}
        try:
            response = await self._ask([_SYSTEM, {"role": "user", "content": [text, shown]}])
        except (LLMError, TimeoutError):
            return False
        return not response.left_out

    async def _answers(self, messages: Sequence[ChatMessage]) -> bool:
        try:
            await self._ask(messages)
        except (LLMError, TimeoutError):
            return False
        return True

    async def _ask(self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = ()) -> ChatResponse:
        async with asyncio.timeout(_SECONDS):
            return await self._llm.chat(messages, tools)

    def _wrong(self, problem: str) -> Finding:
        return Finding("model", f"{self._llm.model} answers, but {problem}", is_wrong=True)


def _dot() -> bytes:
    """Return a red picture of 32 by 32 points: smaller ones are refused by some servers as too small."""
    rows = b"".join(b"\0" + b"\xff\0\0" * 32 for _ in range(32))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
