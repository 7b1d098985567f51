"""The inspector in a real Chromium: found, followed and copied from."""

from typing import Any

import pytest
from standins.tools import add

from botservice import LLMError, ToolCall

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")
CALL = ToolCall("", "add", {"a": 2, "b": 3})


async def asked(site: Any, open_page: Any, text: str = "What is 2 + 3?", **options: Any) -> Any:
    """Return the page of the chat once a question is answered there."""
    page = await open_page(site.url, **options)
    await page.say(text)
    await expect(page.locator("#log .assistant, #log .notice").first).to_be_visible()
    return page


async def test_a_failed_turn_is_tried_again_and_one_is_deleted_only_on_purpose(run_site, open_page):
    async with run_site([LLMError("no such key", is_transient=False), "Now it works"]) as site:
        page = await asked(site, open_page, "hello")
        await page.goto(f"{site.url}/inspect/t/1")
        await expect(page.get_by_text("LLMError: no such key").first).to_be_visible()
        await page.get_by_role("button", name="Try again now").click()
        await expect(page.get_by_text("Now it works").first).to_be_visible()
        await page.goto(f"{site.url}/inspect/1")
        await page.get_by_text("Delete…").click()
        await page.get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("checkbox")).to_be_focused()  # the browser asks for it
        await page.get_by_role("checkbox").check()
        await page.get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("Nobody has said anything yet.")).to_be_visible()


async def test_an_open_page_follows_what_happens_and_what_was_unfolded_stays_so(run_site, open_page):
    async with run_site([CALL, "It is 5", "More"], tools=[add]) as site:
        chat = await asked(site, open_page)
        turns = await chat.open_tab(f"{site.url}/inspect/1")
        await expect(turns.get_by_role("link", name="What is 2 + 3?", exact=True)).to_be_visible()
        await expect(turns.get_by_role("status")).to_have_text("Live")
        await turns.get_by_text("More", exact=True).click()
        await expect(turns.get_by_label("Tool")).to_be_visible()
        await turns.locator("h1").click()
        await chat.say("and then?")
        await expect(turns.get_by_role("link", name="and then?", exact=True)).to_be_visible()
        await expect(turns.get_by_label("Tool")).to_be_visible()


async def test_a_turn_is_found_by_the_form_and_its_request_copied_by_a_button(run_site, open_page):
    async with run_site([CALL, "It is 5"], tools=[add]) as site:
        page = await asked(site, open_page, permissions=["clipboard-read", "clipboard-write"])
        await page.goto(f"{site.url}/inspect")
        await page.get_by_role("searchbox", name="Text").fill("2 + 3")
        await page.keyboard.press("Enter")
        await page.get_by_role("link", name="What is 2 + 3?").click()
        await expect(page.get_by_role("heading", name="Step 1")).to_be_visible()
        await expect(page.get_by_role("rowheader", name="Step 1: add")).to_be_visible()
        await page.get_by_role("button", name="Copy as curl").first.click()
        await expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert (await page.evaluate("navigator.clipboard.readText()")).startswith("curl https://")


async def test_long_questions_leave_columns_their_words_and_charts_are_tables_too(run_site, open_page):
    async with run_site() as site:
        page = await asked(site, open_page, "What would you say of this? " * 20)
        await page.goto(f"{site.url}/inspect?view=turns")
        lines = await page.locator(".turns .state").evaluate("each => each.getClientRects().length")
        assert lines <= 2, "of two words"
        await page.goto(f"{site.url}/inspect/charts?range=day")
        await expect(page.get_by_role("figure", name="Turns")).to_be_visible()
        await page.get_by_text("Turns as a table").click()
        figure = page.get_by_role("figure", name="Turns")
        await expect(figure.get_by_role("row")).to_have_count(25)
        assert await figure.locator("svg:not([aria-hidden])").count() == 0
        assert await figure.locator(".chart rect").count() == 1
