"""Questions of MCP servers in the browser, from the button of one field to the words for the next."""

import contextlib

import pytest
from standins.mcp_servers import asking

from botservice import MCPServers
from tests.turns.asking_hotel import calling


@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.parametrize("revision", ["new", "old"])
async def test_a_form_is_answered_on_the_page(run_site, storage_url, tmp_path, revision) -> None:
    servers = MCPServers({"hotel": asking(revision, tmp_path)}, wait_seconds=60)
    model = calling("book", hotel="Ritz")
    async with (
        contextlib.AsyncExitStack() as stack,
        run_site(model, toolsets=[servers], storage_url=storage_url) as site,
    ):
        stack.push_async_callback(servers.close)
        visitor, stranger = await site.visitor(), await site.visitor()

        async def ask(events, words):
            return (await events.until("notice", lambda data: words in data["text"])).data

        async with visitor.events() as events:
            await visitor.say("go")
            await ask(events, "Your name")
            await stranger.say("/answer 1 Mallory")
            await visitor.say("Anna")
            await ask(events, "Age (2/5)")
            await visitor.say("37")
            for field in ("Room (3/5)", "Breakfast (4/5)"):
                first = (await ask(events, field))["buttons"][0]
                await visitor.say(first["says"], is_pressed=True)
            await ask(events, "Email (5/5)")
            await visitor.say("-")
            await events.until("message", lambda data: "booked Ritz for Anna, 37, single, True, None" in data["text"])
