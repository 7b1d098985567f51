"""What a person does at messages and in the message field, in a real Chromium."""

from typing import Any

import pytest

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DROP = """([selector, files]) => {
    const transfer = new DataTransfer();
    for (const [name, type, text, times] of files) transfer.items.add(new File([text.repeat(times)], name, {type}));
    const options = {dataTransfer: transfer, bubbles: true, cancelable: true};
    const target = document.querySelector(selector);
    for (const name of ["dragover", "drop"]) target.dispatchEvent(new DragEvent(name, options));
}"""


async def test_an_answer_is_asked_again_in_its_place(run_site, open_page):
    async with run_site(["one", "two", "three"]) as site:
        page = await open_page(site.url)
        await page.say("hello")
        await expect(page.answers).to_contain_text(["one"])
        await page.say("hello again")
        await expect(page.answers).to_contain_text(["one", "two"])
        await expect(page.get_by_role("button", name="Ask again", exact=True)).to_have_count(1)
        await page.get_by_role("button", name="Ask again", exact=True).click()
        await expect(page.answers).to_contain_text(["one", "three"])
        await expect(page.questions).to_contain_text(["hello", "hello again"])
        tab = await page.open_tab(site.url)
        for each in (page, tab):
            await expect(each.answers).to_have_count(2)
            await expect(each.locator("#log > li")).to_have_count(4)


