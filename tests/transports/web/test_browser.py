"""The page in a real Chromium, as a person uses it."""

import asyncio
import base64
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from botservice import AgentContext, LLMError, ToolCall, tool
from transports.web.inbound import context_keys

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
TOKEN = "a-long-admin-token"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
_ARGUMENTS += ["--disable-component-update", "--disable-sync"]

OpenPage = Callable[..., Any]


def find_chromium() -> str | None:
    return os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator[Browser]:
    executable = find_chromium()
    if executable is None and os.environ.get("REQUIRE_BROWSER") != "1":
        pytest.skip("Chromium is not installed; REQUIRE_BROWSER=1 makes this a failure")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=executable, args=_ARGUMENTS)
        yield opened
        await opened.close()


@pytest_asyncio.fixture(loop_scope="module")
async def open_page(browser: Browser) -> AsyncIterator[OpenPage]:
    """Opens a page in a browser of its own. Whatever a page complains of fails the test."""
    complaints: list[str] = []
    async with contextlib.AsyncExitStack() as stack:

        async def open_one(url: str, **options: Any) -> Page:
            context = await browser.new_context(**{**DESKTOP, "locale": "en-GB", **options})
            stack.push_async_callback(context.close)
            context.set_default_timeout(10_000)
            page = await context.new_page()
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
            page.on("dialog", lambda dialog: complaints.append(dialog.message))
            await page.goto(url)
            return page

        open_one.complaints = complaints  # type: ignore[attr-defined]  # for the tests that expect some
        yield open_one
    assert complaints == []


async def say(page: Page, text: str) -> None:
    await page.get_by_role("textbox", name="Message").fill(text)
    await page.get_by_role("button", name="Send").click()


def answers(page: Page) -> Any:
    return page.locator("#log .assistant")


def questions(page: Page) -> Any:
    return page.locator("#log .user")


