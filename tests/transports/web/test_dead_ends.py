"""Addresses that lead nowhere: a person gets a page with a way on, a script or a program what it can read."""

import pytest
from people.browsing import PAGE, SITE

from botservice import AgentContext

WAY_HOME = 'href="/"'


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/web",
        "/web/",
        "/web/nowhere",
        "/web/static/nothing.css",
        "/web/files/9/0",
        "/web/link",
        "/web/link/",
        "/?conversation=a1",
        "/?conversation=NO",
        "/inspect/9",
        "/inspect/9/9",
        "/inspect/9/export",
        "/inspect/9/9/steps/0/json",
        "/inspect/9/9/again",
        "/inspect/t/9",
    ],
)
async def test_whoever_opens_an_address_with_nothing_behind_it_gets_a_page_that_leads_on(site, path):
    visitor = await site.visitor()
    answer = await visitor.client.get(path, headers=PAGE)
    assert answer.status_code in (400, 404)
    assert answer.headers["content-type"].startswith("text/html")
    assert WAY_HOME in answer.text
    assert ('href="/inspect"' in answer.text) == path.startswith("/inspect")


async def test_scripts_and_programs_get_what_they_can_read(site):
    visitor = await site.visitor()
    script = await visitor.client.get("/web/files/9/0")
    assert "not there" in script.json()["error"]
    program = await visitor.client.get("/inspect/9")
    assert program.headers["content-type"].startswith("text/plain")


async def test_an_address_of_the_inspector_is_the_same_with_a_slash_behind_it(run_site):
    async with run_site() as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("hello")
            await events.until_answered()
        for path in ("/inspect", "/inspect/charts", "/inspect/1", "/inspect/1/1"):
            plain, slashed = [await visitor.client.get(each, headers=PAGE) for each in (path, f"{path}/")]
            assert (plain.status_code, slashed.status_code) == (200, 200), path
            assert slashed.text.partition("<main")[2] == plain.text.partition("<main")[2]


async def test_a_link_without_its_secret_is_told_as_one_that_does_not_work(run_site):
    async with run_site(**SITE) as site:
        visitor = await site.visitor(is_open=False)
        for path in ("/web/link", "/web/link/"):
            answer = await visitor.client.get(path, headers=PAGE)
            assert answer.status_code == 404
            assert "This link no longer works" in answer.text
            assert WAY_HOME in answer.text


async def test_who_is_not_logged_in_is_asked_to_wherever_they_go(run_site):
    async with run_site(**SITE) as site:
        visitor = await site.visitor(is_open=False)
        for path in ("/", "/inspect/", "/inspect/1/1", "/web/files/1/0", "/web/why?message=1"):
            answer = await visitor.client.get(path, headers=PAGE)
            assert answer.status_code == 401, path
            assert 'action="/web/login"' in answer.text


async def test_a_conversation_that_is_not_there_is_not_shown_as_an_empty_one(site):
    visitor, other = await site.visitor(), await site.visitor()
    begun = (await visitor.post("/web/new", {})).json()["conversation"]
    new = await visitor.client.get(f"/?conversation={begun}&new", headers=PAGE)
    assert (new.status_code, f'data-conversation="{begun}"' in new.text) == (200, True)
    assert (await visitor.client.get(f"/?conversation={begun}", headers=PAGE)).status_code == 404
    async with visitor.events(conversation=begun) as events:
        await visitor.say("hello", conversation=begun)
        assert (await visitor.client.get(f"/?conversation={begun}", headers=PAGE)).status_code == 200
        await events.until_answered()
    assert (await other.client.get(f"/?conversation={begun}", headers=PAGE)).status_code == 404
    await visitor.post("/web/conversations/delete", {"conversation": begun})
    gone = await visitor.client.get(f"/?conversation={begun}", headers=PAGE)
    assert "There is no such conversation in this browser" in gone.text
    assert WAY_HOME in gone.text


async def test_an_empty_conversation_of_a_program_says_so_in_the_inspector(site):
    visitor = await site.visitor()
    context = await AgentContext.get_or_create(site.storage, {"transport": "api", "chat": "1"})
    assert "No turn was made here." in (await visitor.client.get(f"/inspect/{context.id}", headers=PAGE)).text
