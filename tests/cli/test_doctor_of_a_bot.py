"""`botservice doctor` goes on where a setting is wrong, and with `--app` looks at a bot that a person wrote."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from standins.mcp_servers import script
from standins.openai_api import Failure, OpenAIApi

Run = Callable[..., tuple[int, str, str]]

BOT = """
from botservice import AgentService, FunctionsBasedAgent, MCPServers, default_llm, tool

@tool
def look(city: str) -> str:
    {docstring}
    return city

@tool(needs_approval=True)
def book(city: str) -> str:
    '''Book a room.'''
    return city

service = AgentService(FunctionsBasedAgent(tools=[look, book], llm=default_llm(){more}))
"""


@pytest.fixture
def write_bot() -> Callable[..., str]:
    def write(docstring: str = "'''Look a city up.'''", more: str = "") -> str:
        Path("bot_of_a_test.py").write_text(BOT.format(docstring=docstring, more=more))
        return "bot_of_a_test:service"

    return write


def lines(said: str) -> dict[str, str]:
    """Return what is said of each thing, with its mark."""
    return {line[2:12].strip(): f"{line[0]} {line[13:]}" for line in said.splitlines()}


def test_a_wrong_setting_is_said_and_everything_else_is_tried_all_the_same(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "hidden token")
    monkeypatch.setenv("PORT", "http")
    code, said, error = run("doctor")
    assert (code, error) == (1, "")
    assert "✗ setting    TELEGRAM_BOT_TOKEN must be a token from @BotFather" in said
    assert "✗ setting    PORT must be a whole number from 0 to 65535" in said
    assert "✓ database" in said
    assert "hidden" not in said


def test_a_bot_s_agent_and_tools_are_named(run: Run, write_bot: Callable[..., str]) -> None:
    found = lines(run("doctor", "--app", write_bot())[1])
    assert found["bot"] == "✓ bot_of_a_test:service: FunctionsBasedAgent, 2 tools: look, book (book asks first)"
    assert found["model"].startswith("· a demo script answers")
    assert found["tools"].startswith("· this bot names no MCP servers")
    assert not {"web", "skills"} & set(found), "they are the default agent's"
    assert {"web", "skills"} <= set(lines(run("doctor")[1]))


def test_a_tool_that_a_model_is_told_nothing_of_is_wrong(run: Run, write_bot: Callable[..., str]) -> None:
    code, said, _ = run("doctor", "--app", write_bot(docstring="pass"))
    assert code == 1
    assert lines(said)["bot"].endswith("look has no docstring: a model is not told what it does")


def test_a_bot_that_cannot_be_loaded_is_wrong_and_the_settings_are_tried(
    run: Run, write_bot: Callable[..., str]
) -> None:
    code, said, _ = run("doctor", "--app", write_bot(more=", nonsense=1"))
    assert code == 1
    assert lines(said)["bot"].startswith("✗ --app bot_of_a_test:service: bot_of_a_test cannot be imported: TypeError")
    assert "(bot_of_a_test.py:14)" in lines(said)["bot"]
    assert lines(said)["database"].startswith("✓")


def test_a_bot_s_model_is_asked_with_the_bot_s_tools(
    run: Run, write_bot: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIApi.running(lambda _: "ready") as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "llama")
        found = lines(run("doctor", "--app", write_bot())[1])
        assert [each["function"]["name"] for each in api.bodies()[0]["tools"]] == ["look", "book"]
    assert found["model"] == "✓ llama answers: 'ready'"
    with OpenAIApi.running(lambda _: Failure(400, "no tools here")) as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        assert lines(run("doctor", "--app", "bot_of_a_test:service")[1])["model"].startswith("✗ llama: ")


def test_a_bot_without_tools_needs_no_model_that_takes_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    service = "AgentService(FunctionsBasedAgent(llm=default_llm()))"
    Path("bot_of_a_test.py").write_text(
        f"from botservice import AgentService, FunctionsBasedAgent, default_llm\nservice = {service}\n"
    )
    with OpenAIApi.running(lambda body: Failure(400, "no tools here") if body.get("tools") else "ready") as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "gemma")
        assert lines(run("doctor", "--app", "bot_of_a_test:service")[1])["model"] == "✓ gemma answers: 'ready'"


def test_a_bot_s_servers_of_tools_are_tried(run: Run, write_bot: Callable[..., str]) -> None:
    servers = {"mcpServers": {"good": script("plain"), "gone": {"command": "no-such-command"}}}
    Path("servers.json").write_text(json.dumps(servers))
    code, said, _ = run("doctor", "--app", write_bot(more=", toolsets=[MCPServers.load('servers.json')]"))
    assert code == 1
    assert lines(said)["tools"].startswith("✗ good: answers; gone: down, there is no command no-such-command")


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import json\nvalue = 1 / 0\n", "ZeroDivisionError: division by zero (bot_of_a_test.py:2)"),
        ("def f(:\n", "SyntaxError: invalid syntax (bot_of_a_test.py:1)"),
        ("from botservice import tool\n\ntool(needs_approval=1)(print)\n", "must be True, False or callable"),
        ("import bot_of_a_test_part\n", "ValueError: odd (bot_of_a_test_part.py:2)"),
        ("import no_such_library\n", "bot_of_a_test needs no_such_library, which is not installed"),
        ("from botservice import AgentServce\n", "cannot import name 'AgentServce' from 'botservice'"),
        ("service = 1\n", "service in bot_of_a_test must be an AgentService, not int"),
        ("x = 1\n", "there is no service in bot_of_a_test; it has no AgentService"),
    ],
)
def test_what_a_bot_s_file_lacks_is_said_in_one_line(run: Run, program: str, says: str) -> None:
    Path("bot_of_a_test.py").write_text(program)
    Path("bot_of_a_test_part.py").write_text("import os\nraise ValueError('odd')\n")
    code, said, error = run("serve", "--app", "bot_of_a_test:service")
    assert (code, said) == (1, "")
    assert says in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_the_whole_traceback_is_in_the_log_for_whoever_asks_for_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bot_of_a_test.py").write_text("value = 1 / 0\n")
    monkeypatch.setenv("LOG_LEVEL", "DEBUG")
    _, _, error = run("serve", "--app", "bot_of_a_test:service")
    assert "Traceback (most recent call last)" in error
    assert error.splitlines()[-1].startswith("botservice: --app bot_of_a_test:service")


def test_a_service_of_another_name_is_named(run: Run, write_bot: Callable[..., str]) -> None:
    write_bot()
    assert "there is no bot in bot_of_a_test; it has: service" in run("serve", "--app", "bot_of_a_test:bot")[2]
