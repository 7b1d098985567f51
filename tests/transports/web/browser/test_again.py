"""Asking a turn again, in a real Chromium."""

import pytest

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_question_is_asked_again_from_the_page_of_its_turn(run_site, open_page):
    async with run_site(["Hello.", "Arr <b>matey</b>!"]) as site:
        page = await open_page(site.url)
        await page.say("Hi")
        await expect(page.answers).to_have_count(1)
        await page.goto(f"{site.url}/inspect/1/1")
        await page.get_by_role("link", name="Try another way").click()
        await page.get_by_label("The agent's prompt").fill("You are a pirate.")
        await page.keyboard.press("Tab")
        await page.get_by_role("button", name="Ask again").press("Enter")
        sides = page.locator("#answers article")
        await expect(sides).to_have_count(2)
        await expect(sides.nth(0)).to_contain_text("Hello.")
        await expect(sides.nth(1)).to_contain_text("Arr <b>matey</b>!")
        await expect(page.get_by_label("The agent's prompt")).to_have_value("You are a pirate.")
        await expect(page.get_by_role("button", name="Ask again")).to_be_enabled()
        await expect(page.locator("[data-live]")).to_have_count(0)  # to follow the address would lose the answers
        assert site.llm.prompts[1][0]["content"] == "You are a pirate."


async def test_the_page_fits_its_window_and_its_button_waits_while_the_model_is_asked(run_site, open_page):
    async with run_site(["x" * 3000, "y " * 2000]) as site:
        page = await open_page(site.url)
        await page.say("Hi")
        await expect(page.answers).to_have_count(1)
        await page.set_viewport_size({"width": 390, "height": 800})
        await page.goto(f"{site.url}/inspect/1/1/again")
        button = page.get_by_role("button", name="Ask again")
        await button.click()
        await expect(page.locator("#answers article")).to_have_count(2)
        for width in (390, 1200):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await page.evaluate(
            "document.forms[0].addEventListener('submit', (event) => event.preventDefault())"
        )  # a browser would wait for the answer before it looks again
        await button.click()
        await expect(button).to_be_disabled()
        await expect(page.locator("form [data-status]")).to_contain_text("The model is asked")