async def test_a_message_is_answered_as_it_is_written_and_a_reload_keeps_it(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await expect(page.get_by_role("heading", name="Hello.")).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await say(page, "Tell me a story")
        await expect(questions(page)).to_contain_text("Tell me a story")
        await expect(page.get_by_role("status")).to_have_text("Thinking…")
        typist.write("Once ", "upon ", "**a** ")
        await expect(page.locator("#draft")).to_contain_text("Once upon **a**")
        await expect(page.get_by_role("status")).to_have_text("Writing…")
        await expect(answers(page)).to_have_count(0)
        typist.write("time", None)
        await expect(answers(page)).to_contain_text("Once upon a time")
        await expect(answers(page).locator("strong")).to_have_text("a")
        await expect(page.locator("#draft")).to_be_hidden()
        await expect(page.get_by_role("status")).to_have_text("")
        await expect(page.locator("#waiting li")).to_have_count(0)
        await page.reload()
        await expect(page.get_by_role("log").get_by_role("listitem")).to_have_count(2)
        await expect(answers(page)).to_contain_text("Once upon a time")
        await expect(page.get_by_role("heading", name="Hello.")).to_be_hidden()


async def test_a_reload_in_the_middle_shows_what_is_written(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await say(page, "Tell me a story")
        typist.write("Once upon ")
        await expect(page.locator("#draft")).to_contain_text("Once upon")
        await page.reload()
        await expect(page.locator("#draft")).to_contain_text("Once upon")
        await expect(questions(page)).to_have_count(1)
        typist.write("a time", None)
        await expect(answers(page)).to_have_count(1)


async def test_two_browsers_do_not_see_each_other(run_site, open_page):
    async with run_site() as site:
        alice, bob = await open_page(site.url), await open_page(site.url)
        await say(alice, "my secret")
        await expect(answers(alice)).to_contain_text("You said: my secret")
        await say(bob, "hello")
        await expect(answers(bob)).to_contain_text("You said: hello")
        await bob.reload()
        await expect(answers(bob)).to_have_count(1)
        assert "my secret" not in await bob.content()


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
            await say(page, attack)
            await expect(answers(page)).to_have_count(number)
        await say(page, "fail")
        await expect(page.locator("#log .notice")).to_have_count(1)
        name = f"{ATTACKS[0]} Mallory"
        await page.evaluate(
            """name => fetch("/web/messages", {method: "POST", headers: {"Content-Type": "application/json"},
            body: JSON.stringify({id: "attack-0001", text: name, name})})""",
            name[:80],
        )
        await expect(answers(page)).to_have_count(len(ATTACKS) + 1)
        for address in ("/", "/inspect", "/inspect/1", "/inspect/1/1", "/inspect/1/8"):
            await page.goto(site.url + address)
            if address == "/":
                await expect(answers(page)).to_have_count(len(ATTACKS) + 1)
            assert await page.evaluate("window.pwned") is None
            assert (
                await page.locator("main script, main iframe, main style, main base, main svg, [onerror]").count() == 0
            )
            assert await page.locator("main a[href^='javascript' i]").count() == 0
            await expect(page.locator("body")).to_be_visible()
            assert not [img for img in await page.locator("main img").all() if await img.get_attribute("src") == "x"]


async def test_a_stop_ends_the_answer_and_keeps_what_was_written(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await say(page, "Count")
        typist.write("one, two")
        await expect(page.locator("#draft")).to_contain_text("one, two")
        await page.get_by_role("button", name="Stop").click()
        await expect(answers(page)).to_contain_text("one, two")
        await expect(page.get_by_role("status")).to_have_text("Stopped.")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()


async def test_a_tool_that_runs_is_named(run_site, open_page):
    is_free = asyncio.Event()

    @tool
    async def look_up(word: str) -> str:
        """Look a word up."""
        await is_free.wait()
        return "a word"

    async with run_site([ToolCall("", "look_up", {"word": "x"}), "It is a word."], tools=[look_up]) as site:
        page = await open_page(site.url)
        await say(page, "what is x?")
        await expect(page.get_by_role("status")).to_have_text("Using look_up…")
        is_free.set()
        await expect(answers(page)).to_contain_text("It is a word.")


async def test_messages_that_are_written_meanwhile_wait_their_turn(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await say(page, "first")
        await expect(questions(page)).to_have_count(1)
        await typist.is_asked.wait()
        await say(page, "second")
        await say(page, "third")
        await expect(page.locator("#waiting li")).to_have_count(2)
        await page.reload()
        await expect(page.locator("#waiting li")).to_have_count(2)
        typist.write("1", None, "2", None, "3", None)
        await expect(answers(page)).to_have_count(3)
        await expect(page.locator("#waiting li")).to_have_count(0)
        texts = await page.locator("#log .body").all_inner_texts()
        assert [text.strip() for text in texts] == ["first", "1", "second", "2", "third", "3"]


async def test_an_apology_is_shown_and_the_chat_goes_on(run_site, open_page):
    async with run_site([LLMError("broken", is_transient=False), "better"]) as site:
        page = await open_page(site.url)
        await say(page, "hello")
        await expect(page.locator("#log .notice")).to_contain_text("Sorry, I could not answer this")
        await expect(page.get_by_role("status")).to_have_text("")
        await say(page, "again")
        await expect(answers(page)).to_contain_text("better")
        await page.reload()
        await expect(page.locator("#log > li")).to_have_count(4)
        assert "notice" in str(await page.locator("#log > li").nth(1).get_attribute("class"))


async def test_the_keyboard_is_enough(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        text = page.get_by_role("textbox", name="Message")
        await expect(text).to_be_focused()
        await page.keyboard.type("one")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("two")
        await page.keyboard.press("Enter")
        await expect(questions(page).locator(".body")).to_have_text("one\ntwo")
        await expect(text).to_have_value("")
        await expect(text).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(answers(page)).to_have_count(1)
        await expect(questions(page)).to_have_count(1)
        names = []
        await page.locator(".skip").focus()
        for _ in range(6):
            names.append(await page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
            await page.keyboard.press("Tab")
        assert names[:3] == ["Skip to the message field", "Inspector", "New chat"]
        assert "text" in names


async def test_images_are_sent_by_file_and_by_paste(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await page.get_by_label("Add images").set_input_files(
            {"name": "dot.png", "mimeType": "image/png", "buffer": PNG}
        )
        await expect(page.get_by_role("img", name="dot.png")).to_be_visible()
        await page.get_by_role("button", name="Remove dot.png").click()
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await page.evaluate(
            """data => {
                const files = new DataTransfer();
                const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
                files.items.add(new File([bytes], "pasted.png", {type: "image/png"}));
                const paste = new ClipboardEvent("paste", {clipboardData: files, bubbles: true, cancelable: true});
                document.getElementById("text").dispatchEvent(paste);
            }""",
            base64.b64encode(PNG).decode(),
        )
        await say(page, "what is this?")
        image = questions(page).get_by_role("img", name="pasted.png")
        await expect(image).to_be_visible()
        assert await image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
        await expect(answers(page)).to_have_count(1)
        await page.get_by_label("Add images").set_input_files(
            {"name": "x.pdf", "mimeType": "application/pdf", "buffer": b"x"}
        )
        await expect(page.get_by_role("alert")).to_have_text("Only PNG, JPEG, GIF and WebP images can be sent.")
        large = {"name": "large.png", "mimeType": "image/png", "buffer": PNG + bytes(5_000_000)}
        await page.get_by_label("Add images").set_input_files(large)
        await expect(page.get_by_role("alert")).to_have_text("Images may have 5 MB together.")


async def test_a_text_that_is_too_long_is_kept_and_the_reason_is_said(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await say(page, "x" * 100_001)
        await expect(page.get_by_role("alert")).to_contain_text("100,001 characters")
        assert len(await page.get_by_role("textbox", name="Message").input_value()) == 100_001
        await page.reload()
        assert len(await page.get_by_role("textbox", name="Message").input_value()) == 100_001
        await say(page, "short")
        await expect(answers(page)).to_have_count(1)
        await expect(page.get_by_role("alert")).to_be_hidden()


async def test_a_lost_connection_is_said_and_nothing_is_lost_or_doubled(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await say(page, "one")
        await expect(answers(page)).to_have_count(1)
        await site.transport.stop()
        await expect(page.get_by_role("status")).to_have_text("No connection. Trying again…")
        await say(page, "two")
        await expect(page.locator("#waiting li")).to_contain_text("Not sent yet. Trying again…")
        await say(page, "three")
        await site.transport.start(site.inbox, site.storage)
        await page.get_by_role("button", name="Try now").click()
        await expect(answers(page)).to_have_count(3)
        texts = await page.locator("#log .body").all_inner_texts()
        said = [text.strip() for text in texts]
        assert said == ["one", "You said: one", "two", "You said: two", "three", "You said: three"]
        await expect(page.get_by_role("status")).to_have_text("")
        expected = [text for text in open_page.complaints if "503" in text or "ERR_" in text]
        assert expected
        open_page.complaints[:] = [text for text in open_page.complaints if text not in expected]


async def test_a_new_chat_is_empty_and_the_other_tab_says_so(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await say(page, "one")
        await expect(answers(page)).to_have_count(1)
        tab = await page.context.new_page()
        await tab.goto(site.url)
        await expect(answers(tab)).to_have_count(1)
        await page.get_by_role("button", name="New chat").click()
        await expect(page.get_by_role("heading", name="Hello.")).to_be_visible()
        await expect(answers(page)).to_have_count(0)
        await say(tab, "two")
        await expect(tab.get_by_role("alert")).to_contain_text("A new chat was begun in another tab.")
        await expect(tab.get_by_role("textbox", name="Message")).to_have_value("two")
        await expect(tab.locator("#waiting li")).to_have_count(0)


async def test_a_long_chat_begins_at_its_end_and_shows_more_on_demand(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        session = await page.evaluate("document.body.dataset.session")
        context = await AgentContext.get_or_create(site.storage, context_keys(session))
        for number in range(120):
            await context.chat_history.append_user_message(f"number {number}")
        await page.reload()
        await expect(questions(page)).to_have_count(100)
        await expect(page.get_by_text("number 119")).to_be_in_viewport()
        await page.locator("#log > li").first.scroll_into_view_if_needed()
        await page.get_by_role("button", name="Show earlier messages").click()
        await expect(questions(page)).to_have_count(120)
        await expect(page.get_by_role("button", name="Show earlier messages")).to_be_hidden()
        await expect(page.get_by_text("number 20", exact=True)).to_be_in_viewport()
        await say(page, "the end")
        await expect(page.get_by_text("You said: the end")).to_be_in_viewport()


async def test_who_reads_further_up_is_not_pulled_down(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await say(page, "tell me")
        typist.write("line\n\n" * 60, None)
        await expect(answers(page)).to_have_count(1)
        await say(page, "more")
        await expect(questions(page)).to_have_count(2)
        await page.evaluate("document.getElementById('scroll').scrollTop = 0")
        await expect(questions(page).first).to_be_in_viewport()
        typist.write("more lines\n\n" * 20, None)
        await expect(answers(page)).to_have_count(2)
        await expect(questions(page).first).to_be_in_viewport()
        await page.get_by_role("button", name="Newest messages").click()
        await expect(page.get_by_text("more lines").last).to_be_in_viewport()


async def test_the_token_opens_the_page_and_logging_out_closes_it(run_site, open_page):
    async with run_site(host="0.0.0.0", admin_token=TOKEN) as site:
        page = await open_page(f"{site.url}/inspect")
        await expect(page.get_by_label("Access token")).to_be_focused()
        await page.get_by_label("Access token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_have_text("That is not the token.")
        await page.get_by_label("Access token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("heading", name="Conversations")).to_be_visible()
        await page.goto(site.url)
        await say(page, "hello")
        await expect(answers(page)).to_have_count(1)
        assert TOKEN not in str(await page.context.cookies())
        assert await page.evaluate("document.cookie") == ""
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("Access token")).to_be_visible()
        expected = [text for text in open_page.complaints if "401" in text]
        open_page.complaints[:] = [text for text in open_page.complaints if text not in expected]


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
        await say(page, "Show me " + "y" * 150)
        await expect(answers(page)).to_have_count(1)
        for address in ("/", "/inspect", "/inspect/1", "/inspect/1/1"):
            await page.goto(site.url + address)
            if address == "/":
                await expect(answers(page)).to_have_count(1)
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
