"""A Slack bot that is killed at any moment loses nothing, and repeats no message that Slack can be asked about."""

import itertools
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash.served import WarmBot
from crash.test_kills import free_port
from standins.openai_api import OpenAIApi, Reply, ToolUse
from standins.serving import Gate
from standins.slack_api import Hang, LoseAnswer, SlackApi

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PEOPLE = 8
KILLS = int(os.environ.get("BOTSERVICE_TEST_KILLS", "8")) // 2
ANSWERED_SECONDS = 120


def model(body: dict) -> Reply:
    """Pay the invoice, then answer with its name."""
    last_user = next(message for message in reversed(body["messages"]) if message["role"] == "user")
    invoice = last_user["content"].removeprefix("pay ")
    if body["messages"][-1]["role"] == "tool":
        return Reply(text=f"done {invoice}", delay=0.02)
    return Reply(tool_calls=[ToolUse("pay", {"invoice": invoice})], delay=0.02)


@pytest.fixture
def api() -> Iterator[SlackApi]:
    with SlackApi.running() as server:
        server.events.retry_seconds = (0.02, 0.1)
        yield server


def settings_of(api: SlackApi, llm: OpenAIApi, folder: Path, way: str) -> dict[str, str]:
    found = {
        "DATABASE_URL": f"sqlite:///{folder / 'bot.db'}",
        "SLACK_BOT_TOKEN": api.bot_token,
        "SLACK_API_URL": api.url,
        "OPENAI_BASE_URL": llm.base_url,
        "OPENAI_MODEL": "gpt-5.5",
        "CRASH_TOOL_LOG": str(folder / "tools.log"),
    }
    if way == "socket":
        return found | {"SLACK_APP_TOKEN": api.app_token}
    port = free_port()
    api.events.http_url = f"http://127.0.0.1:{port}/slack/events"
    return found | {"SLACK_SIGNING_SECRET": api.signing_secret, "PORT": str(port)}


@pytest.mark.parametrize("way", ["http", "socket"])
def test_kills_lose_nothing_and_repeat_no_plain_message(tmp_path: Path, api: SlackApi, way: str) -> None:
    seed = random.Random(f"slack-kills-{way}")
    (tmp_path / "tools.log").touch()
    said: dict[str, list[str]] = {}
    for number in range(PEOPLE):
        user, channel = f"U1{number:03}", f"D1{number:03}"
        api.world.users[user] = {"id": user, "name": user.lower(), "profile": {"display_name": user}}
        api.world.ims[user], api.world.channels[channel] = channel, {user, "U0BOT"}
        said[channel] = []
    numbers = itertools.count(1)

    def done(channel: str) -> list[str]:
        return [text.removeprefix("done ") for text in api.said(channel) if text.startswith("done ")]

    def everybody_asks() -> None:
        for channel, asked in said.items():
            while len(asked) - len(set(done(channel))) < 2:
                asked.append(f"i{next(numbers)}")
                api.person_says(f"pay {asked[-1]}", channel=channel, user=channel.replace("D", "U", 1))

    with (
        OpenAIApi.running(model) as llm,
        WarmBot(tmp_path, "--app", "crash_bot:service", **settings_of(api, llm, tmp_path, way)) as bot,
    ):
        for _ in range(KILLS):
            bot.start()
            everybody_asks()
            left = itertools.count(seed.randrange(1, 2 * PEOPLE), -1)
            llm.wait_for_call(lambda _, left=left: next(left) == 1, since=len(llm.journal), timeout=60)
            bot.kill()
        bot.start()
        everybody_asks()
        api.wait(
            lambda: all(set(done(channel)) >= set(asked) for channel, asked in said.items()), timeout=ANSWERED_SECONDS
        )
        bot.kill()
    for channel, asked in said.items():
        assert done(channel) == asked, f"{channel}: every question is answered once, in its order"
    paid = Counter((tmp_path / "tools.log").read_text().splitlines())
    assert max(paid.values()) == 1
    with sqlite3.connect(tmp_path / "bot.db") as database:
        assert {row[0] for row in database.execute("SELECT status FROM turns")} == {"done"}
        lost = "SELECT count(*) FROM deliveries WHERE status = 'failed' AND kind = 'message'"
        assert database.execute(lost).fetchone()[0] == 0
    database.close()


def is_opened(path: Path) -> bool:
    """Return whether it is known which message a stream is."""
    with sqlite3.connect(path) as database:
        found = database.execute("SELECT 1 FROM deliveries WHERE external_id IS NOT NULL").fetchone()
    database.close()
    return found is not None


@pytest.mark.parametrize("moment", ["opening", "growing", "stopping"])
def test_a_stream_that_a_kill_cut_is_replaced(tmp_path: Path, api: SlackApi, moment: str) -> None:
    gate = Gate()
    (tmp_path / "tools.log").touch()
    words = ["Once upon a time "] + ["there was a bot. "] * 20

    def slow(_: dict) -> Reply:
        return Reply(pieces=words, text="".join(words), chunk_wait=gate, wait_at=8)

    methods = {"opening": "chat.startStream", "growing": "chat.appendStream", "stopping": "chat.stopStream"}
    fault = LoseAnswer() if moment == "stopping" else Hang()
    with OpenAIApi.running(slow) as llm, WarmBot(tmp_path, **settings_of(api, llm, tmp_path, "http")) as bot:
        bot.start()
        order = api.order(fault, methods[moment]) if moment != "growing" else None
        api.person_says("tell me a story")
        if moment == "growing":
            api.wait(lambda: is_opened(tmp_path / "bot.db"))
        elif moment == "opening":
            api.wait(lambda: order.used)
        else:
            api.wait(lambda: any(each.is_streaming for each in api.world.posts))
            gate.open()
            api.wait(lambda: order.used)
        bot.kill()
        if order is not None:
            order.release()
        gate.open()
        bot.start()
        api.wait(lambda: "".join(words).strip() in [text.strip() for text in api.said()], timeout=60)
        bot.kill()
    whole = [text for text in api.said() if text.strip() == "".join(words).strip()]
    assert len(whole) == 1
    cut = [each for each in api.world.posts if each.user == "U0BOT" and each.shown.strip() != "".join(words).strip()]
    assert len(cut) <= (1 if moment == "opening" else 0)
