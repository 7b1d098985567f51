"""The application as processes of its own: signals end them well, and commands work next to them."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from crash.served import ServedBot
from standins.bot_api import BotApi
from standins.openai_api import Gate, OpenAIApi, Reply


@pytest.fixture
def bot_settings(sqlite_url: str) -> dict[str, str]:
    return {"DATABASE_URL": sqlite_url}


_IS_KEPT = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.skipif(_IS_KEPT, reason="nohup keeps it away"))],
)
def test_a_signal_to_end_lets_a_running_answer_finish(
    tmp_path: Path, bot_settings: dict[str, str], number: signal.Signals
) -> None:
    gate = Gate()
    with OpenAIApi.running(lambda _: Reply(text="finished in time", wait=gate)) as model, BotApi.running() as api:
        wires = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_MODEL": "gpt-5.5",
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
        }
        with ServedBot(tmp_path, **bot_settings, **wires) as bot:
            bot.start()
            api.person_says("go", chat_id=1000)
            model.wait_for_call()
            process = bot._process
            assert process is not None
            assert process.stdout is not None
            process.send_signal(number)
            assert "8 seconds" in process.stdout.readline()
            gate.open()
            assert process.wait(timeout=60) == 0
            assert "finished in time" in api.visible_texts(1000)


@pytest.mark.slow
def test_sigterm_ends_it_in_ten_seconds_whatever_hangs_and_the_next_start_answers(
    tmp_path: Path, bot_settings: dict[str, str]
) -> None:
    hangs = [True]
    with OpenAIApi.running(lambda _: Reply(text="at last", hang=hangs[0])) as model, BotApi.running() as api:
        wires = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_MODEL": "gpt-5.5",
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
        }
        with ServedBot(tmp_path, **bot_settings, **wires) as bot:
            bot.start()
            api.person_says("go", chat_id=1000)
            model.wait_for_call()
            process = bot._process
            assert process is not None
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
            hangs[0] = False
            bot.kill()
            bot.start()
            api.wait_until(lambda: "at last" in api.visible_texts(1000), timeout=60, what="it is answered")
            assert api.visible_texts(1000).count("at last") == 1


@pytest.mark.slow
def test_a_tool_that_blocks_for_ever_does_not_hold_up_the_end(tmp_path: Path, bot_settings: dict[str, str]) -> None:
    (tmp_path / "stuck_bot.py").write_text(
        "import threading\n"
        "from botservice import *\n"
        "def wait(prompt): return 'done' if prompt[-1]['role'] == 'tool' else ToolCall('', 'wait')\n"
        "def forever():\n    print('stuck', flush=True)\n    threading.Event().wait()\n"
        "tools = [Tool(forever, name='wait')]\n"
        "service = AgentService(FunctionsBasedAgent(tools, ScriptedChatLLM(wait), search_k=0))\n"
    )
    with BotApi.running() as api:
        wires = {"TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
        with ServedBot(tmp_path, "--app", "stuck_bot:service", **bot_settings, **wires) as bot:
            bot.start()
            api.person_says("go", chat_id=1000)
            process = bot._process
            assert process is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "stuck\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0


@pytest.mark.slow
def test_the_commands_work_while_it_serves(tmp_path: Path, bot_settings: dict[str, str]) -> None:
    with BotApi.running() as api:
        wires = {"TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
        with ServedBot(tmp_path, **bot_settings, **wires) as bot:
            bot.start()
            api.person_says("My dog is called Rex", chat_id=1000)
            api.wait_until(lambda: api.visible_texts(1000), timeout=60, what="it is answered")

            def run(*arguments: str) -> str:
                command = [sys.executable, "-m", "botservice", *arguments]
                environment = {**bot._environment, "PORT": "0"}
                return subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
                ).stdout

            assert "transport=telegram chat_id=1000" in run("contexts")
            assert "Rex" in run("replay", "telegram:1000")
            assert "Rex" in run("export", "chat_id=1000")
            assert "is forgotten" in run("forget", "telegram:1000", "--yes")
            assert run("contexts") == ""
            api.person_says("What is my dog called?", chat_id=1000)
            api.wait_until(
                lambda: any("not told me" in text for text in api.visible_texts(1000)), timeout=60, what="it forgot"
            )
