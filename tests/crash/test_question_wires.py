"""Questions and tasks of MCP servers on Telegram and in Slack: one process is killed, another one goes on."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crash.asking import SlackWire, TelegramWire, Wire
from crash.served import ServedBot, WarmBot
from standins.bot_api import BotApi
from standins.mcp_servers import asking, making_tasks
from standins.openai_api import OpenAIApi, Reply, ToolUse
from standins.slack_api import SlackApi

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Build = Callable[..., ServedBot]


def receptionist(body: dict[str, Any]) -> Reply:
    """Book a room, or research something, then answer with what came of it."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Reply(text=f"done: {last['content']}")
    if "research" in str(last["content"]):
        return Reply(tool_calls=[ToolUse("lab__research", {"word": "bees"})])
    return Reply(tool_calls=[ToolUse("hotel__book", {"hotel": "Ritz"})])


@pytest.fixture(params=["telegram", "slack"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    if request.param == "telegram":
        with BotApi.running() as telegram:
            yield TelegramWire(telegram, is_polled=True)
    else:
        with SlackApi.running() as slack:
            yield SlackWire(slack, is_socket=False)


@pytest.fixture(params=["new", "old"])
def build(request: pytest.FixtureRequest, tmp_path: Path, wire: Wire) -> Iterator[Build]:
    servers = {"hotel": asking(request.param, tmp_path), "lab": making_tasks(tmp_path)}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with OpenAIApi.running(receptionist) as llm:

        def make(url: str, name: str) -> ServedBot:
            folder = tmp_path / name
            folder.mkdir()
            settings = {"DATABASE_URL": url, "MCP_CONFIG": str(tmp_path / "mcp.json"), "OBSERVE": "off"}
            return WarmBot(folder, **settings, **wire.settings(llm))

        yield make


@pytest.mark.any_database
def test_the_answers_reach_another_process_than_the_one_that_asked(
    storage_url: str, tmp_path: Path, wire: Wire, build: Build
) -> None:
    def see(words: str) -> None:
        wire.wait(lambda: any(words in each for each in wire.texts()))

    with build(storage_url, "one") as one, build(storage_url, "two") as two:
        one.start()
        wire.reach(one)
        wire.say("book me a room")
        see("Your name")
        assert one.kill() == -signal.SIGKILL
        two.start()
        wire.reach(two)
        wire.say("Anna")
        see("Age")
        wire.say("37")
        see("Room")
        wire.press("double")
        see("Breakfast")
        wire.press("Yes")
        see("Email")
        wire.say("-")
        see("done: ")
    assert any("booked Ritz for Anna, 37, double, True, None" in each for each in wire.texts())
    assert len((tmp_path / "acted.txt").read_text().splitlines()) == 1


@pytest.mark.any_database
@pytest.mark.parametrize("build", ["new"], indirect=True)
def test_another_process_than_the_one_that_was_killed_gets_the_result_of_a_task(
    storage_url: str, tmp_path: Path, wire: Wire, build: Build
) -> None:
    with build(storage_url, "one") as one, build(storage_url, "two") as two:
        one.start()
        wire.reach(one)
        wire.say("research bees")
        wire.wait((tmp_path / "polled").exists)
        assert one.kill() == -signal.SIGKILL
        (tmp_path / "done").touch()
        two.start()
        wire.reach(two)
        wire.wait(lambda: any("done: found by " in each for each in wire.texts()))
    assert (tmp_path / "acted.txt").read_text().splitlines() == ["research bees"]
