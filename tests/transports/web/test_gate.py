"""The gate, on real wires: who is let in, what is said to the others, and what stands in every answer."""

from itertools import product

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from botservice.telemetry.logs import register_secret

TOKEN = "a-long-admin-token"
PAGE = {"Accept": "text/html,*/*"}
JSON = {"Content-Type": "application/json"}
OWN_PATHS = [
    "/",
    "/inspect",
    "/inspect/1",
    "/inspect/1/1",
    "/inspect/1/1/again",
    "/web/commands",
    "/web/conversations",
    "/web/earlier?before=1",
    "/web/events",
    "/web/files/1/0",
    "/web/why?message=1",
]
POSTS = ["/web/messages", "/web/stop", "/web/new", "/web/conversations/rename", "/web/conversations/delete"]
POSTS += ["/web/feedback"]


async def test_without_a_token_the_pages_are_off_where_others_can_reach_them(run_site):
    async with run_site(host="0.0.0.0") as site:
        visitor = await site.visitor(is_open=False)
        for path in [*OWN_PATHS, "/web/login", "/web/static/chat.js"]:
            response = await visitor.client.get(path, headers=PAGE)
            assert response.status_code == 404, path
        assert "Set ADMIN_TOKEN to turn it on." in (await visitor.client.get("/", headers=PAGE)).text
        assert (await visitor.client.get("/")).text == "This page is off. Set ADMIN_TOKEN to turn it on.\n"
        for path in [*POSTS, "/web/login"]:
            assert (await visitor.client.post(path, content=b"{}", headers=JSON)).status_code == 404
        assert await site.count_events() == 0


async def test_without_a_token_only_this_machine_itself_is_answered(site):
    visitor = await site.visitor()
    assert (await visitor.say("hello")).status_code == 202
    for headers in (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
    ):
        for path in OWN_PATHS:
            response = await visitor.client.get(path, headers={**PAGE, **headers})
            assert response.status_code == 403, (path, headers)
            assert "set-cookie" not in response.headers
        for path in POSTS:
            refused = await visitor.post(path, {"id": "message-9", "text": "hello"}, **headers)
            assert refused.status_code == 403, (path, headers)
    assert await site.count_events() == 1


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


async def test_what_another_sites_page_posts_is_refused_and_not_stored(site):
    visitor = await site.visitor()
    for path, headers in product(POSTS, FOREIGN):
        response = await visitor.post(path, {"id": "message-1", "text": "hello"}, **headers)
        assert response.status_code == 403, (path, headers)
        assert "set-cookie" not in response.headers
        assert response.json() == {"error": "This request came from another site, so nothing was done."}
    assert await site.count_events() == 0


async def test_what_the_own_page_and_programs_post_is_taken(site):
    visitor = await site.visitor()
    for number, headers in enumerate([{"Origin": site.url, "Sec-Fetch-Site": "same-origin"}, {"Origin": site.url}, {}]):
        response = await visitor.post("/web/messages", {"id": f"message-{number}", "text": "hello"}, **headers)
        assert response.status_code == 202
    assert await site.count_events() == 3


async def test_a_form_of_another_site_cannot_post_a_message(site):
    visitor = await site.visitor()
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        response = await visitor.client.post(
            "/web/messages", content=b'{"id":"message-1","text":"hello"}', headers={"Content-Type": media_type}
        )
        assert response.status_code == 415
    assert await site.count_events() == 0


async def test_with_a_token_everything_asks_for_it(run_site):
    async with run_site(host="0.0.0.0", admin_token=TOKEN) as site:
        visitor = await site.visitor(is_open=False)
        for path in OWN_PATHS:
            response = await visitor.client.get(path, headers=PAGE)
            assert response.status_code == 401, path
            assert response.headers["www-authenticate"] == 'Bearer realm="botservice"'
            assert "set-cookie" not in response.headers
        assert 'type="password"' in (await visitor.client.get("/inspect", headers=PAGE)).text
        for path in POSTS:
            assert (await visitor.post(path, {"id": "message-1", "text": "hello"})).status_code == 401
        assert await site.count_events() == 0


async def test_who_logs_in_gets_a_cookie_that_opens_everything(run_site):
    async with run_site(host="0.0.0.0", admin_token=TOKEN) as site:
        visitor = await site.visitor(is_open=False)
        wrong = await visitor.client.post("/web/login", data={"token": "guess", "next": "/inspect"}, headers=PAGE)
        assert wrong.status_code == 401
        assert "That is not the token." in wrong.text
        right = await visitor.client.post("/web/login", data={"token": f" {TOKEN} ", "next": "/inspect"}, headers=PAGE)
        assert (right.status_code, right.headers["location"]) == (303, "/inspect")
        cookie = right.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Secure" not in cookie
        assert TOKEN not in cookie
        assert (await visitor.client.get("/inspect", headers=PAGE)).status_code == 200
        page = await visitor.open()
        assert "Log out" in page.text
        assert TOKEN not in page.text
        assert (await visitor.say("hello")).status_code == 202
        async with visitor.events() as events:
            await events.until_answered()
        assert (await visitor.client.get("/web/login", headers=PAGE)).status_code == 303
        assert (await visitor.client.post("/web/logout")).status_code == 303
        assert (await visitor.open()).status_code == 401


