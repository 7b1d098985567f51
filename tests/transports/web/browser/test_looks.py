"""Every page at the width of a phone and of a desk, light and dark, in a real Chromium."""

from typing import Any

import pytest

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="module")
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
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


# WCAG 2.2, 1.4.3: what every visible text has as its own colour against what lies behind it.
CONTRASTS = """() => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = colour => {
        const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = numbers(colour).map(c => linear(c / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = each => {
        while (each && (numbers(getComputedStyle(each).backgroundColor)[3] ?? 1) === 0) each = each.parentElement;
        return getComputedStyle(each ?? document.body).backgroundColor;
    };
    const found = {};
    for (const each of document.querySelectorAll("body *")) {
        const text = [...each.childNodes].filter(node => node.nodeType === 3).map(node => node.data.trim()).join("");
        if (!text || !each.checkVisibility() || each.closest(".unseen, :disabled")) continue;
        const [one, two] = [light(getComputedStyle(each).color), light(behind(each))];
        found[text.slice(0, 30)] = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    }
    return found;
}"""
