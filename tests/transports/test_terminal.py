"""The chat on a terminal: a prompt, an answer that grows, Ctrl+C and Ctrl+D."""

import asyncio
import io
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crash.served import ROOT
from standins.openai_api import Gate, OpenAIApi, Reply, ToolUse

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.storage.database import Connection
from botservice.turns.inbox import Inbox
from botservice.turns.worker import Worker
from transports.terminal.app import TerminalTransport
from transports.terminal.lines import PlainLines
from transports.terminal.screens import PlainScreen, visible

LIMIT_SECONDS = 60.0


class Terminal:
    """`botservice chat` in a pseudo-terminal, with a person who types."""

    def __init__(self, folder: Path, *arguments: str, **settings: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
            "PYTHONPATH": str(ROOT),
            "TIKTOKEN_CACHE_DIR": str(folder / "no-encodings"),
            "DATABASE_URL": f"sqlite:///{folder / 'bot.db'}",
            **settings,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "botservice", "chat", *arguments],
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def shows(self, pattern: str) -> str:
        """Return what was shown up to the end of pattern, waiting for it if need be; it is taken off `seen`."""
        give_up_at = time.monotonic() + LIMIT_SECONDS
        while not (found := re.search(pattern, self.seen)):
            left = give_up_at - time.monotonic()
            assert left > 0, f"{pattern!r} was not shown: {self.seen!r}"
            if select.select([self._ours], [], [], left)[0]:
                self.seen += self._read()
        shown, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return shown

    def ends(self) -> int:
        """Return the exit code."""
        return self.process.wait(timeout=LIMIT_SECONDS)

    def _read(self) -> str:
        try:
            return os.read(self._ours, 65536).decode(errors="replace").replace("\r\n", "\n")
        except OSError:  # the other side is closed
            pytest.fail(f"the chat ended: {self.seen!r}")


@pytest.fixture
def model() -> Iterator[OpenAIApi]:
    with OpenAIApi.running() as server:
        yield server


@pytest.fixture
def terminal(tmp_path: Path, model: OpenAIApi) -> Iterator[Terminal]:
    chat = Terminal(tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_MODEL="gpt-5.5")
    yield chat
    chat.close()


@pytest.mark.slow
def test_an_answer_grows_after_the_prompt_tools_are_named_and_ctrl_c_stops_it(
    terminal: Terminal, model: OpenAIApi
) -> None:
    gate = Gate()
    model.reply = lambda _: Reply(pieces=["Hello ", "there", "!"], chunk_wait=gate, wait_at=2)
    terminal.shows("Ctrl\\+C stops an answer, Ctrl\\+D ends the chat")
    terminal.shows("you> ")
    terminal.types("hi\n")
    terminal.shows("Hello ")
    gate.open()
    assert terminal.shows("you> ") == "there!\n\nyou> "
    model.reply = lambda body: "Noon." if body["messages"][-1]["role"] == "tool" else ToolUse("current_time", {})
    terminal.types("what time is it?\n")
    assert "(current_time…)\nNoon.\n" in terminal.shows("you> ")
    model.reply = lambda _: Reply(pieces=["Once ", "upon ", "a time"], hang_after=2)
    terminal.types("tell me a story\n")
    terminal.shows("Once ")
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert "(stopped)" in terminal.shows("you> ")
    model.reply = lambda _: "something else"
    terminal.types("never mind\n")
    assert terminal.shows("you> ").endswith("something else\n\nyou> ")
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.ends() == 0


@pytest.fixture
def able(tmp_path: Path, model: OpenAIApi) -> Iterator[Terminal]:
    """A terminal that can do more than print."""
    chat = Terminal(tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_MODEL="gpt-5.5", **able_in(tmp_path))
    yield chat
    chat.close()


def able_in(folder: Path) -> dict[str, str]:
    """Return what a terminal that can do more says of itself."""
    return {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(folder / "state")}


@pytest.mark.slow
def test_markdown_is_shown_as_meant_and_an_edited_line_is_found_again_in_the_next_chat(
    able: Terminal, tmp_path: Path, model: OpenAIApi
) -> None:
    echo, said = model.reply, "It is **noon**.\n\n- now\n"
    model.reply = lambda body: said if body["messages"][-1]["role"] == "tool" else ToolUse("current_time", {})
    able.shows("you>")
    able.types("what time is it?\r")
    able.shows("current_time…")
    shown = able.shows("• .*now")
    assert "**" not in shown
    assert re.search(r"\x1b\[1mnoon", shown), shown
    able.shows("you>")
    model.reply = echo
    able.types("helo\x1b[Dl\r")  # a letter that was left out, one to the left
    able.shows("You said: hello")
    able.shows("you>")
    able.types("\x04")
    assert able.ends() == 0
    kept = tmp_path / "state" / "botservice" / "chat_history"
    assert "+hello" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = Terminal(tmp_path, OPENAI_BASE_URL=model.base_url, OPENAI_MODEL="gpt-5.5", **able_in(tmp_path))
    again.shows("you>")
    again.types("\x1b[A\r")
    again.shows("You said: hello")
    again.shows("you>")
    stop_and_leave(again, model)
    again.close()


