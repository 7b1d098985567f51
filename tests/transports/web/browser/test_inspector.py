"""The inspector in a real Chromium: found, followed and copied from."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from looks import PHONE
from standins.payments import Till, cashier
from standins.tools import add

from botservice import LLMError, ToolCall, tool

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")


@tool
async def look(text: str) -> str:
    """Look at a text."""
    return text


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
        await expect(page.get_by_text("no such key").first).to_be_visible()
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
        await page.get_by_role("link", name="What is 2 + 3?").first.click()
        await expect(page.get_by_role("heading", name="Turn 1", level=1)).to_be_visible()
        await page.get_by_role("treeitem", name="Step 1").first.click()
        await expect(page.get_by_role("heading", name="Step 1")).to_be_visible()
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


async def test_times_are_those_of_the_readers_clock(run_site, open_page):
    async with run_site(["Fine"]) as site:
        page = await asked(site, open_page, "hello", timezone_id="Asia/Kathmandu")  # 5:45 hours before UTC
        await page.goto(f"{site.url}/inspect/1")
        shown = page.locator("main time").first
        told = datetime.fromisoformat(await shown.get_attribute("datetime"))
        there = told.astimezone(timezone(timedelta(hours=5, minutes=45)))
        await expect(shown).to_have_text(f"{there:%Y-%m-%d %H:%M:%S}")
        assert await shown.get_attribute("title") == f"{told:%Y-%m-%d %H:%M:%S} UTC"


async def test_arrow_keys_go_through_the_timeline_and_what_is_chosen_stands_beside_it(run_site, open_page):
    async with run_site([CALL, "It is 5"], tools=[add]) as site:
        page = await asked(site, open_page)
        await page.goto(f"{site.url}/inspect/1/1")
        tree = page.get_by_role("tree", name="Timeline")
        turn, step = (tree.get_by_role("treeitem", name=each).first for each in ("Turn 1", "Step 1"))
        await expect(turn).to_have_attribute("aria-selected", "true")
        assert await tree.locator("[tabindex='0']").count() == 1
        await turn.focus()
        for _ in range(30):
            if await step.get_attribute("aria-selected") == "true":
                break
            await page.keyboard.press("ArrowDown")
        await expect(step).to_be_focused()
        await expect(page.get_by_role("heading", name="Step 1")).to_be_visible()
        await expect(page.locator("#turn")).to_be_hidden()
        assert page.url.endswith("#step-1")
        call = tree.get_by_role("treeitem", name="add")
        await page.keyboard.press("ArrowLeft")  # folds it
        await expect(call).to_be_hidden()
        await page.keyboard.press("ArrowRight")
        await expect(call).to_be_visible()
        await page.keyboard.press("ArrowRight")  # to the first below it
        await expect(tree.locator("[aria-selected='true'] .label")).not_to_have_text("Step 1")
        await page.keyboard.press("ArrowLeft")
        await expect(step).to_be_focused()
        await page.keyboard.press("Home")
        await expect(turn).to_be_focused()
        await call.click()
        await expect(page.locator(".call.pointed")).to_contain_text("Call add")
        await page.get_by_role("button", name="Show all details").click()
        await expect(page.locator("#turn")).to_be_visible()
        await page.reload()
        await expect(call).to_have_attribute("aria-selected", "true")


async def test_the_timeline_is_a_list_of_links_without_scripts(run_site, open_page):
    async with run_site([CALL, "It is 5"], tools=[add]) as site:
        await asked(site, open_page)
        page = await open_page(f"{site.url}/inspect/1/1", java_script_enabled=False)
        await expect(page.get_by_role("tree")).to_have_count(0)
        await page.get_by_role("link", name="add").click()
        await expect(page.get_by_text("Call add")).to_be_in_viewport()
        for pane in ("#turn", "#step-0", "#step-1", "#step-2"):
            await expect(page.locator(pane)).to_be_visible()


async def test_what_is_chosen_stays_so_while_the_page_follows_the_turn(run_site, open_page):
    till = Till()
    async with run_site(cashier(), tools=till.tools) as site:
        chat = await open_page(site.url)
        await chat.say("pay her")
        await expect(chat.get_by_role("button", name="Allow", exact=True)).to_be_visible()
        page = await chat.open_tab(f"{site.url}/inspect/1/1")
        await page.get_by_role("treeitem", name="Approval of pay").click()
        await expect(page.locator(".pointed")).to_contain_text("Awaiting approval")
        await chat.get_by_role("button", name="Allow", exact=True).click()
        await expect(page.locator(".pointed")).to_contain_text("Allowed")
        approval = page.get_by_role("treeitem", name="Approval of pay")
        await expect(approval).to_have_attribute("aria-selected", "true")
        await expect(page.get_by_role("treeitem", name="Answer")).to_be_visible()


async def test_on_a_phone_the_details_stand_below_and_lead_back(run_site, open_page):
    async with run_site([*[[CALL, CALL]] * 4, "It is 5"], tools=[add]) as site:
        await asked(site, open_page)
        page = await open_page(f"{site.url}/inspect/1/1", **PHONE)
        await page.get_by_role("treeitem", name="Step 2").first.click()
        await expect(page.get_by_role("heading", name="Step 2")).to_be_in_viewport()
        tree, details = [await page.locator(each).bounding_box() for each in (".tree", "#step-2")]
        assert tree["y"] + tree["height"] <= details["y"]
        await page.locator("#step-2").get_by_role("link", name="Back to the timeline").click()
        await expect(page.get_by_role("heading", name="Timeline")).to_be_in_viewport()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_the_next_step_is_read_from_its_beginning_however_far_down_the_last_one_was(run_site, open_page):
    long = ToolCall("", "look", {"text": "a line\n" * 400})
    async with run_site([long, long, "Done"], tools=[look]) as site:
        await asked(site, open_page)
        page = await open_page(f"{site.url}/inspect/1/1#step-1")
        await page.evaluate("document.querySelectorAll('.details pre').forEach(each => each.style.maxHeight = 'none')")
        await page.mouse.wheel(0, 3_000)
        await page.wait_for_function("scrollY > 1000")
        await page.get_by_role("treeitem", name="Step 2").first.click()
        await expect(page.get_by_role("heading", name="Step 2")).to_be_in_viewport()
