"""Addresses whose pages are loaded when one is first asked for."""

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from transports.web.app import LateRoutes


async def test_pages_are_found_below_the_path_at_which_a_program_mounts_them():
    async def show(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(request.path_params["number"]))

    late = LateRoutes("/inspect", lambda: [Route("/inspect/{number:int}", show)])
    mounted = httpx.ASGITransport(Starlette(routes=[Mount("/bot", routes=[late])]))
    async with httpx.AsyncClient(transport=mounted, base_url="http://bot.test") as browser:
        found = [await browser.get(path) for path in ("/bot/inspect/7", "/bot/inspected/7", "/inspect/7")]
    assert [(each.status_code, each.text) for each in found] == [(200, "7"), (404, "Not Found"), (404, "Not Found")]
