"""A bot.py in the current folder is the bot that commands serve, unless another one is named."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from botservice.cli.own_bot import OwnBot, find_own_bot
from botservice.config.settings import Settings

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]
BOT = """
from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM

service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM(lambda prompt: "from {name}")))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def botservice(folder: Path, *command: str, said: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DATABASE_URL": f"sqlite:///{folder}/bot.db", **settings}
    return subprocess.run(
        [sys.executable, "-m", "botservice", *command],
        cwd=folder,
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_order_is_the_option_the_setting_the_file_the_built_in_agent(folder: Path) -> None:
    for name in ("bot", "second", "third"):
        (folder / f"{name}.py").write_text(BOT.format(name=name))
    named = {"BOT_APP": "second:service"}
    asked = [
        (botservice(folder, "chat", said="hi\n"), "bot"),
        (botservice(folder, "chat", said="hi\n", **named), "second"),
        (botservice(folder, "chat", "--app", "third:service", said="hi\n", **named), "third"),
    ]
    for chat, name in asked:
        assert (chat.stdout, chat.returncode) == (f"from {name}\n", 0)
        assert chat.stderr == ("" if name == "third" else f"bot      {name}:service\n")
    (folder / "bot.py").unlink()
    built_in = botservice(folder, "chat", said="hi\n")
    assert "I am a demo" in built_in.stdout
    assert built_in.stderr == ""


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("service = 1", True),
        ("service: object = 1", True),
        ("other, service = 1, 2", True),
        ("service = (", True),
        ("service: object", False),
        ("def make():\n    service = 1", False),
        ("service.x = 1", False),
        ("services = 1", False),
        ("print service", False),
        ("", False),
        ("\0", False),
    ],
)
def test_the_file_is_read_and_not_run(folder: Path, source: str, is_found: bool) -> None:
    (folder / "bot.py").write_text(f"{source}\n")
    found = find_own_bot(None, Settings(_env_file=None), folder)
    assert found == (OwnBot("bot:service", "bot.py here") if is_found else None)


def test_a_bot_of_another_program_is_not_imported(folder: Path) -> None:
    (folder / "bot.py").write_text("raise SystemExit('this was run')\n")
    assert "I am a demo" in botservice(folder, "chat", said="hi\n").stdout


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("worker",), ("chat",), ("doctor",)])
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_such\nservice = 1", "bot.py here: bot needs nothing_such, which is not installed"),
        ("service = 1 / 0", "bot.py here: bot cannot be imported: ZeroDivisionError: division by zero (bot.py:1)"),
        ("service = (", "bot.py here: bot cannot be imported: SyntaxError: '(' was never closed (bot.py:1)"),
        ("service = 1", "bot.py here: service in bot must be an AgentService, not int"),
    ],
)
def test_an_error_while_importing_it_ends_the_command_and_names_it(
    folder: Path, command: tuple[str, ...], source: str, said: str
) -> None:
    (folder / "bot.py").write_text(f"{source}\n")
    run = botservice(folder, *command)
    assert run.returncode == 1
    assert said in (run.stdout if command == ("doctor",) else run.stderr)
    assert "Traceback" not in run.stderr


def test_doctor_looks_at_it(folder: Path) -> None:
    (folder / "bot.py").write_text(BOT.format(name="bot"))
    assert "✓ bot        bot:service: FunctionsBasedAgent, without tools" in botservice(folder, "doctor").stdout


def test_a_setting_that_names_no_bot_is_refused(folder: Path) -> None:
    assert "BOT_APP must be a module and what it calls its" in botservice(folder, "chat", BOT_APP="bot.py").stderr


def test_a_folder_without_a_name_is_not_made(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for name in ("", " "):
        code, _, error = run("new", name)
        assert code == 1
        assert "name the new folder" in error
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("time,fcats", "none; there is no tool 'fcats'; did you mean facts?"),
        ("time, weather", "; there is no tool 'weather'"),
        ("time,sk-SECRET12345", "; there is no tool at place 2 of the list"),
    ],
)
def test_the_wrong_tool_of_a_list_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, tools: str, said: str) -> None:
    monkeypatch.setenv("TOOLS", tools)
    code, _, error = run("chat")
    assert code == 1
    assert f"{said}\n" in f"{error}\n"
    assert "SECRET" not in error.upper()
