"""A database that is away while people write: few lines in the log, and everything is answered afterwards."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from crash.served import ROOT, WarmBot
from crash.watching import rows, settings
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply
from standins.postgres_server import postgres_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = float(os.environ.get("CHAOS_OUTAGE_SECONDS", "10"))
"""How long it is away; the longer, the more lines would be written."""
CHATS = range(1000, 1030)


def answer(body: dict[str, Any]) -> Reply:
    """Answer after a moment, so that the outage comes in the middle of answers."""
    return Reply(text=f"re: {body['messages'][-1]['content']}", delay=0.2)


def test_an_outage_under_load_is_told_in_a_few_lines_and_loses_nothing(tmp_path: Path) -> None:
    with postgres_server("botservice-outage-") as server, OpenAIApi.running(answer) as llm, BotApi.running() as api:
        url = server.get_uri()
        wires = settings(llm, api, url)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DATABASE_URL": url}
        subprocess.run([sys.executable, "-m", "botservice", "migrate"], env=environment, cwd=tmp_path, check=True)
        with WarmBot(tmp_path, **wires) as bot:
            bot.start()
            api.reach_webhooks_at(bot.url)
            for chat in CHATS:
                api.person_says("before", chat_id=chat)
            api.wait_until(lambda: any(map(api.visible_texts, CHATS)), timeout=60, what="somebody is answered")
            lines_before = len(bot.log.splitlines())
            os.kill(server.get_pid(), signal.SIGINT)
            server.get_postmaster_info().process.wait(60)
            for chat in CHATS:
                api.person_says("meanwhile", chat_id=chat)
            time.sleep(SECONDS)
            during = [line for line in bot.log.splitlines()[lines_before:] if " INFO " not in line]
            server.ensure_postgres_running()

            def answered() -> int:
                return sum("re: meanwhile" in api.visible_texts(chat) for chat in CHATS)

            api.wait_until(lambda: answered() == len(CHATS), timeout=240, what="everyone is answered")
            api.wait_until(lambda: "storage.back" in bot.log, timeout=60, what="it says that the database is back")
            [back] = [line for line in bot.log.splitlines() if "storage.back" in line]
        assert len(during) <= 1 + SECONDS // 60, during
        assert "lines_kept_back" in back
        assert "Traceback" not in "".join(during)
        said = rows(url, "SELECT text, count(*) FROM messages WHERE role = 'assistant' GROUP BY 1 ORDER BY 1")
        assert said == [("re: before", len(CHATS)), ("re: meanwhile", len(CHATS))]
    sys.stdout.write(f"{SECONDS:g} s: {len(during)} lines while it was away; {back}\n")
