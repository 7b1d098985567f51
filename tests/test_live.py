"""The script that tries the platforms' calls, against their stand-ins."""

import json
import os
import re
import subprocess
import sys
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


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "scripts" / "live_calls"), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "LIVE_PAUSE_SECONDS": "0", **environ},
        check=False,
    )


def on_telegram(api: BotApi, *arguments: str) -> subprocess.CompletedProcess[str]:
    api.add_private_chat(42)
    return run("telegram", *arguments, TELEGRAM_API_URL=api.url, TELEGRAM_BOT_TOKEN=api.token, LIVE_TELEGRAM_CHAT="42")


def test_a_platform_that_does_what_is_assumed_ends_it_with_0() -> None:
    with BotApi.running() as api:
        done = on_telegram(api, "--json")
    findings = {each["name"]: each for each in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout + done.stderr
    assert findings["the longest message"]["verdict"] == "as assumed"
    assert {each["verdict"] for each in findings.values()} <= {"as assumed", "not there", "skipped"}
    assert api.visible_texts(42) == [], "what it sent is deleted in the end"


def test_a_group_and_a_member_are_tried_where_they_are_given() -> None:
    with BotApi.running() as api:
        api.add_private_chat(42)
        group = api.add_group(members=[ALICE])
        group.bot_status = "administrator"
        places = {"LIVE_TELEGRAM_CHAT": "42", "LIVE_TELEGRAM_GROUP": str(group.id), "LIVE_TELEGRAM_USER": "42"}
        done = run("telegram", "--json", TELEGRAM_API_URL=api.url, TELEGRAM_BOT_TOKEN=api.token, **places)
    findings = {each["name"]: each for each in json.loads(done.stdout)}
    assert {each["verdict"] for each in findings.values()} == {"as assumed"}, done.stdout


def test_a_platform_that_does_something_else_is_named_and_ends_it_with_1() -> None:
    with BotApi.running() as api:
        api.world.bot["username"] = ""
        done = on_telegram(api)
    assert done.returncode == 1
    assert re.search(r"^differs +telegram +who the bot is$", done.stdout, re.MULTILINE)
    assert "assumed: is_bot and username" in done.stdout


def test_a_missing_setting_is_named() -> None:
    done = run("telegram", TELEGRAM_BOT_TOKEN="")
    assert done.returncode == 1
    assert done.stderr == "scripts/live: set TELEGRAM_BOT_TOKEN; scripts/live --help says what for\n"


def test_slack_is_tried_in_a_channel_and_with_a_person() -> None:
    with SlackApi.running() as api:
        done = run(
            "slack",
            "--json",
            SLACK_API_URL=api.url,
            SLACK_BOT_TOKEN=api.bot_token,
            LIVE_SLACK_CHANNEL="C0GENERAL",
            LIVE_SLACK_USER="U0ALICE",
        )
    findings = {each["name"]: each for each in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout + done.stderr
    assert findings["a message that grows"]["verdict"] == "as assumed"


@pytest.mark.parametrize("platform", ["telegram", "slack"])
def test_every_call_of_a_transport_is_tried_or_said_why_not(platform: str) -> None:
    sys.path.insert(0, str(ROOT / "scripts" / "live_calls"))
    probing = __import__(f"on_{platform}")
    tried = {method for probe in probing.PROBES for method in probe.methods} | set(probing.NOT_TRIED)
    code = "".join(path.read_text() for path in (ROOT / "transports" / platform).rglob("*.py"))
    assert set(METHODS[platform].findall(code)) - tried == set()
