"""Workers next to `serve --processes`: as many as were asked for, begun again where they die, ended with it."""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import pytest
from cli.conftest import Run
from crash.served import ServedBot
from crash.watching import settings, wait_for
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply

from botservice.cli.serve_processes import keep_workers, read_share
from botservice.core.errors import BotServiceError
from botservice.turns.turn import Share

ENDS_AFTER_THE_OTHER = """
import asyncio, sys
from pathlib import Path
from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM

class Model(ScriptedChatLLM):
    async def close(self) -> None:
        if "worker" not in sys.argv:
            Path("ended").touch()
        while not Path("ended").exists():
            await asyncio.sleep(0.01)

service = AgentService(FunctionsBasedAgent(llm=Model(["yes"])))
"""
HANGS_AS_A_WORKER = """
import asyncio, signal, sys, time
from pathlib import Path
from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM

class Agent(FunctionsBasedAgent):
    async def tools_now(self):
        while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            await asyncio.sleep(0.01)
        if "worker" in sys.argv:
            Path("hangs").touch()
            time.sleep(600)

service = AgentService(Agent(llm=ScriptedChatLLM(["yes"])))
"""
in_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are looked for in /proc")


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


def hears_sigterm(pid: int) -> bool:
    """Return whether a process does something of its own at SIGTERM: then it runs."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def worker_beside(bot: ServedBot) -> int:
    """Return the only worker next to a bot, once it runs."""
    wait_for(lambda: any(hears_sigterm(each) for each in children(bot.pid)))
    (worker,) = children(bot.pid)
    return worker


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
@in_proc
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


@pytest.mark.slow
@in_proc
def test_workers_end_while_the_one_that_serves_does(tmp_path: Path, postgres_url: str) -> None:
    """Also where the system tells all of them at once, as systemd does: none is begun again then."""
    (tmp_path / "ending.py").write_text(ENDS_AFTER_THE_OTHER)
    with ServedBot(tmp_path, "--processes", "2", "--app", "ending:service", DATABASE_URL=postgres_url) as bot:
        bot.start()
        worker = worker_beside(bot)
        os.kill(bot.pid, signal.SIGTERM)
        os.kill(worker, signal.SIGTERM)
        wait_for(lambda: not is_alive(bot.pid))
        assert not is_alive(worker)
        assert (tmp_path / "ended").exists()
        assert "serve.worker_ended" not in bot.log


@pytest.mark.slow
@in_proc
def test_a_worker_that_hangs_does_not_outlive_the_one_that_serves(tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "hanging.py").write_text(HANGS_AS_A_WORKER)
    with ServedBot(tmp_path, "--processes", "2", "--app", "hanging:service", DATABASE_URL=postgres_url) as bot:
        bot.start()
        worker = worker_beside(bot)
        wait_for((tmp_path / "hangs").exists)
        bot.kill(signal.SIGKILL)
        wait_for(lambda: not is_alive(worker))


async def test_a_worker_that_the_system_does_not_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    caplog.set_level(logging.ERROR)
    ending = asyncio.Event()
    keeping = asyncio.create_task(keep_workers(2, None, ending))
    async with asyncio.timeout(60):
        while len(caplog.records) < 2:  # noqa: ASYNC110 - no other person says it
            await asyncio.sleep(0.01)
    ending.set()
    await keeping
    assert {record.message for record in caplog.records} == {"serve.worker_ended"}
