"""A question that comes as several messages is asked once, however often a process is killed, and by whichever one."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from crash.served import WarmBot
from crash.watching import rows, said, settings
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHAT, ASKED = 1000, "what do they want from me?"
POSTS = [f"post number {number}" for number in range(5)]
ANSWER = "They want money."


class Model:
    """Hangs as long as it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.hangs = True
        self._changed = threading.Condition()

    def __call__(self, body: dict[str, Any]) -> Reply:
        with self._changed:
            self.asked.append(json.dumps(body))
            self._changed.notify_all()
        return Reply(text=ANSWER, hang_after=0 if self.hangs else None)

    def wait(self, *, posts: int, since: int = 0) -> None:
        with self._changed:
            assert self._changed.wait_for(
                lambda: any(sum(each in asked for each in POSTS) == posts for asked in self.asked[since:]), timeout=60
            )


def test_it_is_asked_once_by_the_next_process(tmp_path: Path) -> None:
    model = Model()
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        wires = settings(llm, api, f"sqlite:///{tmp_path / 'bot.db'}")
        del wires["PUBLIC_URL"]
        with WarmBot(tmp_path, **wires) as bot:
            bot.start()
            api.person_says(ASKED, chat_id=CHAT)
            model.wait(posts=0)
            api.person_forwards(POSTS[:2], chat_id=CHAT)
            model.wait(posts=2)
            assert bot.kill() == -9
            killed, model.hangs = len(model.asked), False
            bot.start()
            model.wait(posts=2, since=killed)
            api.wait_until(lambda: api.visible_texts(CHAT) == [ANSWER], what="it is answered once")


def test_parts_that_another_replica_takes_in_reach_the_one_that_works_on_the_question(
    tmp_path: Path, postgres_url: str
) -> None:
    model, folders = Model(), [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url)
        with WarmBot(folders[0], **wires) as one, WarmBot(folders[1], **wires) as two:
            one.start()
            two.start()
            api.reach_webhooks_at(one.url)
            api.person_says(ASKED, chat_id=CHAT)
            model.wait(posts=0)
            api.reach_webhooks_at(two.url)
            api.person_forwards(POSTS[:3], chat_id=CHAT)
            model.wait(posts=3)
            one.kill()
            killed, model.hangs = len(model.asked), False
            model.wait(posts=3, since=killed)
            api.wait_until(lambda: api.visible_texts(CHAT) == [ANSWER], what="it is answered once")
    assert [role for role, _ in said(postgres_url)] == ["user"] * 4 + ["assistant"]
    assert rows(postgres_url, "SELECT status, joined_events FROM turns") == [("done", 3)]