def stop_and_leave(chat: Terminal, model: OpenAIApi) -> None:
    """Stop an answer with Ctrl+C, empty a line with it, and leave with it, where the line is empty."""
    model.reply = lambda _: Reply(pieces=["Once\n\n", "upon\n\n", "a time"], hang_after=2)
    chat.types("tell me a story\r")
    chat.shows("Once")
    os.killpg(chat.process.pid, signal.SIGINT)
    chat.shows("stopped")
    chat.shows("you>")
    chat.types("half a line")
    chat.shows("half a line")
    chat.types("\x03")  # empties it
    chat.shows(r"\n[^\n]*you>")  # the next line, not this one as it is drawn for the last time
    chat.types("\x03")
    assert chat.ends() == 0


@pytest.mark.slow
def test_nothing_is_kept_of_what_was_typed_where_nobody_wants_that(tmp_path: Path, model: OpenAIApi) -> None:
    chat = Terminal(tmp_path, "--no-history", OPENAI_BASE_URL=model.base_url, **able_in(tmp_path))
    chat.shows("you>")
    chat.types("my secret\r")
    chat.shows("You said: my secret")
    chat.shows("you>")
    chat.types("\x04")
    assert chat.ends() == 0
    chat.close()
    assert not (tmp_path / "state").exists()


COUNTING = """
import asyncio
from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, ToolCall, progress, tool

@tool
async def count() -> str:
    "Count."
    progress("step 1 \\x1b[2J " + "of many " * 20)
    await asyncio.sleep(0)
    progress("step 2")
    await asyncio.sleep(1.5)
    return "2"

service = AgentService(FunctionsBasedAgent([count], ScriptedChatLLM([ToolCall("1", "count", {}), "I counted to 2."])))
"""


@pytest.mark.slow
def test_what_a_tool_says_of_its_work_takes_the_place_of_what_it_said_before(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(COUNTING)
    chat = Terminal(tmp_path, "--app", "counting:service")
    chat.shows("you> ")
    chat.types("count\n")
    shown = chat.shows("you> ")
    chat.close()
    first, last = (
        shown.index("(count: step 1 [2J of many of"),
        shown.index("\r\x1b[2K(count: step 2)\nI counted to 2.\n"),
    )
    assert "(count…)\n" in shown[:first]
    assert "\n" not in shown[first:last]
    assert len(shown[first:last]) < 80


@pytest.mark.slow
def test_a_reminder_comes_while_nobody_types(terminal: Terminal, model: OpenAIApi) -> None:
    remind = ToolUse("remind_me", {"text": "Tea is ready", "in_minutes": 0.02})
    model.reply = lambda body: "I will." if body["messages"][-1]["role"] == "tool" else remind
    terminal.shows("you> ")
    terminal.types("remind me\n")
    terminal.shows("I will.\n\nyou> ")
    assert terminal.shows("you> ") == "\n⏰ Tea is ready\n\nyou> "
    terminal.types("\x04")
    assert terminal.ends() == 0


async def test_an_answer_that_comes_while_the_terminal_looks_for_its_end_is_no_missing_one(sqlite_url: str) -> None:
    looks = asyncio.Event()

    class Watched(Storage):
        """A storage in which a look for the end of a turn begins before the answer, and ends after it."""

        async def read(self, query: Callable[[Connection], Any], **how: Any) -> Any:
            is_look = "_is_over" in getattr(query, "__qualname__", "")
            if is_look:
                looks.set()
            while not (found := await super().read(query, **how)) and is_look:
                pass
            return found

    async def reply(_: object) -> str:
        await looks.wait()
        return "here"

    target = io.StringIO()
    async with asyncio.timeout(LIMIT_SECONDS), Watched.open(sqlite_url) as storage:
        lines, screen = PlainLines(io.StringIO("hello\n")), PlainScreen(target, is_interactive=False)
        transport = TerminalTransport("s", lines, screen, is_interactive=False)
        service = AgentService(FunctionsBasedAgent([], ScriptedChatLLM(reply), search_k=0), storage)
        worker = Worker(storage, service.options, [transport])
        await worker.start()
        await transport.start(Inbox(storage, worker.wake), storage)
        await transport.converse()
        await worker.stop()
    assert target.getvalue() == "here\n"


@pytest.mark.slow
def test_whoever_stops_reading_ends_the_chat(tmp_path: Path) -> None:
    command = f"yes hello | {sys.executable} -m botservice chat | head -1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DATABASE_URL": f"sqlite:///{tmp_path / 'bot.db'}"}
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext é 🎉 日本", "plain\n\ttext é 🎉 日本"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("\r\x7f\x9b", "\\x0d\\x7f\\x9b"),
        ("right \u202e left", "right \u202e left"),
    ],
)
def test_nothing_that_is_printed_moves_the_cursor(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.slow
def test_what_the_model_thinks_is_shown_where_a_setting_says_so(tmp_path: Path, model: OpenAIApi) -> None:
    wires = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API": "responses", "OPENAI_REASONING_SUMMARY": "auto"}
    chat = Terminal(tmp_path, **wires)
    chat.shows("you> ")
    chat.types("hi\n")
    assert "(thinking about weighing the question…)\nYou said: hi\n" in chat.shows("you> ")
    chat.close()
