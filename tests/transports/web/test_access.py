"""Who gets in, decided without a server."""

from typing import Any

import pytest
from starlette.requests import Request

from botservice.config.settings import Settings
from botservice.core.loopback import is_loopback
from transports.web.owner_token import LOGIN_COOKIE, LOGIN_SECONDS, Mode, PageAccess, Verdict

TOKEN = "a-long-admin-token"
OWN = "127.0.0.1:8000"


def request(client: Any = ("127.0.0.1", 50000), **headers: str) -> Request:
    fields = {"host": OWN, **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in fields.items() if value]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": raw, "client": client, "scheme": "http"})


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.10", "::1", "[::1]", "::ffff:127.0.0.1"]
)
def test_this_machine_has_these_names(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "0.0.0.0",
        "::",
        "127.0.0.1.evil.example",
        "127.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "127.1",
        "example.com",
        "xn--localhost",
        "2130706433",
        "0x7f000001",
    ],
)
def test_no_other_name_is_taken_for_this_machine(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("access", "mode"),
    [
        (PageAccess(), Mode.LOCAL),
        (PageAccess(host="::1"), Mode.LOCAL),
        (PageAccess(host="0.0.0.0"), Mode.OFF),
        (PageAccess(host=""), Mode.OFF),
        (PageAccess(public_url="https://bot.example"), Mode.OFF),
        (PageAccess(public_url="http://127.0.0.1:9"), Mode.OFF),
        (PageAccess(admin_token=""), Mode.LOCAL),
        (PageAccess(admin_token=TOKEN), Mode.TOKEN),
        (PageAccess(host="0.0.0.0", admin_token=TOKEN), Mode.TOKEN),
        (PageAccess(public_url="https://bot.example", admin_token=TOKEN), Mode.TOKEN),
    ],
)
def test_the_settings_decide_what_is_asked_for(access, mode):
    assert access.mode is mode


def test_access_is_made_of_the_settings():
    access = PageAccess.of(
        Settings(_env_file=None, host="0.0.0.0", port=80, public_url="https://x.example", admin_token=TOKEN)
    )
    assert access == PageAccess("0.0.0.0", "https://x.example", TOKEN, 80)
    assert TOKEN not in repr(access)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "localhost:8000", "[::1]:8000", "LocalHost:1"])
def test_without_a_token_this_machine_is_let_in(host):
    assert PageAccess().judge(request(host=host)) is Verdict.WELCOME


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "",
        "127.0.0.1:port",
        "192.168.0.2:8000",
        "localhost/evil.example",
        "evil.example#localhost",
        "[::1",
        "localhost:8000:1",
        " localhost",
    ],
)
def test_a_page_that_was_rebound_to_this_machine_is_not_let_in(host):
    assert PageAccess().judge(request(host=host)) is Verdict.FORBIDDEN


def test_two_hosts_are_none():
    asked = request()
    asked.scope["headers"].append((b"host", b"evil.example"))
    assert PageAccess().judge(Request(asked.scope)) is Verdict.FORBIDDEN


@pytest.mark.parametrize(
    "header",
    [
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "X-Forwarded-Proto",
        "x-real-ip",
        "cf-connecting-ip",
        "X-Forwarded",
        "true-client-ip",
        "x-original-host",
    ],
)
def test_what_was_forwarded_is_not_let_in_without_a_token(header):
    assert PageAccess().judge(request(**{header: "127.0.0.1"})) is Verdict.FORBIDDEN
    with_token = PageAccess(admin_token=TOKEN)
    assert with_token.judge(request(**{header: "1.2.3.4", "authorization": f"Bearer {TOKEN}"})) is Verdict.WELCOME


@pytest.mark.parametrize(
    ("client", "verdict"),
    [
        (None, Verdict.WELCOME),
        (("10.0.0.7", 1), Verdict.FORBIDDEN),
        (("::1", 1), Verdict.WELCOME),
        (("", 0), Verdict.WELCOME),
    ],
)
def test_another_machine_is_not_let_in_whatever_it_says(client, verdict):
    assert PageAccess().judge(request(client)) is verdict


def test_where_the_pages_are_off_they_are_off_for_everyone():
    access = PageAccess(host="0.0.0.0")
    assert access.judge(request()) is Verdict.OFF
    assert access.judge(request(authorization="Bearer ")) is Verdict.OFF
    assert access.judge(request(cookie=f"{LOGIN_COOKIE}={access.make_login()}")) is Verdict.OFF
    assert not access.is_token("")


