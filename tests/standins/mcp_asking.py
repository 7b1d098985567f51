"""A server of the `mcp` package whose tools ask the person: `mcp_asking.py new|old FOLDER`.

As "old" it refuses the handshake of revision 2026-07-28, as servers before it do, and asks by requests during the call.
Each line of FOLDER/acted.txt is something that a tool did.
"""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

REVISION, FOLDER = sys.argv[1], Path(sys.argv[2])
server = MCPServer("asking")
NEVER_TWICE = ToolAnnotations(read_only_hint=False, idempotent_hint=False)


def act(what: str) -> None:
    with (FOLDER / "acted.txt").open("a") as file:
        file.write(what + "\n")


class Guest(BaseModel):
    name: str = Field(title="Your name", max_length=20)
    age: int = Field(ge=1, le=120)
    size: Literal["single", "double"] = Field(title="Room", description="Which room you would like.")
    breakfast: bool
    email: str | None = Field(default=None, json_schema_extra={"format": "email"})


class Agreement(BaseModel):
    pass


class Secret(BaseModel):
    api_key: str


def ask_guest() -> Elicit[Guest]:
    return Elicit("Who is *coming*? @everyone <b>https://evil.example</b>", Guest)


def ask_secret() -> Elicit[Secret]:
    return Elicit("Please log in.", Secret)


@server.tool(annotations=NEVER_TWICE)
async def book(hotel: str, guest: Annotated[Guest, Resolve(ask_guest)]) -> str:
    """Book a room."""
    act(f"booked {hotel} for {guest.model_dump_json()}")
    return f"booked {hotel} for {guest.name}, {guest.age}, {guest.size}, {guest.breakfast}, {guest.email}"


@server.tool(annotations=NEVER_TWICE)
async def log_in(secret: Annotated[Secret, Resolve(ask_secret)]) -> str:
    """Log in."""
    act("logged in")
    return "logged in"


def ask_model() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Sum up: the sea is wide."))
    return Sample([message], max_tokens=100, system_prompt="You sum up.")


@server.tool(annotations=NEVER_TWICE)
async def sum_up(summary: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """Sum up."""
    return f"in short: {getattr(summary.content, 'text', '')}"


@server.tool(annotations=NEVER_TWICE)
async def act_and_ask(context: Context) -> str:
    """Act, ask, act."""
    act("before")
    await context.report_progress(1, 2, "working")
    said = await context.elicit("Go on?", Agreement)
    act(f"after {said.action}")
    return f"the person: {said.action}"


@server.tool(annotations=NEVER_TWICE)
async def ask_often(context: Context, times: int) -> str:
    """Ask again and again."""
    said = [(await context.elicit(f"Question {number}?", Agreement)).action for number in range(times)]
    return " ".join(said)


@server.tool(annotations=NEVER_TWICE)
async def read_files() -> str:
    """Read files, once the person has connected them on a page."""
    if not (FOLDER / "connected").exists():
        page = ElicitRequestURLParams(message="Connect.", url="https://files.example/connect", elicitation_id="1")
        raise UrlElicitationRequiredError([page])
    return "the files"


@server.tool(annotations=NEVER_TWICE)
async def ask_twice_at_once(context: Context, word: str) -> str:
    """Ask two questions about a word; the second comes as soon as FOLDER/second is there."""

    async def ask_later() -> str:
        while not (FOLDER / "second").exists():  # noqa: ASYNC110 - the test writes it
            await anyio.sleep(0.01)
        said = await context.elicit(f"Second about {word}?", Agreement)
        act(f"second {said.action}")
        return said.action

    async with asyncio.TaskGroup() as group:
        second = group.create_task(ask_later())
        first = group.create_task(context.elicit(f"First about {word}?", Agreement))
    act(f"{word}: {first.result().action} {second.result()}")
    return f"{word}: {first.result().action} {second.result()}"


@server.tool(annotations=NEVER_TWICE)
async def work(context: Context, word: str) -> str:
    """Work until FOLDER/done is there, and never mind being cancelled."""
    act(f"working on {word}")
    while not (FOLDER / "done").exists():  # noqa: ASYNC110 - the test writes it
        await anyio.sleep(0.01)
    return f"worked on {word}"


@server.tool(annotations=NEVER_TWICE)
async def linger(context: Context, word: str) -> str:
    """Ask about a word from what goes on after the call was cancelled."""
    act(f"lingering over {word}")
    with anyio.CancelScope(shield=True):
        while not (FOLDER / "late").exists():  # noqa: ASYNC110 - the test writes it
            await anyio.sleep(0.01)
        said = await context.elicit(f"Late about {word}?", Agreement)
    act(f"late {said.action}")
    return f"late {said.action}"


if REVISION == "new":
    for name in ("act_and_ask", "ask_often", "ask_twice_at_once", "work", "linger"):
        del server._tool_manager._tools[name]

    @server.tool(annotations=NEVER_TWICE, name="ask_often")
    async def ask_in_rounds(context: Context, times: int) -> str | InputRequiredResult:
        """Ask again and again."""
        done = int(context.request_state or 0)
        if done < times:
            params = ElicitRequestFormParams(
                message=f"Question {done}?", requested_schema={"type": "object", "properties": {}}
            )
            return InputRequiredResult(input_requests={"q": ElicitRequest(params=params)}, request_state=str(done + 1))
        return f"asked {times} times"

    @server.tool(annotations=NEVER_TWICE)
    async def pay(context: Context, url: str = "https://pay.example/42") -> str | InputRequiredResult:
        """Have the person pay on a page."""
        answers = context.input_responses or {}
        if "page" not in answers:
            params = ElicitRequestURLParams(message="Pay here.", url=url)
            return InputRequiredResult(input_requests={"page": ElicitRequest(params=params)}, request_state="s")
        answer = answers["page"]
        assert isinstance(answer, ElicitResult)
        return f"the person: {answer.action}"


def refuse_discovery() -> None:
    """Answer `server/discover` as a server that does not know it, and hand on every other line."""
    reading, writing = os.pipe()
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.dup(1)
    os.dup2(reading, 0)

    def hand_on() -> None:
        for line in stdin:
            said = json.loads(line)
            if said.get("method") == "server/discover":
                error = {"code": -32601, "message": "Method not found"}
                os.write(stdout, json.dumps({"jsonrpc": "2.0", "id": said["id"], "error": error}).encode() + b"\n")
            else:
                os.write(writing, line)
        os.close(writing)

    threading.Thread(target=hand_on, daemon=True).start()


if REVISION == "old":
    refuse_discovery()
server.run("stdio")
