"""Talking, in a real Chromium."""

import base64

import pytest

from botservice import Button, ToolCall, tool

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_a_message_is_answered_as_it_is_written_and_reloads_keep_it(run_site, typist, open_page):
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
        await page.reload()
        await expect(page.locator("#draft")).to_contain_text("Once upon a")
        await expect(page.questions).to_have_count(1)
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


async def test_a_stop_by_button_key_or_command_ends_the_answer_which_is_kept_and_marked(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        stop = page.get_by_role("button", name="Stop")
        ways = (stop.click, lambda: page.keyboard.press("Escape"), lambda: page.say("/stop"))
        for number, way in enumerate(ways, 1):
            await expect(stop).to_be_hidden()
            await page.say("Count")
            typist.write(f"{number}, two")
            await expect(page.locator("#draft")).to_contain_text(f"{number}, two")
            await way()
            await expect(page.answers).to_have_count(number)
            await expect(page.answers.last).to_contain_text(f"{number}, two")
            await expect(page.answers.last.locator(".mark")).to_contain_text("Stopped")
            await expect(page.get_by_role("status")).to_have_text("Stopped.")
            await expect(page.questions).to_have_count(number)
            await expect(page.locator("#text")).to_be_focused()
        await expect(stop).to_be_hidden()
        retry = page.get_by_role("button", name="Retry")
        await page.reload()
        await expect(page.answers.locator(".mark")).to_contain_text(["Stopped"] * 3)
        await expect(retry).to_be_visible()
        await expect(page.get_by_role("button", name="Ask again", exact=True)).to_have_count(0)
        await page.say("Go on")
        await expect(retry).to_be_hidden()
        typist.write("four", None)
        await expect(page.answers).to_have_count(4)
        await expect(page.answers.locator(".mark")).to_contain_text(["Stopped"] * 3)
        await expect(retry).to_be_hidden()


async def test_a_command_stands_above_its_answer_which_is_neither_trouble_nor_to_be_judged(run_site, open_page):
    async with run_site([]) as site:
        page = await open_page(site.url)
        await page.say("/help")
        for is_loaded_again in (False, True):
            if is_loaded_again:
                await page.reload()
            await expect(page.locator("#log .notice .asked")).to_have_text("/help")
            await expect(page.locator("#log .notice .body")).to_contain_text("Show what I can do")
            await expect(page.locator("#log .trouble")).to_have_count(0)
            await expect(page.locator("#waiting > li")).to_have_count(0)
            await expect(page.get_by_role("toolbar")).to_have_count(0)
        await page.say("/memoryy")  # which nobody knows
        await expect(page.get_by_text("Did you mean /memory?")).to_be_visible()
        await expect(page.get_by_text("Waiting…")).to_have_count(0)


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
        await page.locator(".skip").first.focus()
        for _ in range(12):
            names.append(await page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
            await page.keyboard.press("Tab")
        assert names[:4] == ["Skip to the message field", "Skip to the conversation", "Inspector", "New chat"]
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


async def test_what_cannot_be_seen_is_not_sent(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        field, send = page.get_by_role("textbox", name="Message"), page.get_by_role("button", name="Send")
        await field.fill("\u200b\u2060\ufeff\u3164")
        await expect(send).to_be_disabled()
        await field.press("Enter")
        await expect(page.locator("#waiting li, #log li")).to_have_count(0)
        await field.fill("\u200b👩\u200d🚒")
        await expect(send).to_be_enabled()
        assert await site.count_events() == 0


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
