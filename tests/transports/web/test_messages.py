"""Posting, on real wires: accepted once it is stored, and once only."""

import asyncio
import base64
import json

from sqlalchemy import select

from botservice.storage.tables.conversations import events

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def image(data: bytes = PNG, name: str = "dot.png") -> dict[str, str]:
    return {"name": name, "mime_type": "image/png", "data": base64.b64encode(data).decode()}


async def test_the_session_is_a_cookie_that_scripts_do_not_get_and_that_names_nothing(site):
    visitor = await site.visitor(is_open=False)
    response = await visitor.open()
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    secret = visitor.client.cookies["botservice-session"]
    assert len(secret) == 32
    assert secret not in response.text
    await visitor.say("hello")
    kept = await site.storage.read(
        lambda connection: str([tuple(row) for row in connection.execute(select(events.c.key, events.c.raw))])
    )
    assert secret not in kept
    assert (await visitor.open()).status_code == 200
    assert visitor.client.cookies["botservice-session"] == secret


async def test_a_session_that_was_made_up_badly_is_replaced(site):
    for secret in ("", "x", "x" * 31, "x" * 33, "x" * 31 + "!", "\u00e9" * 32):
        visitor = await site.visitor(is_open=False)
        cookie = {"Cookie": f"botservice-session={secret}".encode("latin-1")}
        response = await visitor.client.get("/", headers=cookie)
        assert response.cookies["botservice-session"] != secret
        refused = await visitor.client.post("/web/messages", json={"id": "message-1", "text": "x"}, headers=cookie)
        assert refused.status_code == 409, secret


async def test_it_is_stored_when_the_answer_comes(run_site):
    async with run_site(works=False) as site:
        visitor = await site.visitor()
        response = await visitor.say("hello")
        assert (response.status_code, response.json()) == (202, {"accepted": True, "is_new": True})
        assert await site.count_events() == 1


async def test_a_message_that_is_posted_again_is_answered_once(site):
    visitor = await site.visitor()
    message = {"id": "message-1", "text": "hello"}
    answers = await asyncio.gather(*(visitor.post("/web/messages", message) for _ in range(10)))
    assert {answer.status_code for answer in answers} == {202}
    assert sorted(answer.json()["is_new"] for answer in answers) == [False] * 9 + [True]
    async with visitor.events() as events:
        await events.until_answered()
    assert len(site.llm.prompts) == 1


async def test_the_same_id_in_two_sessions_is_two_messages(site):
    for visitor in (await site.visitor(), await site.visitor()):
        assert (await visitor.post("/web/messages", {"id": "message-1", "text": "x"})).json()["is_new"]


async def test_messages_are_answered_in_the_order_in_which_they_came(site):
    visitor = await site.visitor()
    for number in range(10):
        await visitor.say(str(number))
    async with visitor.events() as events:
        await events.until_idle()
        questions = [
            event.data["text"] for event in events.seen if event.name == "message" and event.data["role"] == "user"
        ]
        assert questions == [str(number) for number in range(10)]


async def test_a_message_that_is_too_long_is_refused_with_a_reason(site):
    visitor = await site.visitor()
    response = await visitor.say("x" * 100_001)
    assert response.status_code == 413
    assert response.json()["error"] == "This message has 100,001 characters; at most 100,000 can be sent at once."
    assert (await visitor.say("x" * 100_000)).status_code == 202
    assert await site.count_events() == 1


async def test_a_message_in_which_nothing_can_be_seen_is_refused(site):
    visitor = await site.visitor()
    for text in ("", " \n\t\u00a0", "\u200b\u200d\ufeff\u2060", "\u3164 \u2800", "\u00ad\ufe0f\U000e0020", "\x00\x1f"):
        refused = await visitor.say(text)
        assert (refused.status_code, refused.json()["error"]) == (400, "There is nothing in this message."), ascii(text)
    for text in (".", "\u200b.", "👩\u200d🚒", "क्\u200dष"):
        assert (await visitor.say(text)).status_code == 202
    assert await site.count_events() == 4


