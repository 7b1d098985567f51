"""What is done at a message: an edit is asked again, thumbs are kept, and why an answer is as it is can be read."""

import asyncio

from sqlalchemy import delete, select

from botservice import ChatResponse, Command, LLMError, TokenUsage
from botservice.core.policies import Scope, parse_limits
from botservice.people.budgets import Budgets
from botservice.storage.tables.conversations import events
from botservice.storage.tables.services import feedback
from transports.web.app import WebTransport
from transports.web.owner_token import PageAccess


async def talk(visitor, text, **fields):
    """Say something and wait for its answer; return the messages that the page then has."""
    async with visitor.events() as events:
        await events.until_idle()
        assert (await visitor.say(text, **fields)).status_code == 202
        await events.until_idle()
    return await shown(visitor)


async def shown(visitor):
    """Return the messages that a page shows that is opened now."""
    async with visitor.events() as events:
        await events.until_idle()
        return events.messages


async def notices(visitor):
    """Return what a page that is opened now shows besides."""
    async with visitor.events() as events:
        await events.until_idle()
        return [(each["asked"], each["text"]) for each in events.of("notice")]


async def verdicts(site):
    """Return what is kept of thumbs."""
    columns = feedback.c.platform, feedback.c.person_id, feedback.c.verdict
    return await site.storage.read(lambda c: [tuple(row) for row in c.execute(select(*columns))])


async def test_an_edited_question_is_asked_again_in_its_place(site):
    visitor = await site.visitor()
    await talk(visitor, "what is one and one?")
    question = (await talk(visitor, "and two?", id="question-2"))[2]
    assert question["client_id"] == "question-2"
    texts = [each["text"] for each in await talk(visitor, "and three?", id="edit-0001", edits="question-2")]
    assert texts == ["what is one and one?", "You said: what is one and one?", "and three?", "You said: and three?"]
    assert [each["text"] for each in await talk(visitor, "four?", id="edit-0002", edits="question-2")][2:] == [
        "four?",
        "You said: four?",
    ]


async def test_nothing_is_shown_of_what_an_edit_or_a_retry_took_the_place_of(run_site, storage_url):
    async with run_site(storage_url=storage_url) as site:
        visitor = await site.visitor()
        await talk(visitor, "my dog is Rex", id="question-1")
        await talk(visitor, "my dog is Max", id="edit-0001", edits="question-1")
        assert await notices(visitor) == []
        for _ in range(2):
            await talk(visitor, "/retry", is_pressed=True)
            assert await notices(visitor) == []
            assert [each["text"] for each in await shown(visitor)] == ["my dog is Max", "You said: my dog is Max"]
        await (await site.context()).chat_history.delete_messages([(await shown(visitor))[1]["id"]])
        assert await notices(visitor) == [], "an answer that was deleted"
        await talk(visitor, "/new")
        assert [each for each, _ in await notices(visitor)] == ["/new"]


async def test_an_apology_goes_with_the_question_that_is_asked_again(run_site):
    async with run_site([LLMError("broken", is_transient=False), "better"]) as site:
        visitor = await site.visitor()
        await talk(visitor, "hello")
        assert len(await notices(visitor)) == 1
        await talk(visitor, "/retry", is_pressed=True)
        assert await notices(visitor) == []
        assert [each["text"] for each in await shown(visitor)] == ["hello", "better"]
        # Events go before what was told of them does.
        await site.storage.write(lambda connection: connection.execute(delete(events)))
        assert await notices(visitor) == []


async def test_an_edit_that_is_posted_twice_is_asked_once(site):
    visitor = await site.visitor()
    await talk(visitor, "one", id="question-1")
    await talk(visitor, "two", id="edit-0001", edits="question-1")
    again = await visitor.say("two", id="edit-0001", edits="question-1")
    assert again.json() == {"accepted": True, "is_new": False}
    assert [each["text"] for each in await shown(visitor)] == ["two", "You said: two"]


