"""Comments below a channel's post: a message is one of them only as a reply, so every message of an answer is one."""

from typing import Any

import pytest
from standins.bot_api import BotApi, Person, Refuse, Said
from standins.clocks import fast_clock

from botservice import Attachment, Tool, ToolCall
from transports.telegram.context import TelegramTempo

GROUP = -1001000000001
ANNA, BERTA = Person(101, "Anna", username="anna"), Person(102, "Berta", username="berta")
TELEGRAM = Person(777000, "Telegram")
NO_METHOD = Refuse(404, "Not Found: method not found")
LONG = "\n\n".join(f"Paragraph {n}. " + "Some words follow. " * 30 for n in range(20))
CHART = b"\x89PNG\r\n\x1a\n" + bytes(64)
QUICK = TelegramTempo(first_sign=0.0, typing=0.05, draft=0.01, first_message=0.01, edit=0.01)


@pytest.fixture
def group(api: BotApi) -> BotApi:
    api.add_group(GROUP, members=[ANNA, BERTA])
    return api


def post(api: BotApi) -> Said:
    """Let a channel's post come into its group."""
    channel = {"id": -1002000000009, "type": "channel", "title": "News"}
    origin = {"type": "channel", "chat": channel, "message_id": 5, "date": 1}
    content = {"text": "News", "sender_chat": channel, "is_automatic_forward": True, "forward_origin": origin}
    return api.person_sends(content, chat_id=GROUP, user=TELEGRAM)


def ask(api: BotApi, text: str, to: int | None, user: Person = ANNA) -> Said:
    return api.person_says(f"@{api.username} {text}", chat_id=GROUP, user=user, reply_to=to)


def replies(api: BotApi) -> list[int | None]:
    return [each.reply_to for each in api.visible_messages(GROUP, from_bot=True)]


def drawing(*found: Any) -> dict[str, Any]:
    """Return the options of a bot that answers with what a tool gives."""

    async def draw() -> Any:
        """Draw."""
        return list(found)

    return {"script": [ToolCall("1", "draw", {})], "tools": [Tool(draw, is_final=True)]}


async def test_every_message_of_an_answer_stays_among_the_comments(group: BotApi, bot_on: Any) -> None:
    async with bot_on(group, [LONG]):
        group.order(NO_METHOD, "sendRichMessage", times=None)
        root = post(group)
        asked = ask(group, "tell us", root.message_id)
        await group.message(GROUP, "Paragraph 19", timeout=60)
    shown = group.visible_messages(GROUP, from_bot=True)
    assert len(shown) > 2
    assert {each.reply_to for each in shown} == {asked.message_id}
    assert {each.wire["message_thread_id"] for each in shown} == {root.message_id}


async def test_files_albums_and_what_comes_in_their_place_stay_there_too(group: BotApi, bot_on: Any) -> None:
    pictures = [Attachment("image/png", f"p{n}.png", CHART + bytes([n])) for n in range(2)]
    files = [*pictures, Attachment("text/csv", "data.csv", b"a,b\n1,2\n")]
    async with bot_on(group, **drawing("word " * 400, *files)):
        group.order(Refuse(400, "Bad Request: IMAGE_PROCESS_FAILED"), "sendMediaGroup", times=None)
        asked = ask(group, "draw", post(group).message_id)
        await group.message(GROUP, lambda message: message.kind == "document", timeout=60)
    assert replies(group) == [asked.message_id] * 4
    assert "reply_parameters" in group.calls("sendMediaGroup")[0].params


async def test_an_answer_to_a_comment_on_a_comment_stays_there(group: BotApi, bot_on: Any) -> None:
    async with bot_on(group, **drawing("word " * 400, Attachment("text/csv", "data.csv", b"a,b\n1,2\n"))):
        root = post(group)
        comment = group.person_says("I wonder", chat_id=GROUP, user=BERTA, reply_to=root.message_id)
        asked = ask(group, "and you?", comment.message_id)
        await group.message(GROUP, lambda message: message.kind == "document", timeout=60)
    assert replies(group) == [asked.message_id] * 2


async def test_a_question_that_is_gone_costs_no_message(group: BotApi, bot_on: Any) -> None:
    def delete(_: object) -> str:
        group.person_deletes(GROUP, asked.message_id)
        return LONG

    async with bot_on(group, delete):
        group.order(NO_METHOD, "sendRichMessage", times=None)
        asked = ask(group, "tell us", post(group).message_id)
        await group.message(GROUP, "Paragraph 19", timeout=60)
    assert set(replies(group)) == {None}


async def test_what_grew_and_was_deleted_comes_anew_as_a_comment(group: BotApi, bot_on: Any, typist: Any) -> None:
    async with bot_on(group, typist, tempo=QUICK, clock=fast_clock()):
        asked = ask(group, "tell us", post(group).message_id)
        typist.write("Here is one more sentence. " * 20)
        first = await group.message(GROUP)
        group.person_deletes(GROUP, first.message_id)
        typist.write("The end.")
        typist.finish()
        shown = await group.message(GROUP, "The end.")
    assert shown.message_id != first.message_id
    assert shown.reply_to == asked.message_id


@pytest.mark.parametrize("is_forum", [True, False])
@pytest.mark.parametrize("is_reply", [True, False])
async def test_in_other_groups_the_first_message_alone_replies(
    api: BotApi, bot_on: Any, *, is_forum: bool, is_reply: bool
) -> None:
    api.add_group(GROUP, members=[ANNA, BERTA], is_forum=is_forum)
    async with bot_on(api, [LONG]):
        api.order(NO_METHOD, "sendRichMessage", times=None)
        said = api.person_says("I wonder", chat_id=GROUP, user=BERTA)
        asked = ask(api, "tell us", said.message_id if is_reply else None)
        await api.message(GROUP, "Paragraph 19", timeout=60)
    first, *others = replies(api)
    assert first == asked.message_id
    assert others
    assert set(others) == {None}
