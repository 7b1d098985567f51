"""Talking, in a real Chromium."""

import asyncio
import base64

import pytest

from botservice import Button, LLMError, ToolCall, progress, tool

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_a_message_is_answered_as_it_is_written_and_a_reload_keeps_it(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await expect(page.get_by_role("heading", name="Hello.")).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await page.say("Tell me a story")
        await expect(page.questions).to_contain_text("Tell me a story")
        await expect(page.get_by_role("status")).to_have_text("Thinking…")
        typist.write("Once ", "upon ", "**a** ")
        await expect(page.locator("#draft")).to_contain_text("Once upon a")
        await expect(page.get_by_role("status")).to_have_text("Writing…")
        await expect(page.answers).to_have_count(0)
        typist.write("time", None)
        await expect(page.answers).to_contain_text("Once upon a time")
        await expect(page.answers.locator("strong")).to_have_text("a")
        await expect(page.locator("#draft")).to_be_hidden()
        await expect(page.get_by_role("status")).to_have_text("")
        await expect(page.locator("#waiting li")).to_have_count(0)
        await page.reload()
        await expect(page.get_by_role("log").get_by_role("listitem")).to_have_count(2)
        await expect(page.answers).to_contain_text("Once upon a time")
        await expect(page.get_by_role("heading", name="Hello.")).to_be_hidden()


async def test_pressing_a_button_says_what_stands_behind_it_once(run_site, open_page):
    @tool(is_final=True)
    async def offer() -> list:
        """Offer a choice."""
        return ["Which size?", Button("Small"), Button("Large", value="size L"), Button("All", url="https://x.org")]

    async with run_site([ToolCall("", "offer", {}), "Large it is."], tools=[offer]) as site:
        page = await open_page(site.url)
        await page.say("choose")
        await expect(page.get_by_role("link", name="All")).to_have_attribute("href", "https://x.org")
        await page.get_by_role("button", name="Large").click()
        await expect(page.questions.last).to_contain_text("size L")
        await expect(page.answers.last).to_contain_text("Large it is.")
        await expect(page.get_by_role("button", name="Small")).to_be_disabled()


async def test_a_stop_ends_the_answer_and_keeps_what_was_written(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await page.say("Count")
        typist.write("one, two")
        await expect(page.locator("#draft")).to_contain_text("one, two")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.answers).to_contain_text("one, two")
        await expect(page.get_by_role("status")).to_have_text("Stopped.")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()


@pytest.mark.parametrize("how", ["Escape", "/stop"])
async def test_an_answer_is_stopped_from_the_keyboard(run_site, typist, open_page, how):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await page.say("Count")
        typist.write("one, two")
        await expect(page.locator("#draft")).to_contain_text("one, two")
        if how == "Escape":
            await page.keyboard.press("Escape")
        else:
            await page.say("/stop")
        await expect(page.answers).to_contain_text("one, two")
        await expect(page.get_by_role("status")).to_have_text("Stopped.")
        await expect(page.questions).to_have_count(1)
        await expect(page.locator("#text")).to_be_focused()


async def test_a_command_that_nobody_knows_is_answered_and_leaves_nothing_that_waits(run_site, open_page):
    async with run_site(["never"]) as site:
        page = await open_page(site.url)
        await page.say("/memoryy")
        await expect(page.get_by_text("Did you mean /memory?")).to_be_visible()
        await expect(page.get_by_text("Waiting…")).to_have_count(0)


async def test_a_tool_that_runs_is_named_with_what_it_says(run_site, open_page, tmp_path):
    is_free = asyncio.Event()

    @tool
    async def look_up(word: str) -> str:
        """Look a word up."""
        progress("<b>page 3</b> of 10, " + "and more of it " * 20)
        await is_free.wait()
        return "a word"

    async with run_site([ToolCall("", "look_up", {"word": "x"}), "It is a word."], tools=[look_up]) as site:
        page = await open_page(site.url)
        await page.say("what is x?")
        await expect(page.get_by_role("status")).to_have_text("Using look_up…")
        await expect(page.locator("#draft .call .said")).to_contain_text("<b>page 3</b> of 10")
        for width in (390, 1200):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await expect(page.get_by_role("button", name="Stop")).to_be_in_viewport(ratio=1)
            await page.screenshot(path=tmp_path / f"{width}.png")
        is_free.set()
        await expect(page.answers).to_contain_text("It is a word.")
        await expect(page.locator("#draft .call")).to_have_count(0)


async def test_an_apology_is_shown_and_the_chat_goes_on(run_site, open_page):
    async with run_site([LLMError("broken", is_transient=False), "better"]) as site:
        page = await open_page(site.url)
        await page.say("hello")
        await expect(page.locator("#log .notice")).to_contain_text("Sorry, I could not answer this")
        await expect(page.get_by_role("status")).to_have_text("")
        await page.say("again")
        await expect(page.answers).to_contain_text("better")
        await page.reload()
        await expect(page.locator("#log > li")).to_have_count(4)
        assert "notice trouble" in str(await page.locator("#log > li").nth(1).get_attribute("class"))


async def test_a_command_stands_above_its_answer_which_is_no_trouble(run_site, open_page):
    async with run_site([]) as site:
        page = await open_page(site.url)
        await page.say("/help")
        for is_loaded_again in (False, True):
            if is_loaded_again:
                await page.reload()
            await expect(page.locator("#log .notice .asked")).to_have_text("/help")
            await expect(page.locator("#log .notice .body")).to_contain_text("What I can do")
            await expect(page.locator("#log .trouble")).to_have_count(0)
            await expect(page.locator("#waiting > li")).to_have_count(0)


async def test_the_keyboard_is_enough(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        text = page.get_by_role("textbox", name="Message")
        await expect(text).to_be_focused()
        await page.keyboard.type("one")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("two")
        await page.keyboard.press("Enter")
        await expect(page.questions.locator(".body")).to_have_text("one\ntwo")
        await expect(text).to_have_value("")
        await expect(text).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.answers).to_have_count(1)
        await expect(page.questions).to_have_count(1)
        names = []
        await page.locator(".skip").focus()
        for _ in range(12):
            names.append(await page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
            await page.keyboard.press("Tab")
        assert names[:3] == ["Skip to the message field", "Inspector", "New chat"]
        assert "text" in names


async def test_images_are_sent_by_file_and_by_paste(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await page.get_by_label("Add files").set_input_files(
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
        await page.say("what is this?")
        image = page.questions.get_by_role("img", name="pasted.png")
        await expect(image).to_be_visible()
        assert await image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
        await expect(page.answers).to_have_count(1)


async def test_a_text_that_is_too_long_is_kept_and_the_reason_is_said(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await page.say("x" * 100_001)
        await expect(page.get_by_role("alert")).to_contain_text("100,001 characters")
        assert len(await page.get_by_role("textbox", name="Message").input_value()) == 100_001
        await page.reload()
        assert len(await page.get_by_role("textbox", name="Message").input_value()) == 100_001
        await page.say("short")
        await expect(page.answers).to_have_count(1)
        await expect(page.get_by_role("alert")).to_be_hidden()
