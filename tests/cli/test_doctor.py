"""`botservice doctor` tries what the service leans on: the database, models, search, tools."""

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli.examining import examine, free_port
from history.tiny_model import make_tiny_model
from standins import openai_providers as providers
from standins.mcp_servers import script
from standins.openai_api import Failure, OpenAIApi, Recorded, Reply, ToolUse, rate_limited
from standins.openai_catalogue import may_not_list, model_not_found, wrong_key
from standins.web_server import web_server
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from botservice.cli.doctor import _check, _check_access, check_everything
from botservice.config.settings import Settings
from botservice.core.check_result import Finding
from botservice.factories import build_service


def test_a_machine_with_nothing_set_has_nothing_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DATABASE_URL")
    chosen = Settings(_env_file=None, port=0)
    findings = asyncio.run(check_everything(chosen))
    assert not any(finding.is_wrong for finding in findings)
    assert [finding.mark for finding in findings] == [*"····✓·····✓···✓✓·"]
    assert list(folder.iterdir()) == [], "looking makes nothing"


# Access and budgets


@pytest.mark.parametrize(
    ("settings", "mark", "says"),
    [
        ({}, "✓", "open to everybody; no budget"),
        ({"openai_api_key": "sk-test-key", "telegram_bot_token": "1:a"}, "✗", "at your cost: set ACCESS=pairing"),
        (
            {"openai_api_key": "sk-test-key", "budget_service": "1m tokens/day", "telegram_bot_token": "1:a"},
            "✓",
            "budgets for service",
        ),
        ({"access": "pairing"}, "✓", "OWNERS is not set"),
        ({"openai_api_key": "sk-test-key", "openai_model": "gpt-9"}, "✓", "what gpt-9 costs is not known: PRICES"),
        ({"openai_api_key": "sk-test-key", "budget_chat": "1 money/day"}, "✓", "budgets for chat"),
        ({"access": "allow", "owners": "telegram:42"}, "✓", "allow; owners: telegram:42; no budget"),
        ({"budget_person": "100 tokens/day"}, "✗", "MAX_ANSWER_TOKENS"),
        (
            {"openai_base_url": "http://127.0.0.1:1/v1", "openai_model": "m", "budget_chat": "1 money/day"},
            "✗",
            "PRICES must say what m costs",
        ),
    ],
)
async def test_who_is_let_in_and_what_it_may_cost_is_said(settings: dict[str, str], mark: str, says: str) -> None:
    chosen = Settings(**{"_env_file": None, "openai_api_key": None, "openai_base_url": None, "port": 0, **settings})
    finding = await _check("access", _check_access, chosen, 10.0)
    assert finding.mark == mark
    assert says in finding.text


# The database


async def test_a_database_that_answers_is_fine(storage_url: str) -> None:
    finding = await examine("database", database_url=storage_url)
    assert finding.mark == "✓"
    assert "answers in" in finding.text


def test_a_database_that_has_no_room_for_a_message_is_wrong(tmp_path: Path) -> None:
    def leave_little_room() -> None:  # SQLite needs 32 KiB to begin
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    doctor = [sys.executable, "-m", "botservice", "doctor"]
    environment = {"PATH": os.environ["PATH"], "DATABASE_URL": f"sqlite:///{tmp_path}/bot.db", "PORT": "0"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # what is compiled would be cut off there, and found by others
    subprocess.run([sys.executable, "-m", "botservice", "migrate"], cwd=tmp_path, env=environment, check=True)
    done = subprocess.run(
        doctor, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, preexec_fn=leave_little_room
    )
    (line,) = [line for line in done.stdout.splitlines() if " database " in line]
    assert "✗" in line
    assert "disk I/O error: its disk is full, or fails" in line
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:////no/such/folder/bot.db", "its folder does not exist"),
        ("postgresql://u:hunter22@127.0.0.1:1/x", "cannot open the database postgresql://u:***@127.0.0.1:1/x"),
        ("mysql://h/x", ""),
    ],
)
async def test_a_database_that_does_not_answer_is_wrong(url: str, says: str) -> None:
    chosen = Settings.model_construct(database_url=url, port=0, telegram_bot_token=None)
    (finding, *_) = await check_everything(chosen)
    assert finding.mark == "✗"
    assert says in finding.text
    assert "hunter22" not in finding.text


async def test_a_postgres_without_tables_says_what_to_run(own_postgres_url: str) -> None:
    finding = await examine("database", database_url=own_postgres_url)
    assert finding.is_wrong
    assert "botservice migrate" in finding.text


