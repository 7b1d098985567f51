"""What the model reads of links, of the bot's own name, and of commands for other bots."""

from typing import Any

import pytest
from standins.bot_api import BotApi, Person

from transports.telegram.inbound_events import BotIdentity
from transports.telegram.inbound_messages import listen
from transports.telegram.message_fields import with_links, words_of

GROUP = -1001000000001
ADA = Person(1, "Ada")
BOT = BotIdentity(7, "your_bot")


def link(offset: int, length: int, url: str) -> dict[str, Any]:
    return {"type": "text_link", "offset": offset, "length": length, "url": url}


@pytest.mark.parametrize(
    ("text", "entities", "read"),
    [
        ("see this page", [link(4, 4, "https://a.example/x")], "see [this](https://a.example/x) page"),
        ("😀 this", [link(3, 4, "https://a.example")], "😀 [this](https://a.example)"),
        ("a [b]", [link(2, 3, "https://a.example")], r"a [\[b\]](https://a.example)"),
        ("https://good.example", [link(0, 20, "https://evil.example")], "[https://good.example](https://evil.example)"),
        ("https://a.example", [link(0, 17, "https://a.example")], "https://a.example"),
        (
            "one two",
            [link(4, 3, "https://b.example"), link(0, 3, "https://a.example/(1)")],
            "[one](<https://a.example/(1)>) [two](https://b.example)",
        ),
        ("odd", [{"type": "text_link", "offset": "x", "length": 1, "url": "https://a.example"}, None, 5], "odd"),
        ("plain", None, "plain"),
    ],
)
def test_the_address_behind_a_link_is_written_out(text: str, entities: Any, read: str) -> None:
    assert with_links(text, entities) == read


def test_the_links_of_a_rich_message_are_written_out() -> None:
    rich = {
        "blocks": [{"type": "paragraph", "text": ["see ", {"type": "url", "text": "it", "url": "https://a.example"}]}]
    }
    assert words_of(rich) == "see [it](https://a.example)"


async def test_links_of_captions_forwards_quotes_and_replies_reach_the_model(api: BotApi, bot_on: Any) -> None:
    entities = [link(0, 4, "https://a.example/x")]
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}
    button = {
        "inline_keyboard": [[{"text": "Buy", "url": "https://shop.example"}, {"text": "No", "callback_data": "n"}]]
    }
    async with bot_on(api) as bot:
        first = api.person_says("this is it", chat_id=42, entities=entities)
        await api.message(42)
        assert "[this](https://a.example/x) is it" in str(bot.llm.prompts[-1][-1])
        api.person_says("and?", chat_id=42, reply_to=first.message_id)
        await api.messages(42, 2)
        assert "[this](https://a.example/x) is it" in str(bot.llm.prompts[-1][-1])
        post = {"caption": "this is new", "caption_entities": entities, "reply_markup": button}
        api.person_sends({**post, "forward_origin": origin}, chat_id=42)
        await api.messages(42, 3)
    read = str(bot.llm.prompts[-1][-1])
    assert "[this](https://a.example/x) is new" in read
    assert "[Buy](https://shop.example)" in read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("@your_bot hello", "hello"),
        ("@your_bot @other_bot are you both there?", "@your_bot (you) @other_bot are you both there?"),
        ("@other_bot and @Your_Bot, hello", "@other_bot and @Your_Bot (you), hello"),
        ("@your_bot", "@your_bot"),
        ("hello @your_bot", "hello @your_bot"),
        ("@your_bot_2 and @your_bot", "@your_bot_2 and @your_bot (you)"),
    ],
)
def test_the_model_is_told_its_name_where_others_are_named_too(text: str, read: str) -> None:
    heard = listen({"message": {"message_id": 1, "chat": {"id": 1, "type": "private"}, "text": text}}, BOT)
    assert heard is not None
    assert heard.text == read


async def test_the_prompt_of_a_group_says_which_of_two_bots_the_model_is(api: BotApi, bot_on: Any) -> None:
    api.add_group(GROUP, members=[ADA])
    async with bot_on(api) as bot:
        api.person_says(f"@{api.username} @other_bot are you both there?", chat_id=GROUP, user=ADA)
        await api.message(GROUP)
    assert f"@{api.username} (you) @other_bot are you both there?" in str(bot.llm.prompts[-1][-1])


async def test_commands_for_other_bots_are_left_alone_in_groups(api: BotApi, bot_on: Any) -> None:
    api.add_group(GROUP, members=[ADA])
    async with bot_on(api) as bot:
        api.person_says("/ban spammer", chat_id=GROUP, user=ADA)
        api.person_says(f"/hlep@{api.username}", chat_id=GROUP, user=ADA)
        api.person_says("/help", chat_id=GROUP, user=ADA)
        await api.messages(GROUP, 2)
        assert not bot.llm.prompts
    assert not [each for each in api.visible_texts(GROUP) if "/ban" in each]
    async with bot_on(api):
        api.person_says("/ban spammer", chat_id=42)
        assert "/ban" in (await api.message(42)).text
