"""Stop it by connections: a service that may open few files keeps some for itself, and its log stays small."""

import contextlib
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from crash.served import ServedBot
from standins.bot_api import BotApi

pytestmark = pytest.mark.slow  # processes of their own

PATIENCE_SECONDS = 60


class LimitedBot(ServedBot):
    """A service that may open few files."""

    files = 200

    def _begin(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "-c", f'ulimit -n {self.files}; exec "$@"', "sh", sys.executable, "-m", "botservice", "serve"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )


def count_open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@contextlib.contextmanager
def connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(count)]


def test_a_service_that_may_open_few_files_works_on_while_all_connections_are_taken(tmp_path: Path) -> None:
    with BotApi.running() as api:
        wires = {"TELEGRAM_API_URL": api.url, "TELEGRAM_BOT_TOKEN": api.token}
        with LimitedBot(tmp_path, DATABASE_URL=f"sqlite:///{tmp_path}/bot.db", **wires) as bot:
            bot.start()
            with connections(bot.port, 2 * LimitedBot.files):
                open_files = count_open_files(bot.pid)
                said = api.person_says("hello", chat_id=1)
                assert api.wait_for_message(1, after=said.message_id, timeout=PATIENCE_SECONDS)
            assert open_files < LimitedBot.files
            assert "Traceback" not in bot.log


def test_a_service_that_has_no_file_left_for_a_connection_says_so_and_goes_on(tmp_path: Path) -> None:
    with ServedBot(tmp_path, DATABASE_URL=f"sqlite:///{tmp_path}/bot.db") as bot:
        bot.start()
        assert httpx.get(f"{bot.url}/readyz", timeout=PATIENCE_SECONDS).status_code == 200  # all is loaded
        before = resource.prlimit(bot.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(bot.pid, resource.RLIMIT_NOFILE, (count_open_files(bot.pid) + 5, before[1]))
        until = time.monotonic() + PATIENCE_SECONDS
        with connections(bot.port, 20):
            while "connections.not_accepted" not in bot.log:
                assert time.monotonic() < until
        resource.prlimit(bot.pid, resource.RLIMIT_NOFILE, before)
        assert httpx.get(f"{bot.url}/healthz", timeout=PATIENCE_SECONDS).status_code == 200
        assert "Traceback" not in bot.log
        assert "out of system resource" not in bot.log
        assert bot.log.count("connections.not_accepted") < 10


@pytest.mark.parametrize(("files", "is_said"), [(100, True), (1024, False)])
def test_a_service_that_may_open_too_few_files_says_so_at_its_start(
    tmp_path: Path, files: int, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LimitedBot, "files", files)
    with LimitedBot(tmp_path, DATABASE_URL=f"sqlite:///{tmp_path}/bot.db") as bot:
        lines = bot.start()
        assert any(f"{files} may be open at once, which is too few" in line for line in lines) is is_said
