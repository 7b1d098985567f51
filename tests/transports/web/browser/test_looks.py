"""Every page at the width of a phone and of a desk, light and dark, in a real Chromium."""

from typing import Any

import pytest
from looks import CONTRASTS, DESKTOP, PHONE
from people.browsing import SITE, TOKEN
from standins.tools import add

from botservice import ToolCall

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")
MARKDOWN = """# Plan

Text with `code`, a [link](https://example.com) and a_very_long_word_""" + "x" * 200 + """

```python
def greet(name): return f"a line of code that is so much longer than any phone is wide, hello {name}, how are you?"
```

| city | temperature | humidity | wind | pressure | clouds | sunrise | sunset | a longer heading |
|---|--:|:-:|---|---|---|---|---|---|
| Oslo | 3 | 80 % | 5 m/s | 1013 hPa | many | 07:00 | 17:00 | something |
"""  # fmt: skip


CALL = ToolCall("", "add", {"a": 2, "b": 3})
CHAT = "/"
INSPECTOR = (
    "/inspect",
    "/inspect?view=turns&state=all&person=",
    "/inspect/1",
    "/inspect/1/1",
    "/inspect/charts?range=day",
)


@pytest.mark.parametrize("options", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_every_page_fits_and_can_be_read_light_and_dark(run_site, open_page, options):
    async with run_site([CALL, MARKDOWN + "x" * 300, "short"], tools=[add]) as site:
        page = await open_page(site.url, reduced_motion="reduce", **options)  # colours change at once
        await page.say("Show me " + "y" * 300)
        await expect(page.answers).to_have_count(1)
        for address in (CHAT, *INSPECTOR):
            await page.goto(site.url + address)
            if address == CHAT:
                await expect(page.answers).to_have_count(1)
                await expect(page.get_by_role("textbox", name="Message")).to_be_in_viewport()
                block = page.locator(".code pre").first
                assert await block.evaluate("each => getComputedStyle(each).overflowX") == "auto"
                if options is PHONE:
                    assert await block.evaluate("each => each.scrollWidth > each.clientWidth")
                assert await page.evaluate("document.getElementById('scroll').scrollWidth <= innerWidth")
            await expect_readable(page, address)
            if address != CHAT:
                await page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
                await expect_readable(page, f"{address}, unfolded")


async def test_on_a_phone_the_bots_name_has_its_room_beside_everything_that_can_be_pressed(run_site, open_page):
    async with run_site(**SITE) as site:
        page = await open_page(f"{site.url}/web/login", **PHONE)
        await page.get_by_label("token").fill(TOKEN)
        await page.keyboard.press("Enter")
        for role, name in (("link", "Inspector"), ("button", "Log out"), ("button", "New chat")):
            await expect(page.get_by_role(role, name=name)).to_be_visible()
        title = page.get_by_role("heading", name="botservice")
        assert await title.evaluate("each => each.scrollWidth <= each.clientWidth")


@pytest.mark.parametrize("options", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_a_task_within_a_task_stands_further_in(run_site, open_page, options):
    async with run_site(["- [ ] pack\n    - [ ] socks\n- [ ] go"]) as site:
        page = await open_page(site.url, **options)
        await page.say("What is to do?")
        await expect(page.answers).to_have_count(1)
        boxes = await page.locator(".task > input").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect().x)"
        )
    assert boxes[0] == boxes[2] < boxes[1]


async def expect_readable(page: Any, what: str) -> None:
    """Expect that a page is no wider than its window, and that its words stand out, light and dark."""
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), what
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        contrasts = await page.evaluate(CONTRASTS)
        assert contrasts, what
        assert min(contrasts.values()) >= 4.5, (what, scheme, contrasts)
        background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        red = int(background.removeprefix("rgb(").split(",")[0])
        assert red > 200 if scheme == "light" else red < 60, (what, scheme)
