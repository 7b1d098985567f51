"""The script that tries the platforms' calls, against their stand-ins."""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from standins.bot_api import BotApi, Person
from standins.slack_api import SlackApi

ROOT = Path(__file__).parents[1]
ALICE = Person(42, "Alice")
METHODS = {
    "telegram": re.compile(r'"((?:send|edit|set|get|delete|create|answer)[A-Z][A-Za-z]+)"'),
    "slack": re.compile(
        r'"((?:chat|agents|apps|assistant|auth|conversations|files|users|views|oauth)\.[a-zA-Z0-9.]+)"'
    ),
}


SCRIPT = str(ROOT / "scripts" / "live_calls")
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the script here, where its clients are loaded, and return its exit code and what it printed."""

    def run(*arguments: str, **environ: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["scripts/live", *arguments])
        for name, value in {"LIVE_PAUSE_SECONDS": "0", **environ}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(SCRIPT, run_name="__main__")
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().out

    return run


def on_telegram(run: Run, api: BotApi, *arguments: str) -> tuple[int, str]:
    api.add_private_chat(42)
    return run("telegram", *arguments, TELEGRAM_API_URL=api.url, TELEGRAM_BOT_TOKEN=api.token, LIVE_TELEGRAM_CHAT="42")


def test_a_platform_that_does_what_is_assumed_ends_it_with_0(run: Run) -> None:
    with BotApi.running() as api:
        code, said = on_telegram(run, api, "--json")
    findings = {each["name"]: each for each in json.loads(said)}
    assert code == 0, said
    assert findings["the longest message"]["verdict"] == "as assumed"
    assert {each["verdict"] for each in findings.values()} <= {"as assumed", "not there", "skipped"}
    assert api.visible_texts(42) == [], "what it sent is deleted in the end"


def test_a_group_and_a_member_are_tried_where_they_are_given(run: Run) -> None:
    with BotApi.running() as api:
        api.add_private_chat(42)
        group = api.add_group(members=[ALICE])
        group.bot_status = "administrator"
        group.administrators[ALICE.id] = ("creator", False)
        places = {"LIVE_TELEGRAM_CHAT": "42", "LIVE_TELEGRAM_GROUP": str(group.id), "LIVE_TELEGRAM_USER": "42"}
        _, said = run("telegram", "--json", TELEGRAM_API_URL=api.url, TELEGRAM_BOT_TOKEN=api.token, **places)
    findings = {each["name"]: each for each in json.loads(said)}
    assert {each["verdict"] for each in findings.values()} == {"as assumed"}, said


def test_a_platform_that_does_something_else_is_named_and_ends_it_with_1(run: Run) -> None:
    with BotApi.running() as api:
        api.world.bot["username"] = ""
        code, said = on_telegram(run, api)
    assert code == 1
    assert re.search(r"^differs +telegram +who the bot is$", said, re.MULTILINE)
    assert "assumed: is_bot and username" in said


@pytest.mark.slow
def test_a_missing_setting_is_named() -> None:
    command = [sys.executable, "-W", "error", SCRIPT, "telegram"]
    environ = {**os.environ, "TELEGRAM_BOT_TOKEN": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 1
    assert done.stderr == "scripts/live: set TELEGRAM_BOT_TOKEN; scripts/live --help says what for\n"


def test_slack_is_tried_in_a_channel_and_with_a_person(run: Run) -> None:
    with SlackApi.running() as api:
        code, said = run(
            "slack",
            "--json",
            SLACK_API_URL=api.url,
            SLACK_BOT_TOKEN=api.bot_token,
            LIVE_SLACK_CHANNEL="C0GENERAL",
            LIVE_SLACK_USER="U0ALICE",
        )
    findings = {each["name"]: each for each in json.loads(said)}
    assert code == 0, said
    assert findings["a message that grows"]["verdict"] == "as assumed"


@pytest.mark.parametrize("platform", ["telegram", "slack"])
def test_every_call_of_a_transport_is_tried_or_said_why_not(platform: str) -> None:
    sys.path.insert(0, str(ROOT / "scripts" / "live_calls"))
    probing = __import__(f"on_{platform}")
    tried = {method for probe in probing.PROBES for method in probe.methods} | set(probing.NOT_TRIED)
    code = "".join(path.read_text() for path in (ROOT / "transports" / platform).rglob("*.py"))
    called = set(METHODS[platform].findall(code))
    assert called
    assert called - tried == set()
