"""Tables, formulas and long answers come as rich messages, and plainly where a chat takes none."""

import json
from typing import Any

import pytest
from standins.bot_api import BotApi, LoseAnswer, RateLimits, Refuse
from standins.clocks import JumpingClock, fast_clock

from botservice import Storage
from transports.telegram.context import TelegramTempo
from transports.telegram.rich import as_rich

TABLE = "Here you are:\n\n| Name | Price |\n|:--|--:|\n| **Tea** | 2 |\n| Coffee | 3 |"
LONG = "\n\n".join(f"Paragraph {n}. " + "Some words follow. " * 30 for n in range(20))
NO_METHOD = Refuse(404, "Not Found: method not found")


def messages_sent(api: BotApi) -> list[str]:
    """Return the calls that showed or changed a message, in order."""
    quiet = ("sendChatAction", "sendMessageDraft", "sendRichMessageDraft")
    methods = [call.method for call in api.calls()]
    return [each for each in methods if each.startswith(("send", "edit")) and each not in quiet]


async def test_a_table_comes_as_a_table_in_one_call(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, [TABLE]):
        api.person_says("prices?", chat_id=42)
        shown = await api.message(42, "Coffee")
    assert shown.kind == "rich_message"
    table = shown.wire["rich_message"]["blocks"][1]
    assert [cell["text"] for cell in table["cells"][0]] == ["Name", "Price"]
    assert [cell["align"] for cell in table["cells"][1]] == ["left", "right"]
    assert messages_sent(api) == ["sendRichMessage"]


@pytest.mark.parametrize("text", ["Just **talk**, for $5 or $6.", "a | b", "- one\n- two", "`code`"])
async def test_plain_talk_stays_plain(api: BotApi, bot_on: Any, text: str) -> None:
    async with bot_on(api, [text]):
        api.person_says("hello", chat_id=42)
        await api.message(42)
    assert messages_sent(api) == ["sendMessage"]


async def test_a_long_answer_is_one_message(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, [LONG]):
        api.person_says("go on", chat_id=42)
        shown = await api.message(42, "Paragraph 19")
    assert shown.text.split() == LONG.split()
    assert messages_sent(api) == ["sendRichMessage"]


@pytest.mark.parametrize("refusal", [NO_METHOD, Refuse(400, "Bad Request: RICH_MESSAGE_UNSUPPORTED")])
async def test_a_chat_that_refuses_rich_messages_gets_plain_ones_from_then_on(
    api: BotApi, bot_on_both: Any, storage: Storage, refusal: Any, caplog: pytest.LogCaptureFixture
) -> None:
    api.order(refusal, "sendRichMessage", times=None)
    for _ in range(2):  # the second is another process
        async with bot_on_both(api, lambda _: TABLE):
            api.person_says("prices?", chat_id=42)
            await api.message(42, "Coffee", after=max([each.message_id for each in api.visible_messages(42)]))
    assert messages_sent(api) == ["sendRichMessage", "sendMessage", "sendMessage"]
    assert [record.message for record in caplog.records].count("transport.form_refused") == 1


@pytest.mark.parametrize(("choice", "rich_in"), [({"rich_messages": False}, []), ({"plain_chats": {"42"}}, [43])])
async def test_an_owner_can_turn_rich_messages_off_for_all_or_for_a_chat(
    api: BotApi, bot_on: Any, choice: Any, rich_in: list[int]
) -> None:
    api.add_private_chat(43)
    async with bot_on(api, lambda _: TABLE, **choice):
        for chat_id in (42, 43):
            api.person_says("prices?", chat_id=chat_id)
            await api.message(chat_id, "Coffee")
    rich = [call.params["chat_id"] for call in api.calls() if "Rich" in call.method]
    assert {int(each) for each in rich} == set(rich_in)
    assert "Name   | Price" in api.visible_texts(42)[-1]


async def test_the_plain_form_of_a_long_answer_comes_in_order_and_once(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, [LONG, "done"]):
        api.order(NO_METHOD, "sendRichMessage", times=None)
        api.person_says("go on", chat_id=42)
        api.person_says("and?", chat_id=42)
        await api.message(42, lambda shown: shown.text == "done", timeout=60)
    *parts, last = api.visible_texts(42)
    assert " ".join(parts).split() == LONG.split()
    assert last == "done"
    assert len(parts) > 1


