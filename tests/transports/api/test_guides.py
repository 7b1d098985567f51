"""The guides about programs, done as their readers do them: with a bot that is served, and what is written there."""

import contextlib
import io
import itertools
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from crash.served import ROOT, ServedBot
from docs.test_docs import blocks_of
from standins.bot_api import BotApi
from standins.clocks import LastingMinute
from turns.group_scenes import TwoModels, gate_of, settle
from turns.listening_groups import Group
from turns.messenger import echo, office

from botservice import AgentContext
from botservice.commands.standard import standard_commands
from botservice.config.settings import Settings
from botservice.conversation.reminder_queries import read_schedules
from botservice.people.access import Access
from botservice.texts import in_language
from tests.transports.api.serving import Commanded
from tests.transports.api.signing import github

GUIDES = ROOT / "docs" / "guides"
GROUP = -100123
RUN = {"name": "tests", "head_branch": "main", "html_url": "https://github.com/acme/app/actions/runs/1"}


def written(guide: str, folder: Path) -> dict[str, str]:
    """Write the files of a guide into a folder, and return them by name."""
    files = {}
    for block in blocks_of((GUIDES / guide).read_text()):
        if block.kind not in ("python", "sh"):
            files[block.kind] = block.code
            (folder / block.kind).write_text(block.code)
    return files


def block_after(guide: str, kind: str, mark: str = "") -> list[str]:
    """Return the blocks of a kind in a guide, those below a mark where one is given."""
    parts = (GUIDES / guide).read_text().split(f"```{kind}\n")
    return [code.partition("```")[0] for before, code in itertools.pairwise(parts) if before.rstrip().endswith(mark)]


@pytest.mark.slow
def test_ci_results_are_posted_as_the_guide_says(tmp_path: Path) -> None:
    files = written("ci-results.md", tmp_path)
    secret = files[".env"].strip().partition("=")[2]
    with BotApi.running() as api:
        api.add_group(GROUP)
        settings = {"TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url, "DATABASE_URL": "sqlite:///bot.db"}
        with ServedBot(tmp_path, **settings) as bot:
            bot.start()
            for conclusion, event in (("success", "workflow_run"), ("failure", "workflow_run"), ("failure", "ping")):
                run = {**RUN, "conclusion": conclusion}
                body = json.dumps({"action": "completed", "workflow_run": run}).encode()
                headers = github(body, secret, delivery=f"{conclusion}{event}") | {"x-github-event": event}
                assert httpx.post(f"{bot.url}/hooks/ci", content=body, headers=headers, timeout=60).status_code == 202
            api.wait_until(lambda: bool(api.visible_texts(GROUP)), timeout=60, what="it is posted")
            assert [each.partition(":")[0] for each in api.visible_texts(GROUP)] == ["❌ tests failed on main"]
            checked = subprocess.run(
                [sys.executable, "-m", "botservice", "doctor"],
                cwd=tmp_path,
                env=bot._environment,
                capture_output=True,
                text=True,
                check=False,
            )
    assert "hooks      ci (github → telegram:-100123, say)" in checked.stdout


@pytest.mark.slow
def test_the_bot_is_a_model_as_the_guide_says(tmp_path: Path) -> None:
    written("open-webui.md", tmp_path)
    (code,) = block_after("open-webui.md", "python")
    with ServedBot(tmp_path, DATABASE_URL="sqlite:///bot.db") as bot:
        bot.start()
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(code.replace("http://127.0.0.1:8000", bot.url), {})
    assert said.getvalue().strip()


async def test_a_report_comes_every_monday_as_the_guide_says(storage) -> None:
    commands = [each.strip() for each in block_after("monday-report.md", "text", "<!-- a command -->")]
    assert len(commands) == 4
    clock = [datetime(2026, 5, 6, 12, tzinfo=UTC)]
    async with office(
        storage, echo, messenger=Commanded(), clock=lambda: clock[0], commands=standard_commands()
    ) as bot:
        for number, command in enumerate(commands):
            await bot.write(command, order=number + 1)
            await bot.messenger.until(lambda number=number: len(bot.messenger.visible.get("1", [])) > number)
        clock[0] = datetime(2026, 5, 11, 7, 0, 30, tzinfo=UTC)  # in Madrid it is 09:00
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) > len(commands))
        assert "List the open pull requests, the oldest first" in bot.messenger.visible["1"][-1]
    context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "1"})
    (schedule,) = await storage.read(lambda connection: read_schedules(connection, context.id))
    assert schedule.due_at == datetime(2026, 5, 18, 7, tzinfo=UTC)


async def test_a_bot_listens_as_the_guide_says(sqlite_storage, tmp_path: Path) -> None:
    written("listening.md", tmp_path)
    settings = Settings.load(tmp_path / ".env")
    assert (settings.gate_model, settings.unasked_per_hour) == ("gpt-6-luna", 2)
    (command,) = block_after("listening.md", "text", "<!-- a command -->")
    models, clock = TwoModels("yes", "On the third floor."), LastingMinute()
    gate = gate_of(models, listens=False, per_hour=settings.unasked_per_hour)
    access, commands = Access(owners=frozenset({"messenger:7"})), standard_commands()
    options = {"messenger": Group(), "clock": clock, "access": access, "commands": commands, "gate": gate}
    async with office(sqlite_storage, models, **options) as bot:
        await bot.write(command.strip(), order=1)
        await bot.messenger.until(lambda: bool(bot.messenger.visible.get("1")))
        for order in (2, 3, 4):
            await bot.write("ben: which floor is it?", order=order)
            clock.pass_(seconds=5)
            await settle(sqlite_storage)
        on = in_language("listen.on", "en", most="2")
        assert bot.messenger.visible["1"] == [on, *["On the third floor."] * 2]
