"""Checking one's own bot: it can be loaded, its model takes its tools, and its tool servers answer."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from botservice.agent.tool import Tool
from botservice.cli.own_bot import OwnBot, load_service
from botservice.core.check_result import Finding
from botservice.core.errors import LLMError
from botservice.llm.chat import ChatLLM
from botservice.llm.demo import DemoChatLLM
from botservice.service import AgentService

_SERVERS_SECONDS = 20.0
_MODEL_SECONDS = 20.0
_QUESTION = ({"role": "user", "content": "Say: ready"},)


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


async def check_model(service: AgentService) -> Finding:
    """Return whether a bot's model answers when it is given the bot's tools."""
    llm = service.agent.llm
    if llm is None or isinstance(llm, DemoChatLLM):
        text = "a demo script answers: OPENAI_API_KEY or OPENAI_BASE_URL turns on a real model"
        return Finding("model", text if llm else f"{type(service.agent).__name__} names none", is_off=True)
    try:
        found = await asyncio.gather(*(_ask(each, service.agent.tools) for each in llm.llms))
    finally:
        await llm.close()
    return Finding("model", "; ".join(each.text for each in found), is_wrong=any(each.is_wrong for each in found))


async def _ask(llm: ChatLLM, tools: Mapping[str, Tool]) -> Finding:
    name = llm.models[0]
    try:
        async with asyncio.timeout(_MODEL_SECONDS):
            await llm.chat(_QUESTION, [each.schema for each in tools.values()])
    except TimeoutError:
        return Finding("model", f"{name}: no answer within {_MODEL_SECONDS:g} seconds", is_wrong=True)
    except LLMError as error:
        return Finding("model", f"{name}: {error}", is_wrong=True)
    return Finding("model", f"{name} answers, and takes the tools of this bot")


async def check_toolsets(service: AgentService) -> Finding:
    """Return which servers of tools a bot has, and which are down."""
    toolsets = service.agent.toolsets
    if not toolsets:
        return Finding("tools", "this bot names no MCP servers (toolsets=[MCPServers.load(…)])", is_off=True)
    said, is_wrong, count = [], False, 0
    for each in toolsets:
        await each.wait(_SERVERS_SECONDS)
        count += len(await each.tools())
        for server, problem in each.problems().items():
            said.append(f"{server}: {'down, ' + problem if problem else 'answers'}")
            is_wrong = is_wrong or problem is not None
    return Finding("tools", "; ".join([*said, f"{count} tools"]), is_wrong)
