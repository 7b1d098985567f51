"""Every page as axe sees it, at the width of a phone and of a desk, light and dark, in a real Chromium."""

from typing import Any

import pytest
from looks import DESKTOP, PHONE
from people.browsing import SITE, link
from standins.payments import Till, cashier
from standins.tools import add

from botservice import LLMError, ToolCall
from transports.common.notice_page import notice_headers, write_notice

expect = pytest.importorskip("playwright.async_api").expect
Axe = pytest.importorskip("axe_playwright_python.async_playwright").Axe
pytestmark = pytest.mark.asyncio(loop_scope="session")

CALLS = [[ToolCall(str(each), "add", {"a": each, "b": 3}) for each in range(4)]]
BROKEN_CALL = ToolCall("", "add", {"a": "x"})
MARKDOWN = """# Plan

Text with `code`, a [link](https://example.com), **bold**, and $$x^2$$

- [ ] to do
- [x] done

> a quotation

```python
def greet(name): return f"a line of code that is so much longer than any phone is wide, hello {name}, how are you?"
```

| city | temperature | humidity | wind | pressure | clouds | sunrise | sunset | a longer heading |
|---|--:|:-:|---|---|---|---|---|---|
| Oslo | 3 | 80 % | 5 m/s | 1013 hPa | many | 07:00 | 17:00 | something |
"""
INSPECTOR = (
    "/inspect",
    "/inspect?view=turns&state=all&person=",
    "/inspect?view=turns&q=nothing-like-it",
    "/inspect?view=turns&q=Show",
    "/inspect/1",
    "/inspect/1/1",
    "/inspect/1/2",
    "/inspect/1/1/again",
    "/inspect/charts?range=day",
    "/inspect/approvals",
    "/inspect/999",
    "/nowhere",
)
UNFOLD = "document.querySelectorAll('details').forEach(each => each.open = true)"
SIZES = pytest.mark.parametrize("options", [PHONE, DESKTOP], ids=["phone", "desktop"])
OPTIONS = {"resultTypes": ["violations"]}


# Links within a sentence may be smaller (WCAG 2.2, 2.5.5).
SMALL_TARGETS = """() => [...document.querySelectorAll("button, summary, input, textarea, a, .attach")].filter(each => {
    const {width, height} = each.getBoundingClientRect();
    const isSeen = each.checkVisibility({visibilityProperty: true}) && width > 1 && !each.disabled;
    return isSeen && !each.closest(".body, .skip, .attach > *") && Math.min(width, height) < 44;
}).map(each => each.outerHTML.slice(0, 200))"""


class Looker:
    """Looks at pages with axe and collects what it finds: the state of the page, the rule, the element, the reason."""

    def __init__(self, page: Any) -> None:
        self.found: list[str] = []
        self._page = page

    async def look(self, state: str) -> None:
        """Look at the page as it is, in the light and in the dark, by every rule."""
        for scheme in ("light", "dark"):
            await self._page.emulate_media(color_scheme=scheme)
            results = (await Axe().run(self._page._page, options=OPTIONS)).response
            assert results["passes"] or results["violations"]  # it has looked
            self.found += [
                f"{state}, {scheme}: {each['id']} {node['target']} {node['html'][:160]} {node['failureSummary']}"
                for each in results["violations"]
                for node in each["nodes"]
            ]

    async def look_at(self, address: str) -> None:
        """Look at the page of an address, folded and unfolded."""
        await self._page.goto(address)
        await self.look(address)
        if await self._page.locator("details").count():
            await self._page.evaluate(UNFOLD)
            await self.look(f"{address}, unfolded")


