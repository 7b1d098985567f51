"""The chat as an app, and as a screen reader has it, in a real Chromium."""

import pytest

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def tree_of(page):
    """Return the roles and names that a screen reader is given, in their order."""
    inspector = await page.context.new_cdp_session(page._page)
    nodes = (await inspector.send("Accessibility.getFullAXTree"))["nodes"]
    shown = [each for each in nodes if not each.get("ignored")]
    return [(each["role"]["value"], each.get("name", {}).get("value", "")) for each in shown]


async def test_the_chat_can_be_installed_and_all_that_can_be_pressed_has_a_name_among_landmarks(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        inspector = await page.context.new_cdp_session(page._page)
        manifest = await inspector.send("Page.getAppManifest")
        assert manifest["errors"] == []
        assert manifest["url"] == f"{site.url}/web/app.webmanifest"
        found = await inspector.send("Page.getInstallabilityErrors")
        # A test's own browser window is a private one, in which nothing is ever installed.
        assert {each["errorId"] for each in found["installabilityErrors"]} <= {"in-incognito"}
        await page.say("hello")
        await expect(page.answers).to_have_count(1)
        await expect(page.locator("#mine li")).to_have_count(1)
        await page.locator("#text").press_sequentially("/he")
        await expect(page.get_by_role("option")).to_have_count(1)
        tree = await tree_of(page)
        pressed = {"button", "link", "textbox", "searchbox", "option", "toolbar", "listbox", "log"}
        assert [each for each in tree if each[0] in pressed and not each[1]] == []
        roles = [role for role, _ in tree]
        assert {"banner", "complementary", "main", "contentinfo", "log", "textbox", "option"} <= set(roles)
        for role, name in (
            ("complementary", "Conversations"),
            ("navigation", "Chat"),
            ("log", "Conversation"),
            ("textbox", "Message"),
            ("button", "Why this answer"),
            ("button", "Rename hello"),
            ("link", "hello"),
        ):
            assert (role, name) in tree, (role, name)
        order = [roles.index(each) for each in ("banner", "complementary", "main", "contentinfo")]
        assert order == sorted(order)
