"""Every page at the width of a phone and of a desk, light and dark, in a real Chromium."""

import pytest
from looks import CONTRASTS, DESKTOP, PHONE

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


@pytest.mark.parametrize("options", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_fits_and_can_be_read(run_site, open_page, tmp_path, options, scheme):
    async with run_site([MARKDOWN, "short"]) as site:
        page = await open_page(site.url, color_scheme=scheme, **options)
        await page.say("Show me " + "y" * 150)
        await expect(page.answers).to_have_count(1)
        for address in ("/", "/inspect", "/inspect/1", "/inspect/1/1"):
            await page.goto(site.url + address)
            if address == "/":
                await expect(page.answers).to_have_count(1)
                await expect(page.get_by_role("textbox", name="Message")).to_be_in_viewport()
                block = page.locator("pre").first
                assert await block.evaluate("each => getComputedStyle(each).overflowX") == "auto"
                if options is PHONE:
                    assert await block.evaluate("each => each.scrollWidth > each.clientWidth")
                assert await page.evaluate("document.getElementById('scroll').scrollWidth <= innerWidth")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
            await page.screenshot(path=tmp_path / f"{address.replace('/', '_')}.png")
            contrasts = await page.evaluate(CONTRASTS)
            assert contrasts
            assert min(contrasts.values()) >= 4.5, contrasts
            background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            red = int(background.removeprefix("rgb(").split(",")[0])
            assert red > 200 if scheme == "light" else red < 60
