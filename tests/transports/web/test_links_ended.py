"""What ends the login of a person who came by a link: at once, and for a person who kept the cookie."""

import pytest
from people.browsing import PAGE, SITE, ask, come, link, status
from people.conversing import ALICE, ALICE_ON_SLACK, open_chat
from sqlalchemy import select

from botservice.core.policies import AccessMode
from botservice.people.access import Access as PeopleAccess
from botservice.people.queries import find_identity, join_identities
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.people import web_links, web_logins
from transports.web.server_sent_events import StreamPace


@pytest.fixture
async def site(run_site):
    """The web transport as people reach it, with a token that they do not have."""
    async with run_site(**SITE) as running:
        yield running


async def test_whoever_is_taken_out_is_out_at_once_and_an_open_page_gets_nothing_more(run_site):
    people = PeopleAccess(AccessMode.ALLOW, allowed=frozenset({"telegram:1"}))
    async with run_site(**SITE, people=people, pace=StreamPace(heartbeat=0.02)) as site:
        visitor = await come(site)
        async with visitor.events() as events:
            await visitor.say("hello")
            await events.until_answered()
            await site.storage.write(lambda c: people.revoke(c, "telegram:1", "owner", site.storage.now()))
            assert await status(visitor) == 401
            assert (await visitor.say("and now?")).status_code == 401
            while await events.next() is not None:
                pass
            assert events.texts == ["hello", "You said: hello"]


async def test_a_stranger_gets_no_use_out_of_a_link_from_before(run_site):
    people = PeopleAccess(AccessMode.ALLOW)
    async with run_site(**SITE, people=people) as site:
        path, visitor = await link(site), await site.visitor(is_open=False)
        assert (await visitor.client.get(path, headers=PAGE)).status_code == 410
        assert (await visitor.client.post(path)).status_code == 410


@pytest.mark.parametrize("owners", [frozenset(), frozenset({"telegram:1"})])
async def test_a_role_is_the_same_in_the_browser(run_site, owners):
    people = PeopleAccess(AccessMode.ALLOW, owners=owners, allowed=frozenset({"telegram:1"}))
    async with run_site(**SITE, people=people) as site:
        visitor = await come(site)
        async with visitor.events() as events:
            await visitor.say("/access")
            notice = await events.until("notice")
        assert ("telegram:1" in notice.data["text"]) == bool(owners)


async def ends_by_logging_out(site, visitor):
    assert (await visitor.client.post("/web/logout")).status_code == 303


async def ends_by_the_command(site, visitor):
    assert "logged out of all browsers" in await ask(site, text="/web off")


async def ends_by_unlinking(site, visitor):
    def join(connection):
        slack = find_identity(connection, ALICE_ON_SLACK)
        join_identities(connection, find_identity(connection, ALICE), slack)

    await open_chat(site.storage, "slack-1", ALICE_ON_SLACK)
    await site.storage.write(join)
    other = await come(site, ALICE_ON_SLACK)
    assert await status(other) == 200
    assert "no longer linked to" in await ask(site, ALICE_ON_SLACK, "/unlink")
    assert await status(other) == 401
    assert await status(visitor) == 200
    await ask(site, text="/web off")


async def ends_by_forgetting(site, visitor):
    await forget_person(site.storage, ALICE)
    for table in (web_links, web_logins):
        query = select(table)
        assert await site.storage.read(lambda connection, query=query: connection.execute(query).all()) == []


@pytest.mark.parametrize("end", [ends_by_logging_out, ends_by_the_command, ends_by_unlinking, ends_by_forgetting])
async def test_what_ends_a_login_ends_it_for_whoever_kept_the_cookie(site, end):
    visitor = await come(site)
    cookies = dict(visitor.client.cookies)
    await end(site, visitor)
    assert await status(visitor) == 401
    thief = await site.visitor(is_open=False, cookies=cookies)
    assert await status(thief) == 401