async def test_sqlite_on_a_disk_that_does_not_last_is_wrong(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNO", "web.1")
    finding = await examine("database", database_url=sqlite_url)
    assert finding.is_wrong
    assert "Postgres" in finding.text


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
async def test_a_database_that_ends_with_its_process_is_wrong(url: str) -> None:
    finding = await examine("database", database_url=url)
    assert finding.is_wrong
    assert "in memory: all is gone when this ends" in finding.text


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder where not even root makes files")
async def test_a_folder_where_no_database_can_be_made_is_wrong() -> None:
    finding = await examine("database", database_url="sqlite:////proc/bot.db")
    assert finding.is_wrong
    assert "/proc/bot.db cannot be made: " in finding.text


# The model


async def test_a_model_that_answers_is_named_with_its_answer() -> None:
    with OpenAIApi.running(lambda _: "ready\nto go") as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_model="llama")
    assert (finding.mark, finding.text) == ("✓", "llama answers: 'ready\\nto go'")


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (Failure(401, "no", code="invalid_api_key"), "OPENAI_API_KEY"),
        (Failure(404, "no such model"), "OPENAI_MODEL"),
        (rate_limited(), "429"),
    ],
)
async def test_a_model_that_refuses_says_which_setting_to_look_at(failure: Failure, says: str) -> None:
    with OpenAIApi.running(lambda _: failure) as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_api_key="sk-hidden-key")
    assert finding.is_wrong
    assert says in finding.text
    assert "hidden" not in finding.text


async def test_a_model_server_that_is_not_there_is_wrong() -> None:
    finding = await examine("model", openai_base_url=f"http://127.0.0.1:{free_port()}/v1")
    assert finding.is_wrong
    assert "(127.0.0.1) cannot be reached" in finding.text
    assert "is OPENAI_BASE_URL right?" in finding.text


async def test_what_does_not_answer_in_time_is_wrong() -> None:
    with OpenAIApi.running(lambda _: Reply(hang=True)) as api:
        finding = await examine("model", openai_base_url=api.base_url, limit_seconds=1)
    assert finding.is_wrong
    assert finding.text == "no answer within 1 seconds"


async def test_a_model_is_asked_with_a_tool_as_the_agent_asks_it() -> None:
    with OpenAIApi.running(lambda _: ToolUse("current_time")) as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_model="llama")
        assert [tool["function"]["name"] for tool in api.bodies()[0]["tools"]] == ["current_time"]
    assert (finding.mark, finding.text) == ("✓", "llama answers, and calls tools")


async def test_a_model_is_asked_whatever_else_is_wrong() -> None:
    with OpenAIApi.running(lambda _: "ready") as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_model="llama", skills="nowhere")
    assert (finding.mark, finding.text) == ("✓", "llama answers: 'ready'")


async def test_a_model_that_takes_no_tools_is_wrong_although_it_answers() -> None:
    def reply(body: dict[str, Any]) -> Any:
        return Failure(400, "gemma does not support tools") if body.get("tools") else "ready"

    with OpenAIApi.running(reply) as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_model="gemma")
    assert finding.is_wrong
    assert finding.text.startswith("gemma answers, but takes no tools, which the agent needs")
    assert "choose another model" in finding.text


async def test_a_server_that_takes_no_result_of_a_tool_is_wrong() -> None:
    def reply(body: dict[str, Any]) -> Any:
        has_result = any(message["role"] == "tool" for message in body["messages"])
        return Failure(400, "Unknown role") if has_result else "ready"

    with OpenAIApi.running(reply) as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_model="llama")
    assert finding.is_wrong
    assert finding.text.startswith("llama answers, but does not take back the result of a tool")


async def test_a_thinking_model_gets_back_what_it_thought() -> None:
    def reply(body: dict[str, Any]) -> Any:
        done = any(message["role"] == "tool" for message in body["messages"])
        asked = "current_time, then" in str(body["messages"])
        call = providers.thinking_call(1, message={"reasoning_content": "Hm."})
        return providers.deepseek(body) or (call if asked and not done else "ready")

    with OpenAIApi.running(reply) as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_model="deepseek")
    assert (finding.mark, finding.text) == ("✓", "deepseek answers: 'ready'")


async def test_what_a_server_does_not_take_is_named() -> None:
    def reply(body: dict[str, Any]) -> Any:
        return providers.text_only(body) or "ready"

    with OpenAIApi.running(reply, refuses=["stream_options"]) as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_model="llama")
    told = "llama answers: 'ready'; it sees no pictures; its server does not take: stream_options"
    assert (finding.mark, finding.text) == ("✓", told)


