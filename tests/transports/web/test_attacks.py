"""What a person tries on the pages who wants what is another's: numbers, names of sessions, pages of the owner."""

import io
import zipfile

import pytest
from sqlalchemy import select

from botservice.storage.tables.conversations import contexts, deliveries, messages


async def told(site, visitor, text):
    """Have a visitor say something; return what they are told once it is answered."""
    async with visitor.events() as events:
        await visitor.say(text)
        await events.until_idle()
        return events


async def session_of(site):
    """Return the stored name of the only session."""
    query = select(contexts.c.context_keys)
    return (await site.storage.read(lambda c: c.execute(query).scalars().first()))["session_id"]


async def test_an_export_comes_as_a_file_that_opens_for_its_session_alone(site):
    alice, bob = await site.visitor(), await site.visitor()
    await told(site, alice, "my dog is called Rex")
    await told(site, bob, "bob was here")
    async with alice.events() as events:
        await alice.say("/export")
        notice = (await events.until("notice")).data
    (file,) = notice["files"]
    answer = await alice.client.get(file["url"])
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].endswith('.zip"')
    data = zipfile.ZipFile(io.BytesIO(answer.content)).read("data.json").decode()
    assert "my dog is called Rex" in data
    assert "bob was here" not in data
    assert (await bob.client.get(file["url"])).status_code == 404
    assert (await (await site.visitor(is_open=False)).client.get(file["url"])).status_code >= 400
    assert (await alice.client.get(f"{file['url']}9")).status_code == 404


@pytest.mark.parametrize("path", ["/web/events", "/web/earlier?before=9"])
async def test_the_stored_name_of_a_session_opens_nothing(site, path):
    alice = await site.visitor()
    await told(site, alice, "my dog is called Rex")
    name = await session_of(site)
    mallory = await site.visitor(is_open=False)
    for cookie in (name, name.ljust(32, "0"), f"{name}x", "", "../../etc/passwd"):
        mallory.client.cookies.set("botservice-session", cookie)
        async with mallory.client.stream("GET", path) as answer:
            if answer.status_code == 200:
                async for line in answer.aiter_lines():
                    assert "Rex" not in line
                    if line.startswith("event: state"):
                        break


async def test_files_and_notices_of_others_are_not_found_by_counting(site):
    alice, mallory = await site.visitor(), await site.visitor()
    await told(site, alice, "my dog is called Rex")
    await told(site, alice, "/export")
    numbers = await site.storage.read(
        lambda c: [*c.execute(select(messages.c.id)).scalars(), *c.execute(select(deliveries.c.id)).scalars()]
    )
    for number in range(max(numbers) + 2):
        for path in (f"/web/files/{number}/0", f"/web/notices/{number}/0"):
            assert (await mallory.client.get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/inspect", "/inspect/1", "/inspect/1/1"])
async def test_the_owners_pages_need_the_owners_token(run_site, path):
    async with run_site(host="0.0.0.0", admin_token="a token of the owner") as site:
        visitor = await site.visitor(is_open=False)
        for headers in ({}, {"Authorization": "Bearer guess"}, {"Cookie": "botservice-admin=guess"}):
            assert (await visitor.client.get(path, headers=headers)).status_code == 401
