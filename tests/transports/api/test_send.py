"""`POST /api/send`: what a program says in a chat, once for each key."""

import asyncio

import pytest
from turns.test_worker import history

from botservice import AgentContext, Author
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.people.access_queries import grant
from botservice.people.access_values import AccessRole, Subject, SubjectKind
from tests.transports.api.serving import CHAT, TOKEN, serving

KEYS = {"transport": "messenger", "chat_id": "1"}


async def test_words_of_a_program_are_shown_and_in_the_history(storage):
    async with serving(storage) as served:
        answer = await served.send("The build is **red**.")
        assert answer.status_code == 202
        await served.messenger.shows("1", "The build is **red**.")
    assert await history(storage) == [("assistant", "The build is **red**.")]
    assert set(answer.json()) == {"message_id"}


async def test_the_same_key_again_is_the_first_message_with_its_id(storage):
    async with serving(storage) as served:
        first = await served.send("one", key="build-7")
        again = await asyncio.gather(*(served.send("other", key="build-7") for _ in range(5)))
        assert {(each.status_code, each.json()["message_id"]) for each in again} == {(200, first.json()["message_id"])}
        await served.send("two", key="build-8")
        await served.messenger.shows("1", "one", "two")


@pytest.mark.any_database
async def test_a_chat_is_named_by_its_number_too(storage):
    context = await AgentContext.get_or_create(storage, KEYS)
    async with serving(storage) as served:
        assert (await served.send("news", str(context.id))).status_code == 202
        await served.messenger.shows("1", "news")
        assert (await served.send("news", "99999")).status_code == 409


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"chat": CHAT}, '"text" must be a text'),
        ({"text": "news"}, '"chat" must be a text'),
        ({"chat": CHAT, "text": "\u200b"}, "what is sent"),
        ({"chat": "nowhere", "text": "news"}, "no chat is named so"),
        ({"chat": CHAT, "text": "news", "key": ""}, "key="),
        ({"chat": CHAT, "text": "news", "key": 7}, '"key" must be a text'),
        ({"chat": CHAT, "text": "news", "keys": "k"}, "unknown field 'keys'"),
        (["news"], "must be a JSON object"),
    ],
)
async def test_a_wrong_request_is_told_what_is_wrong_and_says_nothing(storage, body, says):
    async with serving(storage) as served:
        answer = await served.post("/api/send", body)
        assert answer.status_code == 400
        assert says in answer.json()["error"]["message"]
    assert await history(storage) == []


@pytest.mark.any_database
@pytest.mark.parametrize("token", [None, "x", "another-token-of-programs", TOKEN[:-1], TOKEN + "x", "ä"])
async def test_without_the_token_nothing_is_said(storage, token):
    async with serving(storage) as served:
        headers = {} if token is None else {b"authorization": b"Bearer " + token.encode()}
        answer = await served.client.post("/api/send", json={"chat": CHAT, "text": "news"}, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.any_database
async def test_where_no_token_is_set_there_is_nothing(storage):
    async with serving(storage, api_token=None) as served:
        for token in (None, "None", TOKEN):
            assert (await served.post("/api/send", {"chat": CHAT, "text": "news"}, token=token)).status_code == 404


@pytest.mark.any_database
async def test_a_body_that_is_too_large_is_not_read(storage):
    async with serving(storage) as served:
        assert await served.announce("/api/send", 2_000_000, authorization=f"Bearer {TOKEN}") == 413


async def test_nothing_is_said_in_a_chat_that_is_blocked(storage):
    context = await AgentContext.get_or_create(storage, KEYS)
    blocked = Subject.of("messenger:1", SubjectKind.CHAT)
    await storage.write(lambda connection: grant(connection, blocked, AccessRole.BLOCKED, "test", storage.now()))
    async with serving(storage) as served:
        answer = await served.send("news", str(context.id))
        assert answer.status_code == 403
        assert "messenger:1 is blocked or has no access" in answer.json()["error"]["message"]
    assert await history(storage) == []


@pytest.mark.any_database
async def test_where_only_some_are_let_in_the_bot_speaks_to_them_alone(storage):
    options = {"access": AccessMode.ALLOW, "allowed": "telegram:42,telegram:-100,telegram:-1007"}
    for chat in ("42", "43"):
        await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": chat})
    async with serving(storage, **options) as served:
        told = {
            chat: (await served.send("news", f"telegram:{chat}")).status_code
            for chat in ("42", "43", "-100", "-200", "-1007/5")
        }
    assert told == {"42": 202, "43": 403, "-100": 202, "-200": 403, "-1007/5": 202}


@pytest.mark.any_database
@pytest.mark.parametrize("chat", ["telegram:42", "web:nobody-has-it"])
async def test_a_person_who_never_wrote_is_refused_by_name(storage, chat):
    async with serving(storage) as served:
        answer = await served.send("hello", chat)
        assert answer.status_code == 403
        assert answer.json()["error"]["message"].startswith(f"{chat} never wrote to this bot")
    assert await history(storage) == []


@pytest.mark.any_database
async def test_a_program_that_is_served_may_not_speak_where_nobody_is_let_in(storage):
    context = await AgentContext.get_or_create(storage, KEYS)
    await context.chat_history.append_user_message("hi", author=Author("messenger", "7"))
    async with serving(storage, access=AccessMode.ALLOW) as served:
        with pytest.raises(Exception, match="has no access"):
            await served.application.service.send(context, "news")
    assert isinstance(served.application.service.options.access, Access)


@pytest.mark.any_database
async def test_a_chat_that_is_no_text_is_refused_like_any_other(storage):
    async with serving(storage) as served:
        body = b'{"chat": "transport=telegram chat_id=\\ud800", "text": "hi"}'
        answer = await served.client.post("/api/send", content=body, headers={"authorization": f"Bearer {TOKEN}"})
        assert (answer.status_code, "never wrote" in answer.json()["error"]["message"]) == (403, True)