async def test_axe_sees_what_is_wrong(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        looker = Looker(page)
        await page.evaluate("document.getElementById('welcome').append(document.createElement('button'))")
        await looker.look("a button without words")
        assert "button-name" in "".join(looker.found)


@SIZES
async def test_axe_finds_nothing_in_the_chat(run_site, open_page, options):
    script = [*CALLS, MARKDOWN, LLMError("no such key", is_transient=False), BROKEN_CALL, "short"]
    async with run_site(script, tools=[add]) as site:
        page = await open_page(site.url, reduced_motion="reduce", **options)
        looker = Looker(page)
        await looker.look("empty")
        await page.locator("#text").fill("/")
        await expect(page.locator("#completions")).to_be_visible()
        await looker.look("commands")
        await page.locator("#text").fill("")
        await expect(page.locator("#completions")).to_be_hidden()
        await page.locator("#files").set_input_files([{"name": "a.txt", "mimeType": "text/plain", "buffer": b"words"}])
        await page.say("Show me")
        await expect(page.answers).to_have_count(1)
        await looker.look("answered")
        await page.evaluate(UNFOLD)
        await looker.look("answered, unfolded")
        await page.say("fail")
        await expect(page.locator("#log .notice")).to_have_count(1)
        await page.say("and a tool that fails")
        await expect(page.answers).to_have_count(2)
        await looker.look("failed")
        await page.get_by_role("button", name="Edit and ask again").last.click()
        await looker.look("editing")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Why this answer").last.click()
        await expect(page.locator("#why")).to_be_visible()
        await looker.look("why")
        await page.goto(site.url)
        await expect(page.answers).to_have_count(2)
        if options is PHONE:
            await page.get_by_role("button", name="Conversations").click()
        await looker.look("list")
        await page.locator("#find").fill("sh")
        await expect(page.locator("#found")).to_contain_text("found")
        await looker.look("found")
        await page.locator("#mine li").first.hover()
        await page.get_by_role("button", name="Rename").first.click()
        await looker.look("renaming")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Delete").first.click()
        await looker.look("deleting")
        assert looker.found == []


async def test_a_finger_hits_everything_in_the_chat(run_site, open_page, complaints):
    till = Till()
    async with run_site(cashier({"to": "Anna", "amount": 5}), tools=till.tools) as site:
        page = await open_page(site.url, **PHONE)
        small: list[str] = []
        small += await page.evaluate(SMALL_TARGETS)
        await page.locator("#files").set_input_files([{"name": "a.txt", "mimeType": "text/plain", "buffer": b"words"}])
        small += await page.evaluate(SMALL_TARGETS)
        await page.say("pay them")
        await expect(page.locator("#log .choices button").first).to_be_visible()
        small += await page.evaluate(SMALL_TARGETS)
        await page.get_by_role("button", name="Allow").click()
        await expect(page.answers).to_have_count(1)
        await expect(page.locator(".call")).to_have_count(1)
        small += await page.evaluate(SMALL_TARGETS)
        await page.get_by_role("button", name="Conversations").click()
        await expect(page.locator("#mine a")).to_have_count(1)
        small += await page.evaluate(SMALL_TARGETS)
        assert small == []


@SIZES
async def test_axe_finds_nothing_in_the_inspector(run_site, open_page, complaints, options):
    script = [*CALLS, MARKDOWN, LLMError("no such key", is_transient=False)]
    async with run_site(script, tools=[add]) as site:
        page = await open_page(site.url, reduced_motion="reduce", **options)
        looker = Looker(page)
        await page.say("Show me")
        await expect(page.answers).to_have_count(1)
        await page.say("fail")
        await expect(page.locator("#log .notice")).to_have_count(1)
        for address in INSPECTOR:
            await looker.look_at(site.url + address)
        complaints.clear()  # of pages that do not exist
        assert looker.found == []


@SIZES
async def test_axe_finds_nothing_where_a_call_waits_and_was_decided(run_site, open_page, options):
    till = Till()
    async with run_site(cashier({"to": "Anna", "amount": 5}, {"to": "Ben", "amount": 7}), tools=till.tools) as site:
        page = await open_page(site.url, reduced_motion="reduce", **options)
        looker, other = Looker(page), Looker(await page.open_tab(site.url))
        await page.say("pay them")
        await expect(page.locator("#log .choices button").first).to_be_visible()
        await looker.look("asked")
        await other.look_at(f"{site.url}/inspect/1/1")
        await page.get_by_role("button", name="Deny").first.click()
        await expect(page.get_by_text("Denied for")).to_be_visible()
        await looker.look("decided")
        assert looker.found + other.found == []


@SIZES
async def test_axe_finds_nothing_on_the_pages_at_the_door(run_site, open_page, complaints, options):
    async with run_site(**SITE) as site:
        page = await open_page(f"{site.url}/web/login", reduced_motion="reduce", **options)
        looker = Looker(page)
        await looker.look("log in")
        await page.get_by_label("token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_be_visible()
        await looker.look("wrong token")
        for address in (await link(site), f"/web/link/{9:043}", "/web/link", "/nowhere"):
            await looker.look_at(site.url + address)
        notice = write_notice("Installed", "The bot is in.", way=("Open Slack", "https://example.com"))
        await page.route("**/notice", lambda route: route.fulfill(body=notice, headers=notice_headers()))
        await looker.look_at(f"{site.url}/notice")
        complaints.clear()  # of the refusals
        assert looker.found == []
