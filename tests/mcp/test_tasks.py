"""Servers that make tasks of calls as they must not: the call ends with a clear error."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from standins.mcp_servers import making_tasks, script

from botservice import MCPServers
from botservice.agent.tool_executor import ToolOutcome

pytestmark = pytest.mark.slow

Make = Callable[..., MCPServers]
Call = Callable[..., Awaitable[ToolOutcome]]


@pytest.mark.parametrize("name", ["handle", "old_handle"])
async def test_a_task_that_was_not_agreed_on_is_no_result(servers: Make, call: Call, name: str) -> None:
    outcome = await call(servers(a=script("results")), f"a__{name}")
    assert outcome.is_error
    assert "outcome" in outcome.text


@pytest.mark.parametrize("task", ["", 1, None, "x" * 2_000, {"a": 1}])
async def test_a_task_without_an_id_is_no_task(servers: Make, call: Call, tmp_path: Path, task: Any) -> None:
    outcome = await call(servers(lab=making_tasks(tmp_path)), "lab__research", more=json.dumps({"handle": task}))
    assert outcome.text == "Error: server lab made a task of this call without an id: the outcome is unknown"


async def test_the_result_of_a_task_is_bounded_as_any_other(servers: Make, call: Call, tmp_path: Path) -> None:
    large = {"status": "completed", "result": {"content": [{"type": "text", "text": "x" * 10_000_000}]}}
    outcome = await call(servers(lab=making_tasks(tmp_path)), "lab__research", more=json.dumps(large))
    assert len(outcome.text) < 101_000
    assert "… (cut: it has" in outcome.text


async def test_a_call_that_nobody_can_go_on_with_takes_its_task_along(
    servers: Make, call: Call, tmp_path: Path
) -> None:
    outcome = await call(servers(lab=making_tasks(tmp_path, timeout=1)), "lab__research")
    assert outcome.text == (
        "Error: server lab did not end its task for this call in time, and was told to cancel it; "
        "it may have taken effect, or not"
    )
    assert (tmp_path / "acted.txt").read_text().splitlines() == ["research ", "cancelled"]
