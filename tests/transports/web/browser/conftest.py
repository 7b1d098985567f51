"""Pages in a real Chromium. Without one the tests are skipped, unless REQUIRE_BROWSER=1."""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

# Each window would load pages for its address bar, and begin a process for a site that may come. This list takes the
# place of Playwright's own, so that from the second line on it says what that one does.
_OFF = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "SpareRendererForSitePerProcess"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "AimEnabled"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "PreconnectToSearch"),
)
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-site-isolation-trials",
    "--renderer-process-limit=1",
    f"--disable-features={','.join(_OFF)}",
)
_DESKTOP = {"viewport": {"width": 1280, "height": 800}}
_TIMEOUT_MILLISECONDS = 60_000


def find_chromium() -> str | None:
    """Return the Chromium of this machine."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Any]:
    """A browser that all tests of a process share; each opens pages in a context of its own."""
    executable = find_chromium()
    if executable is None and os.environ.get("REQUIRE_BROWSER") != "1":
        pytest.skip("Chromium is not installed; REQUIRE_BROWSER=1 makes this a failure")
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=_TIMEOUT_MILLISECONDS)
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=executable, args=_ARGUMENTS)
        yield opened
        await opened.close()


class Screen:
    """A page, with what a person does on it; everything else is the page's own."""

    def __init__(self, page: Any, complaints: list[str]) -> None:
        self._page = page
        self._complaints = complaints
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(_complaint(message)) if message.type == "error" else None)
        page.on("dialog", lambda dialog: complaints.append(dialog.message))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page, name)

    @property
    def answers(self) -> Any:
        return self._page.locator("#log .assistant")

    @property
    def questions(self) -> Any:
        return self._page.locator("#log .user")

    async def say(self, text: str) -> None:
        """Write a message and send it."""
        await self._page.get_by_role("textbox", name="Message").fill(text)
        await self._page.get_by_role("button", name="Send").click()

    async def open_tab(self, url: str) -> "Screen":
        """Return another page of the same browser."""
        page = await self._page.context.new_page()
        await page.goto(url)
        return Screen(page, self._complaints)


OpenPage = Callable[..., Awaitable[Screen]]


@pytest.fixture
def complaints() -> list[str]:
    """What the pages of a test complain of: errors, refusals by the page's policy, dialogs."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Any, complaints: list[str]) -> AsyncIterator[OpenPage]:
    """Opens a page in a browser of its own. Whatever pages complain of fails the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def open_one(url: str, **options: Any) -> Screen:
            context = await browser.new_context(**{**_DESKTOP, "locale": "en-GB", **options})
            stack.push_async_callback(context.close)
            context.set_default_timeout(_TIMEOUT_MILLISECONDS)
            screen = Screen(await context.new_page(), complaints)
            await screen.goto(url)
            return screen

        yield open_one
    # A page that is still open when its site ends tries to reach it again.
    assert [each for each in complaints if not _is_of_ended_site(each)] == []


def _complaint(message: Any) -> str:
    """Return what a page wrote to its console, with the address that it was about."""
    return f"{message.text} ({message.location.get('url', '')})"


def _is_of_ended_site(complaint: str) -> bool:
    """Return whether a page could not look at its own site again, which had ended."""
    has_ended = "ERR_CONNECTION_REFUSED" in complaint or "503" in complaint
    return has_ended and any(path in complaint for path in ("/web/", "/inspect"))
