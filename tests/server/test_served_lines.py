"""What a process says when it starts, and what a worker serves."""

import json
import os
import subprocess
import sys
import urllib.request

import pytest
from crash.served import ROOT, ServedBot


class ServedWorker(ServedBot):
    command = ("worker",)


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.read().decode()


def test_a_worker_serves_its_numbers_and_whether_it_is_ready_where_it_is_told_to(postgres_url, tmp_path):
    with ServedWorker(tmp_path, DATABASE_URL=postgres_url, METRICS_PORT="0") as worker:
        worker.start()
        status, page = get(f"{worker.url}/metrics")
        assert status == 200
        assert 'botservice_turns_total{outcome="failed",transport="telegram"}' not in page, "it has no Telegram"
        assert 'botservice_turns_total{outcome="failed",transport="web"} 0.0' in page
        assert json.loads(get(f"{worker.url}/readyz")[1])["ready"] is True
        assert get(f"{worker.url}/healthz")[0] == 200


BOT = """
from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM

service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM([])))
"""


def test_with_json_logs_each_line_of_the_start_is_json(sqlite_url, tmp_path):
    (tmp_path / "bot.py").write_text(BOT)
    settings = {"DATABASE_URL": sqlite_url, "LOG_FORMAT": "json", "LOG_LEVEL": "INFO"}
    with ServedBot(tmp_path, **settings) as bot:
        process = bot._process = bot._begin()
        said = []
        while "stops it" not in "".join(said):
            said = [line for line in bot.log.splitlines() if line]
            assert process.poll() is None
        bot.kill()
        lines = [json.loads(line) for line in said]
    assert any("botservice is running" in str(line) for line in lines)
    assert any("bot:service" in str(line) for line in lines)


@pytest.mark.parametrize(
    ("command", "settings", "bot", "says"),
    [
        ("serve", {"DATABASE_URL": "nonsense"}, BOT, "DATABASE_URL must be"),
        ("serve", {"DATABASE_URL": "sqlite:////no/such/folder/bot.db"}, BOT, "its folder does not exist"),
        ("migrate", {"DATABASE_URL": "sqlite:////no/such/folder/bot.db"}, BOT, "its folder does not exist"),
        ("serve", {}, "service = 1 / 0", "ZeroDivisionError"),
    ],
)
def test_with_json_logs_each_line_of_a_start_that_fails_is_json(tmp_path, command, settings, bot, says):
    (tmp_path / "bot.py").write_text(bot)
    done = subprocess.run(
        [sys.executable, "-m", "botservice", command],
        env={**os.environ, "PYTHONPATH": str(ROOT), "LOG_FORMAT": "json", "PORT": "0", **settings},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 1
    assert says in lines[-1]["text"]
    assert lines[-1]["level"] == "ERROR"
