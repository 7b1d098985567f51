"""What a person may do in the browser, on a terminal and through a program that leaves words of theirs."""

import asyncio
import io

from people.planted import ACCOUNTS, MARK, PROGRAM, TERMINAL, Town

from botservice import AgentContext
from transports.terminal.app import TerminalTransport
from transports.terminal.lines import PlainLines
from transports.terminal.screens import PlainScreen


async def in_the_browser(town: Town) -> None:
    await town.browse(town.words())


async def a_picture_in_the_browser(town: Town) -> None:
    await town.browse(f"/persona be {town.words()[:60]}")
    await town.browse(f"keep: {town.words()[:60]}", name=f"{MARK}name")


async def on_the_terminal(town: Town) -> None:
    lines = PlainLines(io.StringIO(f"{town.words()}\nkeep: {town.words()[:60]}\n"))
    shown = PlainScreen(io.StringIO(), is_interactive=False)
    terminal = TerminalTransport(TERMINAL, lines, shown, is_interactive=False)
    async with town.serving(terminal), asyncio.timeout(60):
        await terminal.converse()


async def by_a_program(town: Town) -> None:
    context = await AgentContext.get_or_create(town.storage, {"transport": "program", "session_id": PROGRAM})
    context.metadata["note"] = MARK
    await context.save_metadata()
    await town.service.prompt(context, town.words(), author=ACCOUNTS["program"])


async def a_title_in_the_browser(town: Town) -> None:
    await town.browse(town.words())
    await town.quiet()
    answer = await town.browser.post("/web/conversations/rename", json={"title": f"{town.words()[:60]} in short"})
    answer.raise_for_status()


DEEDS = (in_the_browser, a_title_in_the_browser, a_picture_in_the_browser, on_the_terminal, by_a_program)
