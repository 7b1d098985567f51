"""A question of an MCP server in a real Chromium: buttons for a choice and yes or no, words for the other fields."""

import contextlib

import pytest
from standins.mcp_servers import asking

from botservice import MCPServers
from tests.turns.asking_hotel import calling

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_fields_of_a_question_are_answered_one_after_the_other(run_site, open_page, tmp_path):
    servers = MCPServers({"hotel": asking("new", tmp_path)}, wait_seconds=60)
    async with (
        contextlib.AsyncExitStack() as stack,
        run_site(calling("book", hotel="Ritz"), toolsets=[servers]) as site,
    ):
        stack.push_async_callback(servers.close)
        page = await open_page(site.url)
        newest = page.locator("#log .notice").last
        await page.say("go")
        await expect(newest).to_contain_text("Your name (1/5)")
        await expect(newest).to_contain_text("<b>https://evil.example</b>")
        await expect(newest.locator("a")).to_have_count(0)
        await page.say("Anna")
        await expect(newest).to_contain_text("Age (2/5)")
        await page.say("37")
        await expect(newest).to_contain_text("Room (3/5)")
        await page.get_by_role("button", name="double").click()
        await expect(newest).to_contain_text("Breakfast (4/5)")
        await page.get_by_role("button", name="Yes").last.focus()
        await page.keyboard.press("Enter")
        await expect(newest).to_contain_text("Email (5/5)")
        await page.reload()
        await expect(page.locator("#log .notice").last).to_contain_text("Email (5/5)")
        await page.say("-")
        await expect(page.answers.last).to_contain_text("booked Ritz for Anna, 37, double, True, None")
        await page.close()
    assert len((tmp_path / "acted.txt").read_text().splitlines()) == 1