async def test_nobody_edits_what_another_wrote(site):
    alice, mallory = await site.visitor(), await site.visitor()
    await talk(alice, "one", id="question-1")
    await talk(mallory, "two", id="edit-0001", edits="question-1")
    assert [each["text"] for each in await shown(alice)] == ["one", "You said: one"]


async def test_a_thumb_is_kept_with_its_answer_shown_again_and_taken_back(site):
    visitor = await site.visitor()
    _, answer = await talk(visitor, "hello")
    assert (answer["is_answer"], answer["verdict"]) == (True, None)
    for verdict in ("good", "bad"):
        assert (await visitor.post("/web/feedback", {"message": answer["id"], "verdict": verdict})).status_code == 200
        ((platform, _, kept),) = await verdicts(site)
        assert (platform, kept) == ("web", verdict)
        assert (await shown(visitor))[1]["verdict"] == verdict
    await visitor.post("/web/feedback", {"message": answer["id"], "verdict": None})
    assert await verdicts(site) == []


async def test_a_thumb_for_nothing_is_refused(site):
    visitor = await site.visitor()
    question, _ = await talk(visitor, "hello")
    for number in (None, "x", -1, 1.5, True, 10**30, [], "\u00b2"):
        answer = await visitor.post("/web/feedback", {"message": number, "verdict": "good"})
        assert answer.status_code == 400, number
    assert (await visitor.post("/web/feedback", {"message": question["id"], "verdict": "good"})).status_code == 404
    assert (await visitor.post("/web/feedback", {"message": question["id"] + 1, "verdict": "great"})).status_code == 400
    assert await verdicts(site) == []


async def test_why_is_told_of_any_answer_and_leads_to_its_turn(site):
    visitor = await site.visitor()
    _, first = await talk(visitor, "what is **this**?")
    await talk(visitor, "and that?")
    said = (await visitor.client.get("/web/why", params={"message": first["id"]})).json()
    assert "This answer (to “what is **this**?”) is based on:" in said["text"]
    assert "<strong>" not in said["html"]
    page = await visitor.client.get(said["inspect"], headers={"Accept": "text/html"}, follow_redirects=True)
    assert "what is **this**?" in page.text
    assert (await visitor.client.get("/web/why", params={"message": first["id"] - 1})).status_code == 404
    assert (await visitor.client.get("/web/why", params={"message": "x"})).status_code == 400


async def test_the_commands_of_this_agent_are_offered(site):
    visitor = await site.visitor()
    names = [each["name"] for each in (await visitor.client.get("/web/commands")).json()["commands"]]
    assert "retry" in names
    assert "approve" not in names, "what owners alone may do is in no menu"
    own = WebTransport(access=PageAccess(), commands=[Command("roll", asyncio.sleep, menu="Roll a die")])
    assert own.name == "web"


async def test_the_manifest_is_there_for_a_browser_that_has_not_logged_in(run_site):
    async with run_site(host="0.0.0.0", admin_token="a-long-admin-token") as site:
        visitor = await site.visitor(is_open=False)
        answer = await visitor.client.get("/web/app.webmanifest")
        assert answer.headers["content-type"] == "application/manifest+json"
        manifest = answer.json()
        assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
        for icon in manifest["icons"]:
            picture = await visitor.client.get(icon["src"])
            assert picture.headers["content-type"] == "image/png"
            width = int.from_bytes(picture.content[16:20])
            assert icon["sizes"] == f"{width}x{width}"


async def test_a_question_that_no_budget_reached_for_is_the_one_that_is_asked_again(run_site):
    limits = Budgets({Scope.PERSON: parse_limits("1000 tokens/month")}, answer_tokens=100)
    async with run_site([ChatResponse("one", usage=TokenUsage(800, 50)), "two"], budgets=limits) as site:
        visitor = await site.visitor()
        await talk(visitor, "first")
        await talk(visitor, "second", id="question-2")
        assert await notices(visitor) != []
        await talk(visitor, "third", id="edit-0001", edits="question-2")
        assert [each["text"] for each in await shown(visitor)] == ["first", "one", "third"]
