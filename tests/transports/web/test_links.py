"""People who come by a link that /web gave them: what it opens, to whom, and how often."""

import asyncio
import contextlib
import re
from datetime import timedelta

import httpx
import pytest
from people.browsing import COMMANDS, PAGE, SITE, TOKEN, URL, ask, chats, come, link, status
from people.conversing import ALICE, BOB, command, open_chat
from sqlalchemy import select, update
from starlette.applications import Starlette
from starlette.routing import Route

from botservice import Author
from botservice.commands.catalogue import Catalogue
from botservice.commands.links import web_command
from botservice.people.identities import MOST_LINKS, MOST_LOGINS
from botservice.people.queries import find_identity
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conversations import messages
from botservice.storage.tables.people import web_links
from transports.web.app import LateRoutes, WebTransport
from transports.web.chat import MOST_STREAMS_EACH
from transports.web.owner_token import PageAccess
from transports.web.server_sent_events import StreamPace


@pytest.fixture
async def site(run_site):
    """The web transport as people reach it, with a token that they do not have."""
    async with run_site(**SITE) as running:
        yield running


async def test_a_link_opens_the_same_chat_in_every_browser_of_a_person(site):
    phone, laptop = await come(site), await come(site)
    async with laptop.events() as events:
        assert (await phone.say("hello")).status_code == 202
        await events.until("message", lambda data: data["text"] == "You said: hello")
    assert await chats(site) == ["p1"]
    page = await laptop.open()
    assert "Alice on Telegram (telegram:1)" in page.text
    assert "Inspector" not in page.text


async def test_who_comes_by_a_link_is_the_same_person_with_an_account_of_their_own(site):
    visitor = await come(site)
    async with visitor.events() as events:
        await visitor.say("hello")
        await events.until_answered()

    def read(connection):
        known = [find_identity(connection, each) for each in (ALICE, Author("web", "p1"))]
        author = select(messages.c.author_platform, messages.c.author_id).where(messages.c.author_id.is_not(None))
        return known, connection.execute(author).all()

    (alice, browsing), authors = await site.storage.read(read)
    assert alice.person_id == browsing.person_id
    assert [tuple(each) for each in authors] == [("web", "p1")]


async def test_a_new_chat_in_one_browser_is_the_same_persons(site):
    visitor = await come(site)
    await visitor.say("one")
    begun = (await visitor.post("/web/new", {})).json()["conversation"]
    async with visitor.events(conversation=begun) as events:
        await visitor.say("two", conversation=begun)
        await events.until_answered()
        assert "one" not in events.texts
    assert await chats(site) == ["p1", "p1"]


async def test_looking_at_a_link_uses_nothing_up_and_its_button_does_once(site):
    path, crawler = await link(site), await site.visitor(is_open=False)
    for _ in range(3):
        shown = await crawler.client.get(path, headers=PAGE)
        assert shown.status_code == 200
        assert "You will chat here as Alice on Telegram (telegram:1)." in shown.text
        assert "You get a separate chat in this browser" in shown.text
        assert "set-cookie" not in shown.headers
        assert shown.headers["cache-control"] == "no-store"
    assert (await crawler.client.head(path)).status_code == 405
    assert await status(crawler) == 401
    alice, other = await site.visitor(is_open=False), await site.visitor(is_open=False)
    assert (await alice.client.post(path)).status_code == 303
    assert (await alice.client.post(path)).status_code == 303, "pressed twice"
    assert (await other.client.post(path)).status_code == 410
    assert (await other.client.get(path, headers=PAGE)).status_code == 410
    assert [await status(each) for each in (alice, other)] == [200, 401]


async def test_of_many_who_press_at_once_one_gets_in(site):
    path = await link(site)
    visitors = [await site.visitor(is_open=False) for _ in range(4)]
    answers = await asyncio.gather(*(each.client.post(path) for each in visitors))
    assert sorted(each.status_code for each in answers) == [303, 410, 410, 410]


async def test_a_link_is_too_old_after_ten_minutes_and_void_when_there_is_a_newer_one(site):
    first, second = await link(site), await link(site)
    visitor = await site.visitor(is_open=False)
    assert (await visitor.client.post(first)).status_code == 410
    minutes = update(web_links).values(expires_at=site.storage.now() - timedelta(seconds=1))
    await site.storage.write(lambda connection: connection.execute(minutes))
    assert (await visitor.client.post(second)).status_code == 410


async def test_another_sites_page_presses_no_button(site):
    path, visitor = await link(site), await site.visitor(is_open=False)
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await visitor.client.post(path, headers=headers)).status_code == 403
    assert await status(visitor) == 401
    assert (await visitor.client.post(path)).status_code == 303


