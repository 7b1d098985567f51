"""Whatever Telegram says to something new, nobody loses an answer: its words come as before, once."""

from typing import Any

import pytest
from standins.bot_api import BotApi, MessageShown, Refuse, server_error
from standins.clocks import fast_clock

from botservice import Attachment, Button, ButtonStyle, Storage, Tool, ToolCall
from botservice.storage.tables.conversations import refused_forms

GROUP = -1001000000001
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
TABLE = "Here you are:\n\n| Name | Price |\n|:--|--:|\n| Tea | 2 |"
WORDS = "There they are."


def shown(api: BotApi) -> list[str]:
    return [each.text for each in api.journal.entries(MessageShown) if each.from_bot and each.text]


async def kept(storage: Storage) -> list[str]:
    rows = await storage.read(lambda connection: connection.execute(refused_forms.select()).all())
    return sorted(row.form for row in rows)


def pictures(count: int) -> Tool:
    async def draw() -> list[Any]:
        """Draw."""
        return [WORDS, *(Attachment("image/png", f"p{n}.png", PNG + bytes([n])) for n in range(count))]

    return Tool(draw, is_final=True)


@pytest.mark.parametrize(
    "refusal",
    [
        Refuse(400, "Bad Request: not enough rights to send ephemeral messages to the chat"),
        Refuse(400, "Bad Request: need administrator rights in the channel chat"),
        Refuse(400, "Bad Request: user not found"),
        Refuse(400, "Bad Request: PEER_ID_INVALID"),
        Refuse(403, "Forbidden: bot is not an administrator of the chat"),
        Refuse(400, "Bad Request: EPHEMERAL_WHATEVER"),
    ],
    ids=str,
)
async def test_what_one_person_alone_was_to_see_is_said_as_before(
    api: BotApi, bot_on: Any, sqlite_storage: Storage, refusal: Refuse
) -> None:
    api.add_group(GROUP)
    api.world.chats[GROUP].bot_status = "administrator"
    tried = api.order(
        refusal, "sendMessage", when=lambda call: "ephemeral_message_parameters" in call.params, times=None
    )
    async with bot_on(api):
        for count in (1, 2):
            api.person_says(f"/usage@{api.username}", chat_id=GROUP, user=1001)
            await api.messages(GROUP, count, "UTC")
    assert (tried.used, len(shown(api))) == (1, 2)
    assert await kept(sqlite_storage) == ["personal"]


@pytest.mark.parametrize(
    "refusal",
    [
        Refuse(400, "Bad Request: not enough rights to send rich messages to the chat"),
        Refuse(400, "Bad Request: CHAT_SEND_RICH_FORBIDDEN"),
        Refuse(403, "Forbidden: rich messages can't be sent to the chat"),
    ],
    ids=str,
)
async def test_a_table_that_may_not_be_sent_comes_as_text(
    api: BotApi, bot_on: Any, sqlite_storage: Storage, refusal: Refuse
) -> None:
    tried = api.order(refusal, "sendRichMessage", times=None)
    async with bot_on(api, lambda _: TABLE):
        for count in (1, 2):
            api.person_says("prices?", chat_id=42)
            await api.messages(42, count, "Tea")
    assert (tried.used, len(shown(api))) == (1, 2)
    assert await kept(sqlite_storage) == ["rich"]


@pytest.mark.parametrize("status", [500, 502, 403, 404])
async def test_a_server_that_fails_at_rich_messages_alone_holds_no_answer_back(
    api: BotApi, bot_on: Any, sqlite_storage: Storage, status: int
) -> None:
    api.order(server_error(status, html=True), "sendRichMessage", times=None)
    async with bot_on(api, lambda _: TABLE, clock=fast_clock()):
        api.person_says("prices?", chat_id=42)
        await api.message(42, "Tea", timeout=30)
    assert await kept(sqlite_storage) == [], "a server in trouble has not refused a form"


