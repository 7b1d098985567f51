"""A hotel as an MCP server whose tools ask, a model that calls them, and what people see of it."""

import asyncio
import contextlib

import pytest
from sqlalchemy import select
from standins.mcp_servers import asking

from botservice import MCPServers
from botservice.commands.standard import standard_commands
from botservice.people.access import Access
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.inbox import Inbox
from tests.turns.bots import call
from tests.turns.messenger import office
from tests.turns.test_waiting import Group, Shop

REVISIONS = pytest.mark.parametrize("revision", ["new", "old"])


def calling(name, **arguments):
    """Return a model that makes one call for what says `go`, and says what came of it."""

    def answer(prompt):
        results = [each["content"] for each in prompt if each["role"] == "tool"]
        said = [each["content"] for each in prompt if each["role"] == "user"][-1].rpartition(": ")[2]
        if said.startswith("go"):
            return f"got {results[-1]}" if results else call(f"hotel__{name}", **arguments)
        return f"re {said}"

    return answer


@contextlib.asynccontextmanager
async def hotel(storage, folder, revision, model, *, entry=None, **options):
    toolset = MCPServers({"hotel": asking(revision, folder, **(entry or {}))}, wait_seconds=60)
    access = Access(owners=frozenset({"messenger:olga"}))
    try:
        async with office(
            storage,
            model,
            messenger=Group(),
            toolsets=[toolset],
            access=access,
            commands=standard_commands(),
            **options,
        ) as opened:
            yield Shop(opened, [], Inbox(storage, opened.worker.wake, access=access))
    finally:
        await toolset.close()


def acted(folder):
    path = folder / "acted.txt"
    return path.read_text().splitlines() if path.exists() else []


async def newest(bot, words):
    """Return the newest message, as soon as it has these words."""
    return (await bot.shows(lambda texts: texts and words in texts[-1]))[-1]


async def buttons(bot, count):
    return (await bot.asked(count))[-1]


async def statuses(bot):
    return [each.status for each in await bot.read(select(pending_calls.c.status).order_by(pending_calls.c.id))]


async def until_acted(folder, line):
    async with asyncio.timeout(30):
        while line not in acted(folder):  # noqa: ASYNC110 - another process writes the file
            await asyncio.sleep(0.01)
