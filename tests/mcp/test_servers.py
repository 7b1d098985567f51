"""Servers that work, servers that are down, and servers that come back."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from standins.mcp_servers import TIME_BY_HTTP, free_port, running, script

from botservice import MCPServers
from botservice.agent.tool_executor import ToolOutcome
from botservice.telemetry.logs import redact

Make = Callable[..., MCPServers]
Call = Callable[..., Awaitable[ToolOutcome]]


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.01)


def calls(folder: Path) -> list[str]:
    path = folder / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


def is_alive(number: int) -> bool:
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the second, where it ends between opening and reading
        return False
    return "Z" not in stat.rpartition(")")[2].split()[:1]


@pytest.mark.slow
async def test_real_servers_are_called_by_stdio_and_by_http(servers: Make, call: Call, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)  # noqa: ASYNC221
    git = Path(sys.executable).with_name("mcp-server-git")
    port = free_port()
    with running(TIME_BY_HTTP.format(port=port), port):
        toolset = servers(git={"command": str(git)}, time={"url": f"http://127.0.0.1:{port}/mcp"})
        await toolset.wait(60)
        assert toolset.problems() == {"git": None, "time": None}
        by_name = {tool.name: tool for tool in await toolset.tools()}
        assert by_name["git__git_status"].idempotent
        assert not by_name["git__git_status"].needs_approval
        assert by_name["git__git_commit"].needs_approval
        assert not by_name["git__git_commit"].idempotent
        status = await call(toolset, "git__git_status", repo_path=str(tmp_path / "repo"))
        assert "No commits yet" in status.text
        told = await call(toolset, "time__get_current_time", timezone="Asia/Seoul")
        assert json.loads(told.text)["timezone"] == "Asia/Seoul"
        wrong = await call(toolset, "time__get_current_time", timezone="Nowhere")
        assert wrong.is_error
        assert "Invalid timezone" in wrong.text


@pytest.mark.slow
async def test_an_http_server_that_was_down_is_used_again_when_it_is_back(servers: Make, call: Call) -> None:
    port = free_port()
    toolset = servers(time={"url": f"http://127.0.0.1:{port}/mcp"}, other=script("plain"))
    with running(TIME_BY_HTTP.format(port=port), port):
        await toolset.wait(60)
        assert not (await call(toolset, "time__get_current_time", timezone="UTC")).is_error
    lost = await call(toolset, "time__get_current_time", timezone="UTC")
    assert lost.text == "Error: the connection to server time was lost during the call: its outcome is unknown"
    await until(lambda: toolset.problems()["time"])
    away = await call(toolset, "time__get_current_time", timezone="UTC")
    assert away.text.startswith("Error: server time cannot be reached at this moment (")
    assert (await call(toolset, "other__echo", text="hi")).text == "said hi"
    with running(TIME_BY_HTTP.format(port=port), port):
        await until(lambda: toolset.problems()["time"] is None)
        assert not (await call(toolset, "time__get_current_time", timezone="UTC")).is_error


async def test_a_server_that_is_down_costs_its_own_tools_and_is_named_once(
    servers: Make, call: Call, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_DEAD", "s3cret-key-of-dead")
    caplog.set_level("INFO")
    toolset = servers(
        good=script("plain"),
        gone={"command": "no-such-command"},
        keyed={"command": "${KEY_OF_DEAD}"},
        dead=script("dead", env={"KEY": "${KEY_OF_DEAD}"}),
        web={"url": f"http://127.0.0.1:{free_port()}/mcp"},
    )
    assert {tool.name.partition("__")[0] for tool in await toolset.tools()} == {"good"}
    assert toolset.problems() == {
        "good": None,
        "gone": "there is no command no-such-command: install it, or write its whole path",
        "keyed": "there is no command [secret]: install it, or write its whole path",
        "dead": 'it has ended; its last words: "the key secret does not open anything"',
        "web": "no connection can be made",
    }
    outcome = await call(toolset, "gone__do")
    assert "server gone cannot be reached at this moment (there is no command" in outcome.text
    await until(lambda: toolset._connections[3]._tries > 1)
    down = [(record.server, record.problem) for record in caplog.records if record.message == "mcp.down"]
    assert sorted(name for name, _ in down) == ["dead", "gone", "keyed", "web"]
    assert "s3cret" not in redact(caplog.text)


async def test_a_server_that_dies_in_a_call_says_that_the_outcome_is_unknown_and_is_started_again(
    servers: Make, call: Call, tmp_path: Path
) -> None:
    toolset = servers(a=script("plain", tmp_path))
    outcome = await call(toolset, "a__die")
    assert outcome.text == "Error: the connection to server a was lost during the call: its outcome is unknown"
    await until(lambda: len(calls(tmp_path)) > 2 and toolset.problems()["a"] is None)
    assert (await call(toolset, "a__echo", text="again")).text == "said again"
    assert calls(tmp_path).count("die") == 1


@pytest.mark.slow
async def test_a_call_that_takes_too_long_or_is_not_wanted_any_more_is_cancelled_at_the_server(
    servers: Make, call: Call, tmp_path: Path
) -> None:
    port = free_port()
    code = (
        "import asyncio\nfrom pathlib import Path\nfrom mcp.server import MCPServer\nserver = MCPServer('slow')\n"
        "@server.tool()\nasync def sleep() -> str:\n    try:\n        await asyncio.sleep(600)\n    finally:\n"
        f"        Path({str(tmp_path / 'calls.txt')!r}).open('a').write('cancelled\\n')\n"
        f"server.run('streamable-http', port={port})"
    )
    with running(code, port):
        toolset = servers(slow={"url": f"http://127.0.0.1:{port}/mcp", "timeout": 0.5})
        await toolset.wait(60)
        outcome = await call(toolset, "slow__sleep")
        assert outcome.text == "Error: slow__sleep did not end within 0.5 seconds"
        await until(lambda: calls(tmp_path) == ["cancelled"])


async def test_tools_that_a_server_gets_later_are_there_without_a_restart(servers: Make, call: Call) -> None:
    toolset = servers(a=script("growing"))
    before = await toolset.tools()
    assert [tool.name for tool in before] == ["a__grow"]
    assert await toolset.tools() is before
    await call(toolset, "a__grow")
    names: list[str] = []
    async with asyncio.timeout(60):
        while names != ["a__grow", "a__grown1"]:
            names = [tool.name for tool in await toolset.tools()]
            await asyncio.sleep(0.01)


async def test_only_tools_that_are_allowed_are_there_and_approval_is_as_the_file_says(servers: Make) -> None:
    toolset = servers(
        some=script("plain", tools=["echo", "nothing"]),
        always=script("plain", approval="always", tools=["echo"]),
        never=script("plain", approval="never", tools=["write"]),
        writes=script("plain", tools=["echo", "write"]),
    )
    tools = {tool.name: tool.needs_approval for tool in await toolset.tools()}
    assert tools == {
        "some__echo": False,
        "always__echo": True,
        "never__write": False,
        "writes__echo": False,
        "writes__write": True,
    }


async def test_tools_want_the_roles_that_the_file_says(servers: Make, caplog: pytest.LogCaptureFixture) -> None:
    toolset = servers(
        all=script("plain", tools=["echo", "write"], roles=["owner"]),
        some=script("plain", tools=["echo", "write"], roles={"write": ["owner", "deployer"], "gone": ["owner"]}),
        rest=script("plain", tools=["echo", "write"], roles={"write": ["owner"], "*": ["member"]}),
    )
    assert {tool.name: tool.roles for tool in await toolset.tools()} == {
        "all__echo": {"owner"},
        "all__write": {"owner"},
        "some__echo": None,
        "some__write": {"owner", "deployer"},
        "rest__echo": {"member"},
        "rest__write": {"owner"},
    }
    assert [each.tool for each in caplog.records if each.message == "mcp.tool_left_out"] == ["gone"]


async def test_what_a_server_gives_is_written_by_strangers_unless_it_or_the_file_says_otherwise(servers: Make) -> None:
    toolset = servers(a=script("worlds"), b=script("worlds", trusted=True))
    assert {tool.name: tool.reads_untrusted for tool in await toolset.tools()} == {
        "a__unsaid": True,
        "a__open": True,
        "a__closed": False,
        "b__unsaid": False,
        "b__open": False,
        "b__closed": False,
    }


async def test_what_runs_in_a_server_ends_when_it_is_let_go_of(servers: Make, call: Call) -> None:
    toolset = servers(a=script("results"))
    number = int((await call(toolset, "a__children")).text)
    stubborn = int((await call(toolset, "a__stubborn")).text)
    assert is_alive(number)
    assert is_alive(stubborn)
    await toolset.close()
    assert not is_alive(number)
    await until(lambda: not is_alive(stubborn))
    assert int((await call(toolset, "a__children")).text) != number, "it is started again where it is wanted again"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="job objects do it there")
async def test_servers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    entry = json.dumps(script("hang", tmp_path))
    # The server's own child keeps its standard input, and neither of them looks at it any more.
    code = (
        "import asyncio, json, sys\nfrom botservice import MCPServers\n"
        f"entry = json.loads({entry!r})\n"
        "entry['args'] = ['-c', 'sleep 600 & echo started $! >>' + entry['args'][-1] + '/calls.txt; "
        "trap \"\" HUP; sleep 600']\nentry['command'] = 'sh'\n"
        "async def main():\n    await MCPServers({'a': entry}).tools()\n    await asyncio.Event().wait()\n"
        "asyncio.run(main())"
    )
    process = subprocess.Popen([sys.executable, "-c", code])  # noqa: ASYNC220
    await until(lambda: calls(tmp_path))
    child = int(calls(tmp_path)[0].split()[1])
    assert is_alive(child)
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.wait)
    await until(lambda: not is_alive(child))
