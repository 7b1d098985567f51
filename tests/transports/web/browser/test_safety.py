"""What people and models write, in a real Chromium."""

import pytest

from botservice import LLMError

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")

ATTACKS = [
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>",
    "<svg onload='window.pwned = 1'></svg><iframe srcdoc='<script>parent.pwned = 1</script>'></iframe>",
    "[click](javascript:window.pwned=1) <a href='javascript:window.pwned=1'>click</a>",
    '[click](https://e.example/"onmouseover="window.pwned=1") ![x" onerror="window.pwned=1](x)',
    "```\n</code></pre><script>window.pwned = 1</script>\n```",
    "| <script>window.pwned=1</script> |\n|---|\n| <img src=x onerror=window.pwned=1> |",
    "</li></ol><style>body { display: none }</style><base href='https://evil.example/'><meta http-equiv=refresh>",
]


async def test_what_people_and_models_write_cannot_do_anything(run_site, open_page):
    async with run_site([*ATTACKS, LLMError(ATTACKS[0], is_transient=False), ATTACKS[0]]) as site:
        page = await open_page(site.url)
        for number, attack in enumerate(ATTACKS, start=1):
            await page.say(attack)
            await expect(page.answers).to_have_count(number)
        await page.say("fail")
        await expect(page.locator("#log .notice")).to_have_count(1)
        name = f"{ATTACKS[0]} Mallory"
        await page.evaluate(
            """name => fetch("/web/messages", {method: "POST", headers: {"Content-Type": "application/json"},
            body: JSON.stringify({id: "attack-0001", text: name, name})})""",
            name[:80],
        )
        await expect(page.answers).to_have_count(len(ATTACKS) + 1)
        for address in ("/", "/inspect", "/inspect/1", "/inspect/1/1", "/inspect/1/8", "/inspect/1/1/again"):
            await page.goto(site.url + address)
            if address == "/":
                await expect(page.answers).to_have_count(len(ATTACKS) + 1)
            assert await page.evaluate("window.pwned") is None
            tags = "main script, main iframe, main style, main base, main svg:not([aria-hidden])"
            foreign = f"{tags}, [onerror], [onload]"
            assert await page.locator(foreign).count() == 0
            assert await page.locator("main a[href^='javascript' i]").count() == 0
            await expect(page.locator("body")).to_be_visible()
            assert not [img for img in await page.locator("main img").all() if await img.get_attribute("src") == "x"]