@pytest.mark.parametrize(
    ("authorization", "verdict"),
    [
        (f"Bearer {TOKEN}", Verdict.WELCOME),
        (f"bearer  {TOKEN} ", Verdict.WELCOME),
        (f"Basic {TOKEN}", Verdict.LOG_IN),
        (TOKEN, Verdict.LOG_IN),
        ("Bearer", Verdict.LOG_IN),
        ("Bearer \xff", Verdict.LOG_IN),
        (f"Bearer {TOKEN}x", Verdict.LOG_IN),
        ("", Verdict.LOG_IN),
    ],
)
def test_the_token_opens_the_pages_to_programs(authorization, verdict):
    assert PageAccess(admin_token=TOKEN).judge(request(authorization=authorization)) is verdict


def test_a_login_lasts_thirty_days_and_does_not_hold_the_token():
    times = [1_000_000.0]
    access = PageAccess(admin_token=TOKEN, now=lambda: times[0])
    login = access.make_login()
    assert TOKEN not in login
    assert access.judge(request(cookie=f"{LOGIN_COOKIE}={login}")) is Verdict.WELCOME
    times[0] += LOGIN_SECONDS - 1
    assert access.is_login(login)
    times[0] += 1
    assert not access.is_login(login)


def test_a_login_of_another_token_or_a_changed_one_is_none():
    access = PageAccess(admin_token=TOKEN)
    login = access.make_login()
    assert not PageAccess(admin_token="another").is_login(login)
    expires, nonce, signature = login.split(".")
    for changed in (
        f"{int(expires) + 1}.{nonce}.{signature}",
        f"{expires}.x{nonce}.{signature}",
        f"{expires}.{nonce}.{signature[:-1]}",
        f"{expires}.{nonce}",
        f".{nonce}.{signature}",
        "9" * 400 + f".{nonce}.{signature}",
        "",
        ".",
        "\udcff",
    ):
        assert not access.is_login(changed)
    assert access.make_login() != login


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({"origin": "http://127.0.0.1:8000"}, True),
        ({"origin": "http://127.0.0.1:8000", "sec_fetch_site": "same-origin"}, True),
        ({}, True),
        ({"sec_fetch_site": "none"}, True),
        ({"origin": "http://127.0.0.1:8001"}, False),
        ({"origin": "http://localhost:8000"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "127.0.0.1:8000"}, False),
        ({"origin": "file://127.0.0.1:8000"}, False),
        ({"origin": "http://[::1"}, False),
        ({"origin": "http://127.0.0.1:8000", "sec_fetch_site": "cross-site"}, False),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "cross-site"}, False),
        ({"origin": "https://bot.example", "host": "bot.example"}, True),
        ({"origin": "https://bot.example:443", "host": "bot.example"}, True),
        ({"origin": "https://bot.example", "host": "bot.example:443"}, True),
        ({"origin": "https://BOT.example", "host": "bot.EXAMPLE"}, True),
        ({"origin": "http://bot.example", "host": "bot.example:443"}, False),
    ],
)
def test_only_a_page_of_this_service_may_change_something(headers, is_own):
    assert PageAccess().is_own_page(request(**headers).headers) is is_own


def test_the_public_address_is_an_own_one_whatever_host_a_proxy_sends():
    access = PageAccess(public_url="https://bot.example", admin_token=TOKEN)
    assert access.is_own_page(request(origin="https://bot.example", host="10.0.0.3:8000").headers)
    assert not access.is_own_page(request(origin="https://bot.example.evil", host="10.0.0.3:8000").headers)


@pytest.mark.parametrize(
    ("public_url", "headers", "is_https"),
    [
        (None, {}, False),
        (None, {"x_forwarded_proto": "https"}, True),
        ("https://bot.example", {"host": "bot.example"}, True),
        ("https://bot.example", {"host": "127.0.0.1:8000"}, False),
        ("http://127.0.0.1:8000", {}, False),
    ],
)
def test_cookies_are_for_https_alone_where_that_is_what_the_browser_speaks(public_url, headers, is_https):
    assert PageAccess(public_url=public_url, admin_token=TOKEN).is_https(request(**headers)) is is_https


@pytest.mark.parametrize(
    ("access", "said"),
    [
        (PageAccess(port=8000), "http://127.0.0.1:8000/"),
        (PageAccess(host="::1", port=8000), "http://[::1]:8000/"),
        (PageAccess(host="0.0.0.0", port=80, admin_token=TOKEN), "http://localhost:80/ (asks for ADMIN_TOKEN)"),
        (PageAccess(public_url="https://b.example", admin_token=TOKEN), "https://b.example/ (asks for ADMIN_TOKEN)"),
        (
            PageAccess(host="0.0.0.0"),
            "off: set ADMIN_TOKEN to open it, because HOST is 0.0.0.0, which others can reach",
        ),
        (PageAccess(public_url="https://b.example"), "off: set ADMIN_TOKEN to open it, because PUBLIC_URL is set"),
    ],
)
def test_it_says_where_the_page_is_or_why_it_is_off(access, said):
    assert access.describe() == said
