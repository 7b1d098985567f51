"""Get in: nobody guesses the owner's token, keeps a login that has ended, or reads the files of the service."""

import asyncio
import contextlib
import logging
import os
import socket
import stat
from pathlib import Path

import httpx
import pytest
from standins.web_server import web_server

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.config.settings import Settings
from botservice.core.errors import SettingsError
from botservice.storage.sqlite_files import back_up, write_private
from botservice.turns.inbox import Inbox
from transports.web.app import WebTransport
from transports.web.owner_token import LOGIN_COOKIE, Guesses, PageAccess, address_of
from transports.web.sessions import SESSION_COOKIE

TOKEN = "a-long-admin-token"
PAGE = {"Accept": "text/html"}


@contextlib.asynccontextmanager
async def site(storage: Storage, **how):
    """Serve the pages to anybody who has the token."""
    transport = WebTransport(access=PageAccess(host="0.0.0.0", admin_token=TOKEN, **how))
    AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM(["well"])), storage)
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        await stack.enter_async_context(web_server(transport.routes, listener))
        await transport.start(Inbox(storage, lambda *_: None), storage)
        stack.push_async_callback(transport.stop)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60, verify=False))


@pytest.mark.parametrize("token", ["a", "guess", "x" * 15])
def test_a_token_that_can_be_guessed_is_refused_at_the_start(token: str) -> None:
    with pytest.raises(SettingsError, match="ADMIN_TOKEN must be a random text of 16 characters or more"):
        Settings.load(None, admin_token=token)
    assert Settings.load(None, admin_token="x" * 16).admin_token is not None


async def test_wrong_tokens_in_the_form_are_counted_and_logged(sqlite_storage: Storage, caplog) -> None:
    caplog.set_level(logging.WARNING)
    async with site(sqlite_storage) as client:
        answers = [await client.post("/web/login", data={"token": f"sesame {n}"}, headers=PAGE) for n in range(12)]
        right = await client.post("/web/login", data={"token": TOKEN}, headers=PAGE)
    assert [each.status_code for each in answers] == [401] * 5 + [429] * 7
    assert right.status_code == 429
    assert int(right.headers["retry-after"]) > 0
    logged = [each for each in caplog.records if each.getMessage() == "web.login_refused"]
    assert [each.address for each in logged] == ["127.0.0.1"] * 5
    assert "sesame" not in caplog.text


async def test_the_header_is_no_second_way_to_guess(sqlite_storage: Storage) -> None:
    async with site(sqlite_storage) as client:
        answers = [await client.get("/inspect", headers={"Authorization": f"Bearer {n}"}) for n in range(12)]
        form = await client.post("/web/login", data={"token": TOKEN}, headers=PAGE)
    assert [each.status_code for each in answers] == [401] * 5 + [429] * 7
    assert form.status_code == 429


async def test_who_has_logged_in_is_not_locked_out_by_others_guesses(sqlite_storage: Storage) -> None:
    async with site(sqlite_storage) as client:
        await client.post("/web/login", data={"token": TOKEN}, headers=PAGE)
        for number in range(8):
            await client.get("/inspect", headers={"Authorization": f"Bearer {number}"})
        assert (await client.get("/inspect", headers=PAGE)).status_code == 200


def request(address: str, forwarded: str = "") -> httpx.Request:
    from starlette.requests import Request

    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    return Request({"type": "http", "method": "GET", "path": "/", "headers": headers, "client": (address, 1)})


def test_who_waits_waits_longer_each_time_and_an_owner_gets_in_again() -> None:
    times = [1000.0]
    guesses = Guesses(now=lambda: times[0])
    waits = []
    for _ in range(9):
        guesses.note_wrong(request("10.0.0.1"))
        waits.append(guesses.wait_seconds(request("10.0.0.1")))
        times[0] += waits[-1]
    assert waits == [0, 0, 0, 0, 30, 60, 120, 240, 480]
    assert guesses.wait_seconds(request("10.0.0.1")) == 0
    guesses.note_right(request("10.0.0.1"))
    guesses.note_wrong(request("10.0.0.1"))
    assert guesses.wait_seconds(request("10.0.0.1")) == 0


