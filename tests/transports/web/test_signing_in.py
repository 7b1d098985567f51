"""The page to which people return from servers of tools: it says whether they are signed in, and nothing of others."""

from collections.abc import Mapping

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from botservice.core.errors import StorageUnavailable
from transports.web.sign_in_page import sign_in_route

GOOD = "good"


def browser(came: list[Mapping[str, str]] | None = None, *, is_down: bool = False) -> TestClient:
    async def finish(server: str, query: Mapping[str, str]) -> tuple[str | None, str | None, str]:
        if is_down:
            raise StorageUnavailable("no database")
        if came is not None:
            came.append({"server": server, **query})
        return (server if query.get("state") == GOOD else None), "de", "123456"

    return TestClient(Starlette(routes=[sign_in_route("/mcp/callback", finish)]), follow_redirects=False)


def test_who_comes_back_with_their_state_is_told_to_which_server_they_signed_in() -> None:
    came: list[Mapping[str, str]] = []
    answer = browser(came).get("/mcp/callback/wiki", params={"state": GOOD, "code": "a+b", "iss": "https://a.example"})
    assert answer.status_code == 200
    assert "wiki" in answer.text
    assert "123456" in answer.text
    assert came == [{"server": "wiki", "state": GOOD, "code": "a+b", "iss": "https://a.example"}]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "state=guessed&code=1",
        "state=%3Cscript%3Ealert(1)%3C/script%3E&error_description=%3Cimg%20src=x%3E",
        "state=%00%ff%0d%0aLocation:%20https://evil.example&redirect_uri=https://evil.example",
        f"state={GOOD}&code={'a' * 9_000}",
    ],
)
def test_a_stranger_learns_nothing_and_is_led_nowhere(query: str) -> None:
    answer = browser().get(f"/mcp/callback/wiki?{query}")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer", "a code is in the address"
    assert answer.headers["cache-control"] == "no-store"
    assert "location" not in answer.headers
    told = answer.text.partition("<main")[2].partition("</main>")[0]
    assert told.count("<p") == 1
    assert not any(each in answer.text for each in ("<script", "<img", "href", "evil", "guessed", "wiki", "123456"))
    assert GOOD not in told


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_but_a_visit_takes_a_state(method: str) -> None:
    came: list[Mapping[str, str]] = []
    answer = browser(came).request(method, f"/mcp/callback/wiki?state={GOOD}&code=1")
    assert answer.status_code == 405
    assert came == []


def test_where_the_database_is_away_people_are_told_to_come_again() -> None:
    answer = browser(is_down=True).get(f"/mcp/callback/wiki?state={GOOD}&code=1")
    assert answer.status_code == 503
    assert "database" not in answer.text
