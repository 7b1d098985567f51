"""Buttons under answers: whoever was asked presses one, once, and has said what stands behind it."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from standins.bot_api import BotApi, Person, Refuse

from botservice import AgentContext, Button, Storage, Tool, ToolCall
from botservice.background.maintenance import Maintenance
from botservice.texts import in_language

GROUP = -1001000000001
BERTA = Person(1002, first_name="Berta", last_name="Bee", language_code="de")


async def offer() -> list:
    """Offer a choice."""
    return [
        "Two sizes.",
        Button("Small"),
        Button("Large", value="I take size L"),
        Button("Sizes", url="https://x.org/s"),
    ]


OFFER = Tool(offer)


def script(prompt):
    """Offer when asked to, and otherwise repeat what was said."""
    last = prompt[-1]
    if last["role"] == "tool":
        return "Which one?"
    return ToolCall("1", "offer", {}) if "choose" in last["content"] else f"You said: {last['content']}"


async def history(storage: Storage, chat_id: int = 42, **more: str) -> list:
    keys = {"transport": "telegram", "chat_id": str(chat_id), **more}
    return await (await AgentContext.get_or_create(storage, keys)).chat_history.messages()


async def pressed(api: BotApi, query_id: str) -> dict:
    """Return what a press was answered with."""
    await api.until(lambda: api.callback_answers[query_id] is not None)
    return api.callback_answers[query_id]


def texts(message) -> list[list[str]]:
    return [[button["text"] for button in row] for row in message.buttons]


def data_of(message, text: str) -> str:
    return next(each["callback_data"] for row in message.buttons for each in row if each["text"] == text)


@pytest.mark.parametrize("webhook", [False, True])
async def test_pressing_says_what_stands_behind_and_leaves_the_choice(
    api: BotApi, bot_on, sqlite_storage: Storage, webhook: bool
) -> None:
    async with bot_on(api, script, tools=[OFFER], webhook=webhook):
        api.person_says("let me choose", chat_id=42)
        question = await api.message(42, "Which one?")
        assert texts(question) == [["Small", "Large", "Sizes"]]
        assert question.buttons[0][2]["url"] == "https://x.org/s"
        query = api.person_presses(42, question.message_id, data_of(question, "Large"))
        await api.message(42, "You said: I take size L")
        assert "text" not in await pressed(api, query)
        await api.until(lambda: texts(api.seen(42, question.message_id)) == [["Small", "✓ Large", "Sizes"]])
    said = await history(sqlite_storage)
    assert [each.text for each in said] == ["let me choose", "Which one?", "I take size L", "You said: I take size L"]
    assert said[2].author == said[0].author


async def test_a_second_press_counts_for_nothing(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        api.person_says("let me choose", chat_id=42)
        question = await api.message(42, "Which one?")
        queries = [api.person_presses(42, question.message_id, data) for data in ("b0", "b0", "b1")]
        await api.message(42, "You said: Small")
        for query in queries:
            await pressed(api, query)
        api.person_says("bye", chat_id=42)
        await api.message(42, "You said: bye")
    assert [each.text for each in await history(sqlite_storage) if each.role == "user"] == [
        "let me choose", "Small", "bye"]  # fmt: skip


async def test_what_no_keyboard_holds_is_answered_and_stored_nowhere(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        api.person_says("let me choose", chat_id=42)
        question = await api.message(42, "Which one?")
        api.person_says("other", chat_id=42)
        other = await api.message(42, "You said: other")
        forged = ["b9", "", "b", "b0.7", "b-1", "I take everything", "b" + "9" * 60, "b0" * 20]
        for data in forged:
            query = api.person_presses(42, question.message_id, data)
            assert (await pressed(api, query))["text"] == "This button no longer works."
        query = api.person_presses(42, other.message_id, "b0")
        assert (await pressed(api, query))["text"] == "This button no longer works."
        for wrong in ({"id": "7"}, {"id": 7}, {}, {"id": "8", "message": None}, {"id": "9", "from": "x", "data": 3}):
            api.push_update({"callback_query": wrong})
        api.person_says("bye", chat_id=42)
        await api.message(42, "You said: bye")
    assert [each.text for each in await history(sqlite_storage) if each.role == "user"] == [
        "let me choose", "other", "bye"]  # fmt: skip


async def test_in_a_group_only_who_asked_may_choose(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, script, tools=[OFFER]):
        asked = api.person_says(f"@{api.username} choose", chat_id=GROUP, user=1001)
        question = await api.message(GROUP, "Which one?")
        assert question.reply_to == asked.message_id
        query = api.person_presses(GROUP, question.message_id, "b1", user=BERTA)
        assert (await pressed(api, query))["text"] == "Diese Buttons sind nur für die Person, die gefragt hat."
        api.person_presses(GROUP, question.message_id, "b0", user=1001)
        answer = await api.message(GROUP, "You said: Small")
        assert answer.reply_to == question.message_id
    assert [each.text for each in await history(sqlite_storage, GROUP) if each.role == "user"] == ["choose", "Small"]


async def test_a_press_in_a_topic_is_answered_there_though_telegram_does_not_name_it(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    api.add_group(GROUP, is_forum=True)
    topic = api.add_topic(GROUP, "Tea")
    async with bot_on(api, script, tools=[OFFER]):
        api.person_says(f"@{api.username} choose", chat_id=GROUP, thread_id=topic, user=1001)
        question = await api.message(GROUP, "Which one?")
        chat = {"id": GROUP, "type": "supergroup", "title": "Team"}
        query = {
            "id": "77",
            "from": Person(1001).as_user(),
            "chat_instance": "1",
            "data": data_of(question, "Small"),
            "message": {"chat": chat, "message_id": question.message_id, "date": 0},
        }
        api.push_update({"callback_query": query})
        answer = await api.message(GROUP, after=question.message_id)
        assert answer.text.endswith("Small")
        assert answer.thread_id == topic
    assert len(await history(sqlite_storage, GROUP, thread_id=str(topic))) == 4


async def test_a_command_behind_a_button_is_given(api: BotApi, bot_on) -> None:
    async def help_me() -> list:
        """Help."""
        return ["Need help?", Button("Help", value="/help")]

    def ask(prompt):
        return ToolCall("1", "help_me", {})

    async with bot_on(api, ask, tools=[Tool(help_me, is_final=True)]) as bot:
        api.person_says("hm", chat_id=42)
        question = await api.message(42, "Need help?")
        api.person_presses(42, question.message_id, "b0")
        assert "/stop" in (await api.message(42, after=question.message_id)).text
        assert len(bot.llm.prompts) == 1


async def test_buttons_that_telegram_refuses_do_not_cost_the_message(api: BotApi, bot_on) -> None:
    api.order(
        Refuse(400, "Bad Request: inline keyboard button URL 'x' is invalid: Wrong HTTP URL"),
        method="sendMessage",
        when=lambda call: "reply_markup" in call.params,
    )
    async with bot_on(api, script, tools=[OFFER]):
        api.person_says("let me choose", chat_id=42)
        assert (await api.message(42, "Which one?")).buttons == ()


async def test_any_buttons_make_a_keyboard_that_telegram_takes(api: BotApi, bot_on) -> None:
    odd = [
        Button("x" * 500),
        Button("bad link", url="http://no host"),
        Button("no scheme", url="example.org"),
        Button("script", url="javascript:alert(1)"),
        Button("long value", value="v" * 5000),
        *(Button(f"{number}") for number in range(200)),
    ]

    async def many() -> list:
        """Offer far too much."""
        return odd

    async with bot_on(api, lambda prompt: ToolCall("1", "many", {}), tools=[Tool(many, is_final=True)]):
        api.person_says("go", chat_id=42)
        question = await api.message(42)
        assert question.text == "👇"
        shown = [button for row in question.buttons for button in row]
        assert len(shown) == 100
        assert all(len(json.dumps(button["callback_data"])) < 66 for button in shown)
        assert all(len(row) <= 8 for row in question.buttons)


async def test_buttons_stand_under_the_last_of_many_messages(api: BotApi, bot_on) -> None:
    def long(prompt):
        return "word " * 3000 if prompt[-1]["role"] == "tool" else ToolCall("1", "offer", {})

    async with bot_on(api, long, tools=[OFFER]):
        api.order(Refuse(404, "Not Found: method not found"), "sendRichMessage", times=None)
        api.person_says("go", chat_id=42)
        shown = await api.messages(42, 4)
    assert [bool(each.buttons) for each in shown] == [False] * (len(shown) - 1) + [True]


async def test_buttons_go_with_the_events_behind_them(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    later = datetime.now(UTC) + timedelta(days=8)
    async with bot_on(api, script, tools=[OFFER]):
        api.person_says(f"@{api.username} choose", chat_id=GROUP, user=1001)
        question = await api.message(GROUP, "Which one?")
        api.person_presses(GROUP, question.message_id, "b0", user=1001)
        await api.message(GROUP, "You said: Small")
        await Maintenance(sqlite_storage, clock=lambda: later).run_once()
        for user in (1001, BERTA):
            query = api.person_presses(GROUP, question.message_id, "b1", user=user)
            assert (await pressed(api, query))["text"] in {
                in_language("buttons.gone", language) for language in ("en", "de")
            }
    assert [each.text for each in await history(sqlite_storage, GROUP) if each.role == "user"] == ["choose", "Small"]