async def test_the_page_speaks_the_browsers_language_and_shows_a_name_as_text(site):
    mallory = Author("telegram", "7", "<b>Alice</b>")
    path, visitor = await link(site, mallory), await site.visitor(is_open=False)
    shown = (await visitor.client.get(path, headers={**PAGE, "Accept-Language": "de-AT,de;q=0.9"})).text
    assert "Bist du das?" in shown
    assert "telegram:7" in shown
    assert "<b>" not in shown
    hostile = await visitor.client.get(path, headers={**PAGE, "Accept-Language": '"><script>'})
    assert "<script>" not in hostile.text


async def test_wrong_links_are_answered_more_and_more_slowly(site):
    visitor = await site.visitor(is_open=False)
    answers = [await visitor.client.get(f"/web/link/{number:043}", headers=PAGE) for number in range(6)]
    assert [each.status_code for each in answers] == [410] * 5 + [429]
    assert int(answers[-1].headers["retry-after"]) > 0


async def test_wrong_links_of_others_at_an_address_keep_nobody_from_a_good_one(site):
    path, stranger, alice = await link(site), await site.visitor(is_open=False), await site.visitor(is_open=False)
    for number in range(8):
        await stranger.client.post(f"/web/link/{number:043}")
    assert (await stranger.client.post(f"/web/link/{9:043}")).status_code == 429
    assert (await alice.client.get(path, headers=PAGE)).status_code == 200
    assert (await alice.client.post(path)).status_code == 303


async def test_one_person_cannot_keep_others_from_their_chats_with_open_pages(site):
    greedy, bob = await come(site), await come(site, BOB)
    async with contextlib.AsyncExitStack() as pages:
        for number in range(MOST_STREAMS_EACH):
            await pages.enter_async_context(greedy.events(conversation=f"c{number}"))
        assert (await greedy.client.get("/web/events")).status_code == 503
        async with bob.events() as events:
            await events.until("state")
    async with bob.events() as events:
        await events.until("state")


async def test_an_open_page_of_the_owner_ends_after_logging_out(run_site):
    async with run_site(**SITE, pace=StreamPace(heartbeat=0.02)) as site:
        owner = await site.visitor(is_open=False)
        await owner.client.post("/web/login", data={"token": TOKEN})
        await owner.open()
        async with owner.events() as events:
            await owner.say("hello")
            await events.until_answered()
            await owner.client.post("/web/logout")
            while await events.next() is not None:
                pass
            assert events.texts == ["hello", "You said: hello"]


async def test_people_reach_nothing_but_their_own_chat(site):
    visitor = await come(site)
    routes = list(site.transport.routes)
    for late in [each for each in routes if isinstance(each, LateRoutes)]:
        routes += await late.routes()
    paths = [route.path for route in routes if isinstance(route, Route) and "GET" in route.methods]
    others = [path for path in paths if path != "/" and not path.startswith("/web/")]
    assert others
    for path in others:
        address = re.sub(r"\{\w+(:int)?\}", "1", path)
        assert await status(visitor, address) == 403, address
        assert (await visitor.client.post(address)).status_code in (403, 405), address


async def test_no_cookie_that_a_person_makes_up_opens_anothers_chat(site):
    owner = await site.visitor(is_open=False)
    await owner.client.post("/web/login", data={"token": TOKEN})
    await owner.open()
    async with owner.events() as events:
        await owner.say("the owner's secret")
        await events.until_answered()
    bob = await come(site, BOB)
    async with bob.events() as events:
        await bob.say("bob's secret")
        await events.until_answered()
    alice = await come(site)
    for cookie in (owner.client.cookies["botservice-session"], "p2", "p1", "main"):
        alice.client.cookies.set("botservice-session", cookie)
        assert "secret" not in (await alice.client.get("/web/earlier?before=99")).text
        async with alice.events() as events:
            await events.until("state")
            assert "secret" not in str(events.seen)
        for message in range(1, 5):
            assert await status(alice, f"/web/files/{message}/0") == 404
    owner.client.cookies.set("botservice-session", "p2")
    assert (await owner.client.get("/web/earlier?before=99")).status_code == 409


async def test_the_owners_token_opens_everything_as_before(site):
    visitor = await site.visitor(is_open=False)
    assert 'type="password"' in (await visitor.client.get("/", headers=PAGE)).text
    assert "/web" in (await visitor.client.get("/", headers=PAGE)).text
    bearer = {**PAGE, "Authorization": f"Bearer {TOKEN}"}
    assert (await visitor.client.get("/inspect", headers=bearer)).status_code == 200
    person = await come(site)
    assert (await person.client.get("/inspect", headers=bearer)).status_code == 200
    assert (await person.client.get("/inspect", headers=PAGE)).status_code == 403


