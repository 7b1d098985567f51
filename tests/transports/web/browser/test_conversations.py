"""The list of conversations, in a real Chromium: next to the chat, and in a drawer on a phone."""

from typing import Any

import pytest

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
HOSTILE = '<img src=x onerror="window.pwned=1"><svg onload=alert(1)> \u202etxt.exe'


def items(page):
    return page.locator("#mine li a")


async def begin(page, text):
    """Begin a new chat, say something in it, and wait for the answer."""
    await page.get_by_role("button", name="New chat").click()
    await expect(page.get_by_role("heading", name="Hello.")).to_be_visible()
    await page.say(text)
    await expect(page.answers).to_have_count(1)


async def test_the_list_leads_back_to_chats_with_drafts_and_finds_as_one_types(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await page.say("first words")
        await expect(items(page)).to_have_text(["first words"])
        await begin(page, "second words")
        await expect(items(page)).to_have_text(["second words", "first words"])
        await expect(items(page).first).to_have_attribute("aria-current", "page")
        await page.locator("#text").fill("half a thought")
        await page.get_by_role("link", name="first words").click()
        await expect(page.questions).to_contain_text(["first words"])
        await expect(page.locator("#text")).to_have_value("")
        await page.reload()
        await expect(page.answers).to_contain_text(["You said: first words"])
        await page.goto(site.url)
        await expect(page.answers).to_contain_text(["You said: second words"])
        await expect(page.locator("#text")).to_have_value("half a thought")
        search = page.get_by_role("searchbox", name="Search your conversations")
        await search.press_sequentially("FIRST")
        await expect(items(page)).to_have_text(["first words"])
        await expect(page.locator("#found")).to_have_text("1 found")
        await search.fill("<b>nothing</b>")
        await expect(page.locator("#found")).to_have_text("Nothing found")
        await search.fill("")
        await expect(items(page)).to_have_count(2)


async def test_a_long_title_is_cut_at_its_end_also_where_it_is_read_from_the_right(run_site, open_page):
    title = "رسالة طويلة جدا بالعربية عن الطقس اليوم وغدا"
    async with run_site() as site:
        page = await open_page(site.url)
        await page.say(title)
        await expect(page.answers).to_have_count(1)  # by then, the list is not drawn again
        await expect(items(page)).to_have_text([title])
        await expect(items(page)).to_have_css("direction", "rtl")
        assert await items(page).evaluate("each => each.scrollWidth > each.clientWidth")


async def test_a_search_leads_to_what_the_service_itself_said(run_site, open_page):
    async with run_site(["one", "two"]) as site:
        page = await open_page(site.url)
        await page.say("hello")
        await expect(page.answers).to_have_count(1)
        await page.say("/memory")
        await expect(page.locator("#log .notice")).to_have_count(1)
        await begin(page, "second words")
        await page.get_by_role("searchbox").fill("know anything")
        await expect(page.locator("#mine mark")).to_have_text(["know", "anything"])
        await items(page).click()
        await expect(page.locator(".named")).to_contain_text("I don’t know anything about you")
        await expect(page.locator(".named")).to_be_in_viewport()


async def test_a_search_finds_an_answer_shows_the_words_around_it_and_leads_to_it(run_site, open_page):
    script = [f"{'A long answer. ' * 300}The **capital** is Lisbon.", *["more"] * 3, "other"]
    async with run_site(script) as site:
        page = await open_page(site.url, timezone_id="America/New_York", **PHONE)
        for number, text in enumerate(("what is it?", "two", "three", "four"), 1):
            await page.say(text)
            await expect(page.answers).to_have_count(number)
        await begin(page, "second words")
        opener = page.get_by_role("button", name="Conversations")
        await opener.tap()
        times = page.locator("#mine time")
        await expect(times).to_have_count(2)
        clock = "new Intl.DateTimeFormat(undefined, {hour: 'numeric', minute: '2-digit'})"
        there = (
            f"each => {clock}.format(new Date(each.dateTime)) === each.textContent || each.textContent === 'Yesterday'"
        )
        assert await times.first.evaluate(there)
        await page.get_by_role("searchbox").fill("capital lisbon")
        await expect(items(page)).to_have_text(["what is it?"])
        await expect(page.locator("#mine mark")).to_have_text(["capital", "Lisbon"])
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.locator("#mine p").tap(force=True)  # all of an item leads there
        await expect(page.locator(".named")).to_contain_text("The capital is Lisbon.")
        await expect(page.locator(".named")).to_be_in_viewport()
        assert not await page.evaluate("innerHeight > document.getElementById('scroll').scrollHeight")
        at = "document.getElementById('scroll').scrollTop"
        before = await page.evaluate(at)
        await page.locator("#newest").tap()
        assert await page.evaluate(at) > before
        await opener.tap()
        await page.get_by_role("searchbox").fill("lisbon")
        await expect(page.locator("#mine mark")).to_have_text(["Lisbon"])


async def test_a_conversation_is_renamed_with_the_keyboard_alone(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await page.say("some words")
        await expect(items(page)).to_have_text(["some words"])
        await page.get_by_role("searchbox", name="Search your conversations").focus()
        await page.keyboard.press("Tab")
        await expect(items(page).first).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("button", name="Rename some words")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.type("nothing of this")
        await page.keyboard.press("Escape")
        await expect(items(page)).to_have_text(["some words"])
        await expect(page.get_by_role("button", name="Rename some words")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.type(HOSTILE)
        await page.keyboard.press("Enter")
        await expect(items(page)).to_contain_text(["<img src=x"])
        await expect(page.locator("#mine li button").first).to_be_focused()
        assert await page.evaluate("window.pwned") is None
        await page.reload()
        await expect(items(page)).to_contain_text(["<img src=x"])
        assert await page.locator("#mine img").count() == 0


async def test_a_conversation_is_deleted_after_it_was_asked(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await page.say("first words")
        await expect(page.answers).to_have_count(1)
        await begin(page, "second words")
        remove = page.get_by_role("button", name="Delete first words")
        await items(page).nth(1).hover()
        await remove.click()
        dialog = page.get_by_role("dialog", name="Delete this conversation?")
        await expect(dialog).to_contain_text("first words")
        await page.keyboard.press("Escape")
        await expect(remove).to_be_focused()
        await remove.press("Enter")
        await dialog.get_by_role("button", name="Delete").click()
        await expect(items(page)).to_have_text(["second words"])
        await expect(page.answers).to_have_count(1)
        await items(page).first.hover()
        await page.get_by_role("button", name="Delete second words").click()
        await dialog.get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="Hello.")).to_be_visible()
        await expect(items(page)).to_have_count(0)


async def test_the_list_is_a_drawer_on_a_phone(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url, **PHONE)
        await page.say("first words")
        await expect(page.answers).to_have_count(1)
        opener = page.get_by_role("button", name="Conversations")
        await expect(items(page).first).to_be_hidden()
        await expect(opener).to_have_attribute("aria-expanded", "false")
        await opener.tap()
        await expect(page.get_by_role("searchbox")).to_be_focused()
        assert await page.locator("main").evaluate("each => each.inert")
        await page.keyboard.press("Escape")
        await expect(opener).to_be_focused()
        await expect(items(page).first).to_be_hidden()
        await opener.tap()
        await page.locator("#shade").tap(position={"x": 380, "y": 400})
        await expect(items(page).first).to_be_hidden()
        await opener.tap()
        await expect(page.get_by_role("button", name="Rename first words")).to_be_visible()
        await items(page).first.tap()
        await expect(page.answers).to_have_count(1)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