def test_many_addresses_get_no_further_than_one_and_keep_no_owner_out() -> None:
    times = [1000.0]
    guesses = Guesses(now=lambda: times[0])
    guesses.note_right(request("10.9.9.9"))
    for number in range(60):
        assert guesses.wait_seconds(request("10.0.0.1", f"1.2.3.4, 5.6.7.{number}")) == 0
        guesses.note_wrong(request("10.0.0.1", f"1.2.3.4, 5.6.7.{number}"))
    assert guesses.wait_seconds(request("10.0.0.2")) == 60
    assert guesses.wait_seconds(request("10.9.9.9")) == 0
    times[0] += 60
    assert guesses.wait_seconds(request("10.0.0.2")) == 0


def test_a_proxy_that_adds_a_line_of_its_own_is_believed_and_not_who_came_to_it() -> None:
    from starlette.requests import Request

    headers = [(b"x-forwarded-for", b"10.9.9.9"), (b"x-forwarded-for", b"5.6.7.8")]
    forged = Request({"type": "http", "method": "GET", "path": "/", "headers": headers, "client": ("10.0.0.1", 1)})
    assert address_of(forged) == "10.0.0.1 for 5.6.7.8"


@pytest.mark.slow
async def test_a_login_ends_on_the_server_and_on_every_replica(storage: Storage) -> None:
    async with site(storage) as client, site(storage) as replica:
        await client.post("/web/login", data={"token": TOKEN}, headers=PAGE)
        kept = {"Cookie": f"{LOGIN_COOKIE}={client.cookies[LOGIN_COOKIE]}", **PAGE}
        assert (await replica.get("/inspect", headers=kept)).status_code == 200
        assert (await client.post("/web/logout", headers=PAGE)).status_code == 303
        client.cookies.clear()
        assert (await client.get("/inspect", headers=kept)).status_code == 401
        assert (await replica.get("/inspect", headers=kept)).status_code == 401
        await client.post("/web/login", data={"token": TOKEN}, headers=PAGE)
        assert (await client.get("/inspect", headers=PAGE)).status_code == 200


async def test_by_https_cookies_belong_to_this_host_alone_and_browsers_stay_with_https(sqlite_storage: Storage) -> None:
    async with site(sqlite_storage, public_url="https://bot.example") as client:
        https = {"Host": "bot.example", "Origin": "https://bot.example", **PAGE}
        answer = await client.post("/web/login", data={"token": TOKEN}, headers=https)
        login = answer.headers["set-cookie"]
        assert login.startswith(f"__Host-{LOGIN_COOKIE}=")
        assert "Secure" in login
        assert "Path=/" in login
        assert "Domain" not in login
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        value = login.partition(";")[0]
        page = await client.get("/", headers={**https, "Cookie": value})
        assert page.headers["set-cookie"].startswith(f"__Host-{SESSION_COOKIE}=")
        plain = {"Host": "bot.example", **PAGE, "Cookie": value.removeprefix("__Host-")}
        assert (await client.get("/inspect", headers=plain)).status_code == 401


async def test_without_https_nothing_pins_browsers_to_it(sqlite_storage: Storage) -> None:
    async with site(sqlite_storage) as client:
        assert "strict-transport-security" not in (await client.get("/web/login", headers=PAGE)).headers


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {each.name: oct(stat.S_IMODE(each.stat().st_mode)) for each in folder.iterdir() if each.is_file()}


async def test_other_users_of_the_machine_cannot_read_the_database(tmp_path: Path, usual_umask) -> None:
    async with Storage.open(f"sqlite:///{tmp_path / 'bot.db'}") as storage:
        await storage.write(lambda connection: connection.exec_driver_sql("CREATE TABLE secret (id INTEGER)"))
        assert {"bot.db", "bot.db-wal", "bot.db-shm"} <= set(modes(tmp_path))
        assert set(modes(tmp_path).values()) == {"0o600"}


async def test_a_database_of_before_is_closed_to_others_when_it_is_opened(
    tmp_path: Path, sqlite_url: str, usual_umask
) -> None:
    (tmp_path / "bot.db").chmod(0o644)
    async with Storage.open(sqlite_url):
        await asyncio.sleep(0)
        assert set(modes(tmp_path).values()) == {"0o600"}


async def test_backups_and_archives_are_closed_to_others(tmp_path: Path, sqlite_url: str, usual_umask) -> None:
    async with Storage.open(sqlite_url):
        back_up(tmp_path / "bot.db", tmp_path / "copy.db")
    (tmp_path / "archive.zip").write_bytes(b"an older one")
    write_private(tmp_path / "archive.zip", b"all that is kept of somebody")
    assert modes(tmp_path)["copy.db"] == modes(tmp_path)["archive.zip"] == "0o600"
    assert (tmp_path / "archive.zip").read_bytes() == b"all that is kept of somebody"