async def test_the_token_as_a_bearer_opens_everything(run_site):
    async with run_site(host="0.0.0.0", admin_token=TOKEN) as site:
        visitor = await site.visitor(headers={"Authorization": f"Bearer {TOKEN}"})
        assert (await visitor.say("hello")).status_code == 202
        assert (await visitor.client.get("/inspect")).status_code == 200


async def test_another_sites_page_cannot_log_anybody_in_or_out(run_site):
    async with run_site(host="0.0.0.0", admin_token=TOKEN) as site:
        visitor = await site.visitor(is_open=False)
        foreign = {"Origin": "http://evil.example", **PAGE}
        assert (await visitor.client.post("/web/login", data={"token": TOKEN}, headers=foreign)).status_code == 403
        assert (await visitor.client.post("/web/login", data={"token": TOKEN})).status_code == 303
        assert (await visitor.client.post("/web/logout", headers=foreign)).status_code == 403
        assert (await visitor.open()).status_code == 200


async def test_a_login_leads_to_no_other_site(run_site):
    async with run_site(host="0.0.0.0", admin_token=TOKEN) as site:
        for target in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "x"):
            visitor = await site.visitor(is_open=False)
            response = await visitor.client.post("/web/login", data={"token": TOKEN, "next": target})
            assert response.headers["location"] == "/", target


async def test_cookies_are_secure_behind_https(run_site):
    async with run_site(public_url="https://bot.example", admin_token=TOKEN) as site:
        visitor = await site.visitor(is_open=False)
        headers = {"Host": "bot.example", "Origin": "https://bot.example"}
        response = await visitor.client.post("/web/login", data={"token": TOKEN}, headers=headers)
        assert "; Secure" in response.headers["set-cookie"]
        bearer = {"Host": "bot.example", "Authorization": f"Bearer {TOKEN}"}
        assert "; Secure" in (await visitor.client.get("/", headers=bearer)).headers["set-cookie"]


async def test_a_login_form_of_a_megabyte_does_no_harm(run_site):
    async with run_site(host="0.0.0.0", admin_token=TOKEN) as site:
        visitor = await site.visitor(is_open=False)
        assert (await visitor.client.post("/web/login", data={"token": "x" * 1_000_000})).status_code == 413
        assert (await visitor.client.post("/web/login", content=b"\xff\x00%zz=&&&token")).status_code == 401


async def test_every_answer_keeps_browsers_strict(run_site):
    async def crash(_: Request) -> Response:
        raise RuntimeError("do not show this")

    async with run_site(routes=[Route("/crash", crash)]) as site:
        visitor = await site.visitor()
        paths = ["/", "/inspect", "/nothing", "/web/earlier?before=x", "/web/static/nothing.js", "/crash", "/web/stop"]
        for path in [*paths, "/web/static/chat.js"]:
            response = await visitor.client.get(path, headers=PAGE)
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy, path
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["x-frame-options"] == "DENY"
            if "static/chat.js" not in path:
                assert response.headers["cache-control"] == "no-store", path


async def test_pages_hold_no_script_and_no_style_of_their_own(site):
    visitor = await site.visitor()
    for path in ("/", "/inspect", "/nothing"):
        html = (await visitor.client.get(path, headers=PAGE)).text
        assert "<style" not in html
        assert " style=" not in html
        assert " onclick" not in html
        assert "</script>" not in html.replace(".js?v=", "").replace("></script>", "")
        assert "http://" not in html
        assert "https://" not in html


@pytest.mark.parametrize("accept", ["text/html", "*/*"])
async def test_errors_are_said_in_plain_words(run_site, accept, caplog):
    secret = "sk-very-secret-value"
    register_secret(secret)

    async def crash(_: Request) -> Response:
        raise RuntimeError(secret)

    async def teapot(_: Request) -> Response:
        raise HTTPException(418, detail=secret)

    routes = [Route("/crash", crash), Route("/teapot", teapot)]
    async with run_site(routes=routes) as site:
        visitor = await site.visitor()
        headers = {"Accept": accept}
        missing = await visitor.client.get("/nothing", headers=headers)
        assert (missing.status_code, "There is nothing at this address." in missing.text) == (404, True)
        wrong = await visitor.client.put("/", headers=headers)
        assert (wrong.status_code, "does not take that kind of request" in wrong.text) == (405, True)
        assert "GET" in wrong.headers["allow"]
        crashed = await visitor.client.get("/crash", headers=headers)
        assert (crashed.status_code, "Something went wrong on this side" in crashed.text) == (500, True)
        assert (await visitor.client.get("/teapot", headers=headers)).status_code == 418
        for response in (missing, wrong, crashed):
            assert "Traceback" not in response.text
            assert secret not in response.text
            assert response.headers["content-type"].startswith("text/html" if accept == "text/html" else "text/plain")


async def test_assets_are_kept_for_as_long_as_they_do_not_change(site):
    visitor = await site.visitor()
    page = (await visitor.open()).text
    address = page.partition('src="')[2].partition('"')[0]
    asset = await visitor.client.get(address)
    assert asset.status_code == 200
    assert "immutable" in asset.headers["cache-control"]
    assert asset.headers["content-type"] == "text/javascript; charset=utf-8"
    assert (await visitor.client.get(address + "0")).headers["cache-control"] == "no-cache"
    for name in ("nothing.js", "..%2Fapp.py", "%2e%2e/app.py"):
        assert (await visitor.client.get(f"/web/static/{name}")).status_code == 404