async def test_a_body_of_a_megabyte_or_of_twenty_does_no_harm(site):
    visitor = await site.visitor()
    assert (await visitor.say("x" * 1_000_000)).status_code == 413
    headers = {"Content-Type": "application/json"}
    response = await visitor.client.post("/web/messages", content=b"x" * 1_000_000, headers=headers)
    assert response.status_code == 400
    response = await visitor.client.post("/web/messages", content=b"x" * 20_000_000, headers=headers)
    assert response.status_code == 413

    async def for_ever():
        for _ in range(20):
            yield b"x" * 1_000_000

    response = await visitor.client.post("/web/messages", content=for_ever(), headers=headers)
    assert response.status_code == 413
    assert (await visitor.say("still there?")).status_code == 202
    assert await site.count_events() == 1


async def test_an_image_reaches_the_model_and_is_shown_again(site):
    visitor, other = await site.visitor(), await site.visitor()
    await other.say("hello")
    async with visitor.events() as events:
        assert (await visitor.say("what is this?", files=[image(name="<b>dot</b>.png")])).status_code == 202
        await events.until_answered()
        question = next(event.data for event in events.seen if event.name == "message")
    assert "image_url" in json.dumps(site.llm.prompts), "the other is answered beside it"
    (file,) = question["files"]
    assert file["is_image"]
    response = await visitor.client.get(file["url"])
    assert (response.content, response.headers["content-type"]) == (PNG, "image/png")
    assert "sandbox" in response.headers["content-security-policy"]
    assert (await other.client.get(file["url"])).status_code == 404
    for address in ("/web/files/999/0", file["url"][:-1] + "7", "/web/files/" + "9" * 40 + "/0"):
        assert (await visitor.client.get(address)).status_code == 404, address


async def test_a_new_chat_shows_nothing_of_the_old_one_and_is_the_same_persons(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        await visitor.say("my secret")
        await events.until_answered()
    old = visitor.client.cookies["botservice-session"]
    new = (await visitor.post("/web/new", {})).json()["conversation"]
    assert visitor.client.cookies["botservice-session"] == old
    async with visitor.events(conversation=new) as events:
        await events.until_idle()
        assert [event.name for event in events.seen] == ["state"]
        await visitor.say("hello", conversation=new)
        await events.until_answered()
        assert "my secret" not in str(events.seen)
    assert "my secret" not in str(site.llm.prompts[-1])


async def test_a_tab_that_was_open_before_a_new_chat_goes_on_in_its_own(site):
    visitor = await site.visitor()
    session = (await visitor.open()).text.partition('data-session="')[2].partition('"')[0]
    async with visitor.events() as events:
        assert (await visitor.say("one", chat=session)).status_code == 202
        await events.until_answered()
        await visitor.post("/web/new", {})
        assert (await visitor.say("two", chat=session)).status_code == 202
        await events.until_answered()
        assert events.texts == ["one", "You said: one", "two", "You said: two"]


async def test_a_tab_of_another_person_does_not_write_in_the_name_of_who_is_here_now(site):
    visitor, other = await site.visitor(), await site.visitor()
    session = (await other.open()).text.partition('data-session="')[2].partition('"')[0]
    refused = await visitor.say("two", chat=session)
    assert refused.status_code == 409
    assert "Somebody else has begun to use this browser." in refused.json()["error"]
    assert (await visitor.post("/web/stop", {"id": "stop-0001", "chat": session})).status_code == 409
    assert await site.count_events() == 0


async def test_nothing_is_accepted_that_is_not_stored(run_site):
    async with run_site(works=False) as site:
        visitor = await site.visitor()
        await site.storage.close()
        refused = await visitor.say("hello")
        assert (refused.status_code, refused.json()["error"]) == (503, "The database does not answer.")
        assert refused.headers["retry-after"]
        assert (await visitor.client.get("/inspect")).status_code == 503
        await site.storage
        assert (await visitor.say("hello")).status_code == 202


async def test_a_text_that_no_database_can_hold_does_no_harm(site):
    visitor = await site.visitor()
    async with visitor.events() as events:
        body = b'{"id": "message-1", "text": "lone \\ud83d and nul \\u0000", "name": "\\ud800"}'
        response = await visitor.client.post(
            "/web/messages", content=body, headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 202
        await events.until_answered()
        question = next(event.data for event in events.seen if event.name == "message")
        assert question["text"] == "lone \ufffd and nul \ufffd"
