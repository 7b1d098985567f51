"""A server of the `mcp` package that makes tasks of its calls: `mcp_tasks.py FOLDER [PORT]`, by stdio without a port.

A task is a file in FOLDER, so that any process has it: FOLDER/TASK.json is what the server says of it, and the test may
change or delete it. Each line of FOLDER/acted.txt is something that the server did; FOLDER/polled is there once a task
was asked about.
"""

import json
import sys
import uuid
from pathlib import Path
from typing import Any

from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, InputRequiredResult, RequestParams, ToolAnnotations
from pydantic import Field

FOLDER = Path(sys.argv[1])
TASKS = "io.modelcontextprotocol/tasks"
TIMES = {"createdAt": "2026-07-28T09:30:00Z", "lastUpdatedAt": "2026-07-28T09:30:00Z"}
FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Your name"}}, "required": ["name"]}


def act(what: str) -> None:
    with (FOLDER / "acted.txt").open("a") as file:
        file.write(what + "\n")


def read(task: str) -> dict[str, Any]:
    path = FOLDER / f"{task}.json"
    if not task.isalnum() or not path.exists():
        raise MCPError(code=-32602, message="Failed to retrieve task: Task not found")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def write(task: dict[str, Any]) -> None:
    new = FOLDER / f"{task['taskId']}.new"
    new.write_text(json.dumps(task))
    new.rename(FOLDER / f"{task['taskId']}.json")


def complete(task: dict[str, Any], text: str) -> dict[str, Any]:
    return {**task, "status": "completed", "result": {"content": [{"type": "text", "text": text}], "isError": False}}


def ask(key: str, message: str) -> dict[str, Any]:
    return {key: {"method": "elicitation/create", "params": {"message": message, "requestedSchema": FORM}}}


class TaskParams(RequestParams):
    task_id: str = Field(alias="taskId")
    input_responses: dict[str, Any] = Field(default={}, alias="inputResponses")


class Tasks(Extension):
    identifier = TASKS

    def methods(self) -> list[MethodBinding]:
        return [MethodBinding(f"tasks/{name}", TaskParams, getattr(self, name)) for name in ("get", "update", "cancel")]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> Any:
        if params.name == "plain":
            return await call_next(ctx)
        said = dict(params.arguments or {})
        if params.name == "confirm" and not params.input_responses:
            return await call_next(ctx)  # it asks before it makes a task
        act(f"{params.name} {said.get('word', '')}")
        new = {"taskId": uuid.uuid4().hex, "status": "working", "ttlMs": 60_000, "pollIntervalMs": 20, **TIMES}
        task = {**new, "statusMessage": "reading the sources", **json.loads(said.get("more", "{}"))}
        if params.name == "greet":
            task |= {"status": "input_required", "inputRequests": ask("first", "Who is there?")}
        write({**task, "name": params.name})
        return {"resultType": "task", **task, "status": "working", "taskId": task.get("handle", task["taskId"])}

    async def get(self, ctx: Any, params: TaskParams) -> Any:
        task = read(params.task_id)
        (FOLDER / "polled").touch()
        if task["name"] == "research" and task["status"] == "working" and (FOLDER / "done").exists():
            task = complete(task, f"found by {task['taskId']}")
        return {each: value for each, value in task.items() if each != "name"}

    async def update(self, ctx: Any, params: TaskParams) -> Any:
        task = read(params.task_id)
        for key, response in params.input_responses.items():
            act(f"answered {key} {json.dumps(response)}")
            if key == "first" and response["action"] == "accept":
                name = response["content"]["name"]
                task |= {"inputRequests": {**task["inputRequests"], **ask("second", f"{name}, and your surname?")}}
            else:
                task = complete(task, f"hello {response.get('content', response['action'])}")
        write(task)
        return {}

    async def cancel(self, ctx: Any, params: TaskParams) -> Any:
        write({**read(params.task_id), "status": "cancelled"})
        act("cancelled")
        return {}


server = MCPServer("tasks", extensions=[Tasks()])
NEVER_TWICE = ToolAnnotations(read_only_hint=False, idempotent_hint=False)


@server.tool(annotations=NEVER_TWICE)
async def research(word: str = "", more: str = "{}") -> str:
    """Research, until FOLDER/done is there; `more` goes into the task as it is."""
    return ""


@server.tool(annotations=NEVER_TWICE)
async def greet() -> str:
    """Ask for the person's names in the task; the first question stands beside the second one."""
    return ""


@server.tool(annotations=NEVER_TWICE)
async def confirm() -> str | InputRequiredResult:
    """Ask before the task is made."""
    return InputRequiredResult.model_validate({"inputRequests": ask("before", "Really?"), "requestState": "s"})


@server.tool(annotations=NEVER_TWICE)
async def plain() -> str:
    """Answer at once."""
    return "at once"


if len(sys.argv) > 2:
    server.run("streamable-http", port=int(sys.argv[2]), stateless_http=True)
else:
    server.run("stdio")