@pytest.mark.parametrize(
    ("recorded", "says"),
    [
        (Recorded(b'[{"error": {"code": 400, "message": "API key not valid."}}]', status=400), "OPENAI_API_KEY"),
        (Recorded(b"<html>Welcome</html>", "text/html"), "is the path of OPENAI_BASE_URL right"),
    ],
)
async def test_a_wrong_key_and_a_wrong_path_are_named_whatever_the_status(recorded: Recorded, says: str) -> None:
    with OpenAIApi.running(lambda _: recorded) as api:
        finding = await examine("model", openai_base_url=api.base_url, openai_model="llama")
    assert finding.is_wrong
    assert says in finding.text


async def test_every_model_that_may_be_asked_is_tried() -> None:
    def reply(body: dict[str, Any]) -> Any:
        return model_not_found("b") if body["model"] == "b" else "ready"

    with OpenAIApi.running(reply) as api:
        finding = await examine(
            "model", openai_base_url=api.base_url, openai_model="a", openai_fallback_models="b, c, a"
        )
        assert {body["model"] for body in api.bodies()} == {"a", "b", "c"}
    assert finding.is_wrong
    assert "a answers: 'ready'; b: the model's server answered 404" in finding.text
    assert finding.text.endswith("; c answers: 'ready'")


# Names and ends of models


async def test_models_that_are_there_and_stay_are_fine() -> None:
    with OpenAIApi.running(shutdowns={}) as api:
        finding = await examine("models", openai_base_url=api.base_url, openai_model="gpt-6.1-terra")
    assert (finding.mark, finding.text) == ("✓", "nothing is known of a model that ends within 60 days")


async def test_a_model_that_ends_soon_is_wrong_wherever_it_is_used() -> None:
    soon = str(datetime.now(UTC).date() + timedelta(days=30))
    names = {"openai_model": "a", "openai_fallback_models": "b", "openai_embedding_model": "c"}
    with OpenAIApi.running(shutdowns=dict.fromkeys("abcd", soon)) as api:
        finding = await examine("models", openai_base_url=api.base_url, openai_transcription_model="d", **names)
    assert finding.is_wrong
    for name, setting in zip(
        "abcd",
        ("OPENAI_MODEL", "OPENAI_FALLBACK_MODELS", "OPENAI_EMBEDDING_MODEL", "OPENAI_TRANSCRIPTION_MODEL"),
        strict=True,
    ):
        told = f"the model {name} ends on {soon}, in {{}} days: set {setting} to another one"
        assert told.format(30) in finding.text or told.format(29) in finding.text, "it may be past midnight now"


async def test_a_name_that_is_unknown_is_wrong_and_near_ones_are_named() -> None:
    with OpenAIApi.running(models=["gpt-6.1-terra", "llama"]) as api:
        finding = await examine("models", openai_base_url=api.base_url, openai_model="gpt-6.1-tera")
    assert finding.is_wrong
    assert f"there is no model 'gpt-6.1-tera' at {api.base_url}" in finding.text
    assert finding.text.endswith("set OPENAI_MODEL to gpt-6.1-terra")


@pytest.mark.parametrize(("failure", "says"), [(wrong_key(), "(401): set OPENAI_API_KEY"), (may_not_list(), "(403)")])
async def test_a_key_without_rights_is_wrong(failure: Failure, says: str) -> None:
    with OpenAIApi.running(no_list=failure) as api:
        finding = await examine("models", openai_base_url=api.base_url, openai_api_key="sk-hidden-key")
    assert finding.is_wrong
    assert says in finding.text
    assert "hidden" not in finding.text


# Search


# Tools


async def test_servers_of_tools_are_tried_and_one_that_is_down_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"good": script("plain"), "gone": {"command": "no-such-command"}}}))
    finding = await examine("tools", mcp_config=str(path))
    assert finding.is_wrong
    assert finding.text == (
        "good: answers; gone: down, there is no command no-such-command: install it, or write its whole path; 4 tools; "
        "a demo script answers, which calls none"
    )


async def test_a_file_of_servers_that_is_wrong_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text('{"mcpServers": {"a": {"command": "x", "tolls": "never"}}}')
    finding = await examine("tools", mcp_config=str(path))
    assert finding.is_wrong
    assert "servers.json: server 'a', tolls: there is no such key here" in finding.text


