"""Pages to which people come from elsewhere, in a real Chromium: they need nothing but themselves."""

import pytest
from looks import DESKTOP, PHONE
from starlette.responses import Response
from starlette.routing import Route

from transports.common.notice_page import notice_headers, write_notice
from transports.web.sign_in_page import sign_in_route

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def finish(server, query):
    return server, "de", "123456"


async def notice(request):
    way = ("Start again", "/slack/install")
    return Response(write_notice("Not installed", "You cancelled in Slack.", way=way), headers=notice_headers())


@pytest.mark.parametrize("options", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_a_notice_has_the_look_of_the_other_pages_though_it_loads_nothing(run_site, open_page, options):
    routes = [sign_in_route("/mcp/callback", finish, "Anna's bot"), Route("/notice", notice)]
    async with run_site(routes=routes) as site:
        page = await open_page(f"{site.url}/mcp/callback/wiki?state=x&code=y", **options)
        await expect(page.get_by_role("heading", name="Anna's bot")).to_be_visible()
        await expect(page.get_by_text("123456")).to_be_visible()
        card = page.locator("main.card")  # its policy lets its style in
        assert await card.evaluate("each => getComputedStyle(each).borderRadius") != "0px"
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.goto(f"{site.url}/notice")
        await expect(page.get_by_role("link", name="Start again")).to_be_visible()