async def test_the_last_question_is_edited_in_its_place_and_an_earlier_one_asked_once_more(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        for number, text in enumerate(("one", "two"), 1):
            await page.say(text)
            await expect(page.answers).to_have_count(number)
        edits = page.get_by_role("button", name="Edit and ask again")
        await edits.last.click()
        field = page.locator("#text")
        await expect(field).to_have_value("two")
        await expect(field).to_be_focused()
        await expect(page.locator("#editing")).to_contain_text("Its answer will be made again.")
        await field.fill("three")
        await page.keyboard.press("Enter")
        await expect(page.answers).to_contain_text(["You said: one", "You said: three"])
        await expect(page.questions).to_contain_text(["one", "three"])
        await expect(page.locator("#log > li")).to_have_count(4)
        await expect(page.locator("#editing")).to_be_hidden()
        await page.questions.first.hover()
        await edits.first.click()
        await expect(page.locator("#editing")).to_contain_text("It will be asked once more, below.")
        await page.keyboard.press("Escape")
        await expect(field).to_have_value("")
        await expect(page.locator("#editing")).to_be_hidden()
        await page.questions.first.hover()
        await edits.first.click()
        await field.fill("one and a half")
        await page.keyboard.press("Enter")
        await expect(page.answers).to_contain_text(["You said: one", "You said: three", "You said: one and a half"])


async def test_thumbs_stay_pressed_and_why_leads_to_the_inspector(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await page.say("hello")
        good, bad = page.get_by_role("button", name="Good answer"), page.get_by_role("button", name="Bad answer")
        await good.click()
        await expect(good).to_have_attribute("aria-pressed", "true")
        await expect(page.locator("#said")).to_have_text("Thank you.")
        await bad.click()
        await expect(good).to_have_attribute("aria-pressed", "false")
        await expect(page.locator("#said")).to_have_text("Thank you.")
        await page.reload()
        await expect(bad).to_have_attribute("aria-pressed", "true")
        await bad.click()
        await expect(page.locator("#said")).to_have_text("Taken back.")
        await page.reload()
        await expect(bad).to_have_attribute("aria-pressed", "false")
        why = page.get_by_role("button", name="Why this answer")
        await why.click()
        dialog = page.get_by_role("dialog", name="Why this answer")
        await expect(dialog).to_contain_text("This answer (to “hello”) is based on:")
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await expect(why).to_be_focused()
        await why.press("Enter")
        await dialog.get_by_role("link", name="Open in the inspector").click()
        await expect(page.get_by_text("hello").first).to_be_visible()
        assert "/inspect/" in page.url


async def test_actions_are_one_stop_of_the_tab_key_and_the_arrows_go_on_at_earlier_answers_too(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        await page.say("hello")
        bar = page.get_by_role("toolbar", name="What you can do with this answer")
        await bar.get_by_role("button").first.focus()
        seen = []
        for _ in range(6):
            seen.append(await page.evaluate("document.activeElement.getAttribute('aria-label')"))
            await page.keyboard.press("ArrowRight")
        assert seen == ["Copy", "Ask again", "Good answer", "Bad answer", "Why this answer", "Why this answer"]
        await page.keyboard.press("Tab")
        await expect(page.locator("#text")).to_be_focused()
        await page.keyboard.press("Shift+Tab")
        await expect(bar.get_by_role("button", name="Why this answer")).to_be_focused()
        bar = page.answers.first.get_by_role("toolbar")
        await bar.get_by_role("button", name="Copy").press("ArrowRight")
        await expect(bar.get_by_role("button", name="Ask again")).to_be_focused()
        await page.say("and hello")  # then nobody can ask that one again
        await expect(page.answers).to_have_count(2)
        await expect(bar.get_by_role("button", name="Ask again")).to_be_hidden()
        await expect(bar.locator("[tabindex='0']")).to_be_visible()


async def test_commands_are_completed_with_the_keyboard(run_site, open_page):
    async with run_site([]) as site:
        page = await open_page(site.url)
        field = page.locator("#text")
        await field.press_sequentially("/etc/passwd is a file")  # a path is not taken for a command
        await expect(page.get_by_role("listbox")).to_have_count(0)
        await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
        await field.fill("")
        await field.press_sequentially("/")
        box = page.get_by_role("textbox", name="Message")
        await expect(box).to_have_attribute("aria-controls", "completions")
        options = page.get_by_role("listbox", name="Commands").get_by_role("option")
        count = await options.count()
        assert count > 8
        await page.keyboard.press("ArrowUp")
        await expect(options.last).to_have_attribute("aria-selected", "true")
        await expect(box).to_have_attribute("aria-activedescendant", f"completion-{count - 1}")
        await field.press_sequentially("he")
        await expect(options).to_contain_text(["/help"])
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("textbox", name="Message")).to_have_value("/he")
        await expect(page.get_by_role("listbox")).to_have_count(0)
        await field.press_sequentially("l")
        await expect(options).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(field).to_have_value("/help ")
        await expect(page.get_by_role("listbox")).to_have_count(0)
        await page.keyboard.press("Enter")
        await expect(page.locator("#log .notice")).to_contain_text("Show what I can do")
        await page.keyboard.type("/help")
        await expect(options).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(page.locator("#log .notice")).to_have_count(2)


async def test_commands_are_completed_by_touch(run_site, open_page):
    async with run_site([]) as site:
        page = await open_page(site.url, **PHONE)
        await page.locator("#text").tap()
        await page.locator("#text").press_sequentially("/mem")
        await page.get_by_role("option", name="/memory").tap()
        await expect(page.locator("#text")).to_have_value("/memory ")
        await expect(page.locator("#text")).to_be_focused()


async def test_files_are_dropped_anywhere_and_an_edited_question_keeps_them(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        assert await page.locator(".attach").get_attribute("title") == "Add files: at most 10, 10 MB together"
        await page.evaluate(DROP, ["main", [["plan.txt", "text/plain", "go north", 1], ["x.bin", "", "\x00", 1]]])
        await expect(page.locator("#previews li")).to_have_count(2)
        await expect(page.locator("#limits")).to_have_text("At most 10 files, 10 MB together")
        await page.get_by_role("button", name="Remove x.bin").click()
        await page.say("what is the plan?")
        await expect(page.answers).to_contain_text(["go north"])
        await expect(page.questions.get_by_role("link", name="plan.txt")).to_be_visible()
        await expect(page.questions.locator(".body")).to_have_text("what is the plan?")
        await expect(page.locator("#limits")).to_be_hidden()
        await page.get_by_role("button", name="Edit and ask again").click()
        await expect(page.locator("#previews")).to_contain_text("plan.txt")
        await page.locator("#text").fill("and now?")
        await page.keyboard.press("Enter")
        await expect(page.answers).to_contain_text(["You said: and now?"])
        await expect(page.answers).to_contain_text(["go north"])
        await expect(page.questions).to_have_count(1)
        await expect(page.questions.get_by_role("link", name="plan.txt")).to_be_visible()


async def test_what_does_not_fit_is_named_and_the_rest_stays(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        name = "<img src=x onerror=alert(1)>.txt"
        large, empty = ["big.zip", "application/zip", "x", 10_000_000], ["empty.txt", "text/plain", "x", 0]
        await page.evaluate(DROP, ["main", [[name, "text/plain", "x", 1], large, empty]])
        said = "big.zip has 10.0 MB: files may have 10 MB together. empty.txt is empty, or a folder."
        await expect(page.get_by_role("alert")).to_have_text(said)
        await expect(page.locator("#previews li")).to_have_count(1)
        await expect(page.locator("#previews")).to_contain_text(name)
        ten = [{"name": name, "mimeType": "text/plain", "buffer": b"x"}] * 10
        await page.get_by_label("Add files").set_input_files(ten)
        await expect(page.get_by_role("alert")).to_contain_text("is one too many: at most 10 files")
        await page.say("")
        await expect(page.answers).to_have_count(1)
        await expect(page.questions.get_by_role("link", name=name)).to_have_count(10)