async def test_a_server_that_wants_a_login_says_what_it_can_be_given(tmp_path: Path) -> None:
    async def refuse(_: Request) -> Response:
        return Response(status_code=401, headers={"WWW-Authenticate": 'Bearer resource_metadata="http://127.0.0.1/x"'})

    listener = socket.create_server(("127.0.0.1", 0))
    async with web_server([Route("/mcp", refuse, methods=["GET", "POST", "DELETE"])], listener):
        path = tmp_path / "servers.json"
        path.write_text(
            json.dumps({"mcpServers": {"wiki": {"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}}})
        )
        finding = await examine("tools", mcp_config=str(path))
        able = await examine("tools", mcp_config=str(path), public_url="https://bot.example", encryption_key="k" * 32)
    assert finding.is_wrong
    assert "wiki: down, it wants each person to sign in: PUBLIC_URL and ENCRYPTION_KEY let people" in finding.text
    assert not able.is_wrong
    assert able.text.startswith("wiki: answers; 0 tools; people sign in to wiki, in private chats")


async def test_search_by_words_is_what_there_is_without_a_setting() -> None:
    finding = await examine("search")
    assert finding.mark == "·"
    assert "LOCAL_EMBEDDING_MODEL" in finding.text


async def test_a_local_model_is_loaded_and_tried(tmp_path: Path) -> None:
    finding = await examine("search", local_embedding_model=str(make_tiny_model(tmp_path)))
    assert finding.mark == "✓"
    assert "answers with 4 numbers" in finding.text


async def test_a_folder_without_a_model_names_its_setting(tmp_path: Path) -> None:
    finding = await examine("search", local_embedding_model=str(tmp_path))
    assert finding.is_wrong
    assert "LOCAL_EMBEDDING_MODEL" in finding.text


async def test_a_model_behind_an_api_is_tried() -> None:
    with OpenAIApi.running(embed=lambda _: [1.0, 0.0]) as api:
        finding = await examine("search", openai_base_url=api.base_url, openai_embedding_model="mind")
    assert (finding.mark, finding.text) == ("✓", "by words and by meaning: mind answers with 2 numbers")


# Speech


async def test_a_server_that_searches_the_web_is_tried_and_one_that_does_not_is_said() -> None:
    assert "off: TOOLS may name" in (await examine("web")).text
    assert (await examine("web", tools="fetch_page")).mark == "✓"
    with OpenAIApi.running() as api:
        asked = {"openai_base_url": api.base_url, "openai_model": "gpt-5.5", "tools": "fetch_page, web_search"}
        found = await examine("web", **asked, openai_api="responses")
        assert (found.mark, found.text) == ("✓", "fetch_page, web_search: the model's server searches")
        found = await examine("web", **asked, openai_api="responses", openai_reasoning_effort="minimal")
        assert (found.mark, "has no web_search" in found.text) == ("✗", True)
        found = await examine("web", **asked, openai_api="chat")
        assert (found.mark, "speaks Responses" in found.text) == ("✗", True)
    assert (await examine("web", tools="web_search")).mark == "✗"


async def test_a_model_that_listens_is_tried_with_silence() -> None:
    with OpenAIApi.running() as api:
        finding = await examine("speech", openai_base_url=api.base_url, openai_transcription_model="gpt-transcribe")
    assert (finding.mark, finding.text) == ("✓", "gpt-transcribe listens")


async def test_a_model_that_cannot_listen_is_wrong_and_one_without_a_server_says_what_it_needs() -> None:
    with OpenAIApi.running() as api:
        finding = await examine(
            "speech", openai_base_url=f"{api.base_url}/x", openai_transcription_model="gpt-transcribe"
        )
    assert finding.is_wrong
    finding = await examine("speech", openai_transcription_model="gpt-transcribe")
    assert finding.is_wrong
    assert "OPENAI_API_KEY" in finding.text


# Telegram


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    for name, description in (("refunds", "How refunds are decided."), ("broken", "")):
        (tmp_path / "skills" / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: {description}\n---\nUp to 50 €."
        (tmp_path / "skills" / name / "SKILL.md").write_text(text, encoding="utf-8")
    return tmp_path / "skills"


async def test_skills_are_named_and_broken_ones_are_wrong(skills: Path) -> None:
    finding = await examine("skills", skills=str(skills))
    assert (finding.mark, finding.text.partition(":")[0]) == ("✗", "1")
    assert finding.text.startswith("1: refunds; broken: its description is missing")
    (skills / "broken" / "SKILL.md").unlink()
    (skills / "broken").rmdir()
    assert await examine("skills", skills=str(skills)) == Finding("skills", "1: refunds")


async def test_skills_are_those_of_the_folder_that_people_usually_have_or_none(
    skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(skills.parent)
    assert [*build_service(Settings(_env_file=None, tools="none")).agent.tools] == ["load_skill"]
    assert (await examine("skills")).text.startswith("1: refunds")
    assert (await examine("skills", skills="none")).is_off
    assert [*build_service(Settings(_env_file=None, tools="none", skills="none")).agent.tools] == []
    finding = await examine("skills", skills="nowhere")
    assert finding.text == "SKILLS: nowhere cannot be read as a folder of skills: FileNotFoundError"