async def test_a_token_that_is_refused_for_a_while_leaves_rich_messages_on(
    api: BotApi, bot_on: Any, sqlite_storage: Storage
) -> None:
    api.order(Refuse(401, "Unauthorized"), "sendRichMessage")
    async with bot_on(api, lambda _: TABLE, clock=fast_clock()):
        api.person_says("prices?", chat_id=42)
        assert (await api.message(42, "Tea", timeout=30)).kind == "rich_message"
    assert await kept(sqlite_storage) == []


@pytest.mark.parametrize(
    ("refusal", "count"),
    [
        (Refuse(400, "Bad Request: not enough rights to send photos to the chat"), 1),
        (Refuse(400, "Bad Request: CHAT_SEND_PHOTOS_FORBIDDEN"), 2),
        (Refuse(403, "Forbidden: CHAT_SEND_MEDIA_FORBIDDEN"), 1),
        (Refuse(403, "Forbidden: CHAT_SEND_MEDIA_FORBIDDEN"), 3),
    ],
    ids=str,
)
async def test_where_no_pictures_may_be_sent_the_words_come(
    api: BotApi, bot_on: Any, refusal: Refuse, count: int
) -> None:
    for method in ("sendMediaGroup", "sendPhoto", "sendDocument"):
        api.order(refusal, method, times=None)
    async with bot_on(api, [ToolCall("1", "draw", {}), "next"], tools=[pictures(count)]):
        api.person_says("draw", chat_id=42)
        api.person_says("and?", chat_id=42)
        await api.message(42, "next")
    assert shown(api)[-2:] == [WORDS, "next"]


async def test_an_album_that_is_too_large_for_one_call_comes_file_by_file(
    api: BotApi, bot_on: Any, sqlite_storage: Storage
) -> None:
    api.order(Refuse(413, "Request Entity Too Large"), "sendMediaGroup")
    async with bot_on(api, lambda _: ToolCall("1", "draw", {}), tools=[pictures(2)]):
        api.person_says("draw", chat_id=42)
        assert [each.text for each in await api.messages(42, 2)] == [WORDS, ""]
        api.person_says("draw", chat_id=42)
        await api.messages(42, 4)
    assert len(api.calls("sendMediaGroup")) == 2, "smaller ones may pass"


@pytest.mark.parametrize("text", ["STYLE_INVALID", "DATE_TIME_INVALID", "Wrong something"])
async def test_colours_that_are_refused_in_any_words_are_left_out(
    api: BotApi, bot_on: Any, sqlite_storage: Storage, text: str
) -> None:
    async def ask() -> list[Any]:
        """Ask."""
        return ["Which?", Button("Small", style=ButtonStyle.DANGER)]

    tried = api.order(Refuse(400, f"Bad Request: {text}"), when=lambda call: "danger" in str(call.params), times=None)
    async with bot_on(api, lambda _: ToolCall("1", "ask", {}), tools=[Tool(ask, is_final=True)]):
        for count in (1, 2):
            api.person_says("ask", chat_id=42)
            found = await api.messages(42, count, "Which?")
    assert [bool(each.buttons) for each in found] == [True, True]
    assert tried.used == 1
    assert await kept(sqlite_storage) == ["colours"]


async def test_a_press_that_is_long_ago_turns_nothing_off(api: BotApi, bot_on: Any, sqlite_storage: Storage) -> None:
    api.add_group(GROUP)
    api.world.chats[GROUP].bot_status = "administrator"
    too_old = Refuse(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
    api.order(too_old, "sendMessage", when=lambda call: "callback_query_id" in str(call.params))

    async def ask() -> list[Any]:
        """Ask."""
        return ["Which?", Button("Small", value="/usage")]

    async with bot_on(api, [ToolCall("1", "ask", {})], tools=[Tool(ask, is_final=True)]):
        api.person_says(f"@{api.username} ask me", chat_id=GROUP, user=1001)
        offered = await api.message(GROUP, "Which?")
        api.person_presses(GROUP, offered.message_id, offered.buttons[0][0]["callback_data"], user=1001)
        await api.message(GROUP, "UTC")
    assert await kept(sqlite_storage) == []