async def test_without_a_token_people_get_in_and_nobody_else(run_site):
    async with run_site(host="0.0.0.0", public_url=URL, has_links=True) as site:
        stranger = await site.visitor(is_open=False)
        answer = await stranger.client.get("/inspect", headers=PAGE)
        assert answer.status_code == 401
        assert 'type="password"' not in answer.text
        assert "Send /web to the bot" in answer.text
        assert (await stranger.client.post("/web/login", data={"token": ""})).status_code == 404
        person = await come(site)
        assert [await status(person), await status(person, "/inspect")] == [200, 403]


async def test_without_links_there_is_no_such_address(run_site):
    async with run_site(host="0.0.0.0", admin_token=TOKEN) as site:
        path, visitor = await link(site), await site.visitor(is_open=False)
        assert (await visitor.client.get(path)).status_code == 404
        assert (await visitor.client.post(path)).status_code == 404


async def test_another_replica_knows_of_links_and_logins(run_site, sqlite_url):
    async with run_site(**SITE) as site:
        visitor, path = await come(site), await link(site, BOB)
        async with run_site(**SITE, works=False) as other:
            there = await other.visitor(is_open=False, cookies=dict(visitor.client.cookies))
            bob = await other.visitor(is_open=False)
            assert await status(there) == 200
            assert (await bob.client.post(path)).status_code == 303
            assert await status(await site.visitor(is_open=False, cookies=dict(bob.client.cookies))) == 200
            await there.client.post("/web/logout")
        assert await status(visitor) == 401


async def test_the_tables_hold_no_secret(site):
    path, visitor = await link(site), await site.visitor(is_open=False)
    await visitor.client.post(path)
    tables = [metadata.tables[name] for name in ("web_links", "web_logins", "identities", "contexts")]
    rows = str(await site.storage.read(lambda c: [c.execute(select(each)).all() for each in tables]))
    assert path.rpartition("/")[2] not in rows
    assert visitor.client.cookies["botservice-login"] not in rows


async def test_in_a_group_nobody_is_given_a_link(site):
    group = await open_chat(site.storage, "telegram-group", ALICE, BOB)
    said = (await command(group, "/web", ALICE, COMMANDS, is_private=False)).text
    assert "private chat" in said
    assert "/web/link" not in said


async def test_nobody_is_given_many_links_or_keeps_many_browsers(site):
    visitors = []
    for _ in range(MOST_LOGINS + 1):
        visitors.append(await come(site))
        # As if ten minutes had passed.
        past = update(web_links).values(expires_at=site.storage.now())
        await site.storage.write(lambda connection, past=past: connection.execute(past))
    assert [await status(each) for each in visitors] == [401] + [200] * MOST_LOGINS
    for _ in range(MOST_LINKS):
        await link(site, BOB)
    assert "Too many links" in await ask(site, BOB)


async def test_from_a_browser_no_link_is_given_and_no_account_joined(site):
    visitor = await come(site)
    for text in ("/web", "/unlink"):
        browsing = Author("web", "p1")
        assert "the chat from which you came" in await ask(site, browsing, text, name="web-p1")
    assert await status(visitor) == 200


async def test_unlinking_takes_the_browser_along(site):
    visitor = await come(site)
    assert "isn’t linked" in await ask(site, text="/unlink")
    assert await status(visitor) == 200


async def test_without_a_public_url_the_bot_says_what_is_missing(site):
    chat = await open_chat(site.storage, "telegram-1", ALICE)
    nowhere = web_command(None)
    assert "PUBLIC_URL" in (await command(chat, "/web", ALICE, Catalogue([nowhere]))).text
    assert not nowhere.is_listed


async def test_before_the_service_has_started_no_link_is_said_to_be_gone_and_no_login_to_have_ended():
    transport = WebTransport(access=PageAccess(**SITE, public_url=URL))
    app = httpx.ASGITransport(Starlette(routes=transport.routes))
    async with httpx.AsyncClient(transport=app, base_url=URL) as client:
        path = f"/web/link/{9:043}"
        answers = [await client.get(path, headers=PAGE), await client.post(path, headers=PAGE)]
        await client.post("/web/login", data={"token": TOKEN})
        answers.append(await client.post("/web/logout"))
        assert [each.status_code for each in answers] == [503, 503, 503]
        assert all("has not started yet" in each.text for each in answers)
        assert len(client.cookies) == 1
