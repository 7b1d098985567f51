"""Workers beside `serve --processes`: as many as were asked for, begun anew where they die, ended with it."""

import os
import signal
from pathlib import Path

import pytest
from cli.conftest import Run
from crash.served import ServedBot
from crash.watching import settings, wait_for
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply

from botservice.cli.beside import read_share
from botservice.errors import BotServiceError
from botservice.turns.turn import Share


def children(pid: int) -> set[int]:
    """Return the processes that a process has started."""
    found = set()
    for each in Path(f"/proc/{pid}/task").glob("*/children"):
        found |= {int(number) for number in each.read_text().split()}
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_sqlite_file_takes_no_more_than_one_process(run: Run) -> None:
    code, _, error = run("serve", "--processes", "2")
    assert code == 1
    assert "needs Postgres" in error


def test_no_worker_and_several_contradict_each_other(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@localhost/none")
    code, _, error = run("serve", "--processes", "2", "--no-worker")
    assert code == 1
    assert "say one of them" in error


def test_a_share_is_read() -> None:
    assert read_share("1/4") == Share(1, 4)
    assert read_share(None) == Share()
    for wrong in ("4/4", "1", "a/b", "-1/2", "", "1/2/3"):
        with pytest.raises(BotServiceError, match="INDEX/COUNT"):
            read_share(wrong)


def test_shares_are_everybody_s_once() -> None:
    for count in (1, 2, 3, 7):
        shares = [Share(index, count) for index in range(count)]
        assert all(sum(share.has(number) for share in shares) == 1 for number in range(100))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are looked for in /proc")
def test_workers_answer_die_come_back_and_end_with_the_one_that_serves(tmp_path: Path, postgres_url: str) -> None:
    with OpenAIApi.running(lambda body: Reply(text="yes")) as llm, BotApi.running() as api:
        wires = settings(llm, api, postgres_url)
        del wires["PUBLIC_URL"]  # each of them may poll: one does
        with ServedBot(tmp_path, "--processes", "3", **wires) as bot:
            bot.start()
            wait_for(lambda: len(children(bot.pid)) == 2)
            first = children(bot.pid)
            for chat in range(1, 7):
                api.person_says("hello", chat_id=chat)
            api.wait_until(lambda: all(api.visible_texts(chat) == ["yes"] for chat in range(1, 7)), timeout=60)
            killed = min(first)
            os.kill(killed, signal.SIGKILL)
            wait_for(lambda: len(children(bot.pid)) == 2 and killed not in children(bot.pid))
            second = children(bot.pid)
            pid = bot.pid
            bot.kill(signal.SIGKILL)
            wait_for(lambda: not any(is_alive(each) for each in second))
            assert "serve.worker_ended" in bot.log
            bot.start()
            assert bot.pid != pid
            wait_for(lambda: len(children(bot.pid)) == 2)
            third = children(bot.pid)
            assert bot.kill(signal.SIGTERM) == 0
            assert not any(is_alive(each) for each in third)
    assert all(api.visible_texts(chat) == ["yes"] for chat in range(1, 7))