async def test_a_part_whose_answer_was_lost_is_the_only_one_that_comes_twice(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, [LONG, "done"]):
        api.order(NO_METHOD, "sendRichMessage", times=None)
        api.order(LoseAnswer(), "sendMessage", when=lambda call: "Paragraph 10." in call.text("text"))
        api.person_says("go on", chat_id=42)
        api.person_says("and?", chat_id=42)
        await api.message(42, lambda shown: shown.text == "done", timeout=60)
    *parts, _ = api.visible_texts(42)
    assert len(parts) == len(set(parts)) + 1
    assert " ".join(dict.fromkeys(parts)).split() == LONG.split()


async def test_rich_messages_keep_to_the_published_limits(api: BotApi, bot_on: Any) -> None:
    clock = JumpingClock()
    api.limits = RateLimits(clock=clock)
    async with bot_on(api, lambda _: TABLE, pace=clock.pace(), clock=fast_clock()):
        for number in range(4):
            api.person_says(f"prices {number}?", chat_id=42)
        await api.messages(42, 4, timeout=60)
    assert api.limits.refused <= 1
    assert set(messages_sent(api)) == {"sendRichMessage"}


async def test_a_growing_message_of_a_group_becomes_the_table(api: BotApi, bot_on: Any, typist: Any) -> None:
    words = "Let me see what there is. " * 12 + "\n\n" + TABLE
    async with bot_on(api, typist, tempo=TelegramTempo(first_sign=0.01, draft=0.05, first_message=0.05, edit=0.05)):
        api.add_group(-1001)
        api.person_says(f"@{api.username} prices?", chat_id=-1001)
        typist.write(words[:300])
        opened = await api.message(-1001, "Let me see")
        typist.write(words[300:])
        typist.finish()
        shown = await api.message(-1001, lambda each: each.kind == "rich_message")
    assert (shown.message_id, shown.kind) == (opened.message_id, "rich_message")
    assert len(api.visible_messages(-1001, from_bot=True)) == 1


@pytest.mark.parametrize(
    ("markdown", "kinds"),
    [
        ("$$E=mc^2$$", ["mathematical_expression"]),
        ("It is $a^2$.", ["paragraph"]),
        (
            "# T\n\n- [x] done\n- [ ] open\n\n> said\n\n---\n\n```py\nx = 1\n```\n\n$$x$$",
            ["heading", "list", "blockquote", "divider", "pre", "mathematical_expression"],
        ),
        (
            "$x$\n\nSources\n1. [a](https://a.bc)\n2. [b](https://b.cd)\n3. [c](https://c.de)",
            ["paragraph", "paragraph", "expandable_blockquote"],
        ),
    ],
)
def test_markdown_becomes_blocks(markdown: str, kinds: list[str]) -> None:
    rich = as_rich(markdown, is_long=False)
    assert rich is not None
    assert [block["type"] for block in rich["blocks"]] == kinds


def test_a_point_with_a_box_keeps_its_number() -> None:
    """The points of a list are all numbered, or none is: Telegram refuses a list of both."""
    rich = as_rich("1. [x] $x$\n2. [ ] open\n3. no box", is_long=False)
    assert rich is not None
    items = [{name: held for name, held in each.items() if name != "blocks"} for each in rich["blocks"][0]["items"]]
    numbers = [{"type": "1", "value": number} for number in (1, 2, 3)]
    boxes: list[dict[str, Any]] = [{"has_checkbox": True, "is_checked": True}, {"has_checkbox": True}, {}]
    assert items == [number | box for number, box in zip(numbers, boxes, strict=True)]


def test_pictures_and_tags_of_a_model_are_words() -> None:
    rich = as_rich("$x$ ![leak](https://evil.example/?q=1) <tg-button>press</tg-button>", is_long=False)
    said = json.dumps(rich)
    assert '"photo"' not in said
    assert "<tg-button>" in said


@pytest.mark.parametrize(
    "markdown", ["|" + "a|" * 21 + "\n|" + "-|" * 21 + "\n|" + "1|" * 21, "word " * 7000, "- x\n" * 600 + "\n$$y$$"]
)
def test_what_is_more_than_a_rich_message_holds_stays_plain(markdown: str) -> None:
    assert as_rich(markdown, is_long=True) is None


async def test_sources_fold_in_plain_messages_too(api: BotApi, bot_on: Any) -> None:
    sources = "\n".join(f"{n}. [Page {n}](https://example.com/{n}) (example.com)" for n in range(1, 5))
    async with bot_on(api, [f"So it is [1].\n\nSources:\n{sources}"]):
        api.person_says("why?", chat_id=42)
        shown = await api.message(42, "Page 4")
    (quote,) = [each for each in shown.entities if each["type"] == "expandable_blockquote"]
    assert shown.text[quote["offset"] :].startswith("1. Page 1")
    assert messages_sent(api) == ["sendMessage"]
