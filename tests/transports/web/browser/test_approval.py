"""Deciding about a call in a real Chromium: with the keyboard, seen in every page, and after a reload."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from standins.payments import HOSTILE, Till, cashier

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_question_is_decided_with_the_keyboard_and_every_page_sees_it(run_site, open_page, tmp_path):
    till = Till()
    call = {"to": HOSTILE, "amount": 5, "note": "a long note " * 40}
    async with run_site(cashier(call), tools=till.tools) as site:
        page = await open_page(site.url)
        await page.say("pay her")
        question = page.locator("#log .notice")
        await expect(question).to_contain_text("<b>bold</b> *star* `tick`")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        other = await page.open_tab(site.url)
        await expect(other.get_by_role("button", name="Allow")).to_be_visible()
        for width in (390, 1200):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await page.screenshot(path=tmp_path / f"asked-{width}.png")
        await page.get_by_role("button", name="Allow").focus()
        await page.keyboard.press("Enter")
        for each in (page, other):
            await expect(each.locator("#log .notice")).to_contain_text("Allowed for")
            await expect(each.locator("#log .choices button")).to_have_count(0)
            await expect(each.answers.last).to_contain_text("paid 5 to")
        assert await page.evaluate("document.activeElement.classList.contains('notice')")
        for width in (390, 1200):
            await page.set_viewport_size({"width": width, "height": 800})
            await page.screenshot(path=tmp_path / f"decided-{width}.png")
        await page.reload()
        await expect(page.locator("#log .notice")).to_contain_text("Allowed for")
        await expect(page.locator("#log .choices button")).to_have_count(0)
        await other.close()
        await page.close()
    assert len(till.paid) == 1


async def test_a_press_that_came_too_late_says_so(run_site, open_page):
    till = Till()
    async with run_site(cashier(), tools=till.tools) as site:
        page = await open_page(site.url)
        await page.say("pay her")
        await expect(page.get_by_role("button", name="Deny")).to_be_visible()
        await page.get_by_role("button", name="Deny").click()
        await expect(page.locator("#log .notice")).to_contain_text("Denied for")
        await page.evaluate(  # as a page does that has not heard of it yet
            "const detail = { decides: '/allow 1', row: document.createElement('div') };"
            "document.dispatchEvent(new CustomEvent('decide', { detail }))"
        )
        await expect(page.locator("#problem")).to_contain_text("already decided")
        await page.close()
    assert till.paid == []


async def test_the_buttons_are_told_apart_and_the_time_is_the_readers_own(run_site, open_page):
    till = Till()
    call = {"to": "2026-01-01 10:00 (UTC)", "amount": 5}
    async with run_site(cashier(call), tools=till.tools) as site:
        page = await open_page(site.url, timezone_id="Asia/Kathmandu")  # 5:45 hours before UTC
        await page.say("pay her")
        question = page.locator("#log .notice")
        allow, deny = page.get_by_role("button", name="Allow"), page.get_by_role("button", name="Deny")
        await expect(allow).to_be_visible()
        style = "each => [getComputedStyle(each).color, getComputedStyle(each).backgroundColor]"
        (green, filled), (red, also_filled) = await allow.evaluate(style), await deny.evaluate(style)
        assert green != red
        assert filled == also_filled  # neither is the one to be pressed
        assert await page.evaluate("document.activeElement.closest('.choices')") is None
        until = question.locator("p time")
        at = await until.get_attribute("datetime")
        there = datetime.fromisoformat(at).astimezone(ZoneInfo("Asia/Kathmandu"))
        assert f"{there.hour}:{there:%M}" in await until.text_content()
        await expect(question.locator("pre")).to_contain_text("to: 2026-01-01 10:00 (UTC)")  # as the tool gets it
        await expect(question.locator("p").last).not_to_contain_text("UTC")
        await expect(question.locator("figcaption")).to_be_hidden()
        await expect(question.get_by_role("button", name="Copy")).to_have_count(0)
