"""What a prompt takes from a history: the window, what was found, and what makes it understandable."""

from datetime import UTC, datetime, timedelta

import pytest

from botservice import MessageWindowMessageSelector, NoMessages
from botservice.history.searchable import question_of, searchable_text
from botservice.llm.chat import ChatMessage
from botservice.llm.demo import DemoChatLLM
from botservice.messages import Message, Role

START = datetime(2024, 3, 1, 9, tzinfo=UTC)


async def talk(history, *lines, start=START):
    """Store lines of "Name: text", a minute apart; the bot is "bot"."""
    for n, line in enumerate(lines):
        name, _, text = line.partition(": ")
        at = start + timedelta(minutes=n)
        if name == "bot":
            await history.append_assistant_message(text, created_at=at)
        else:
            await history.append_user_message(text, author=name, created_at=at)


async def found(history, k=1, selector=None):
    recall = await history.recall(selector or NoMessages(), search_k=k)
    return [(hit.message.text, hit.neighbour and hit.neighbour.text) for hit in recall.found]


async def test_a_short_answer_brings_its_question(context):
    history = context.chat_history
    await talk(history, "bot: When does the plumber come?", "Ann: Tuesday at nine")
    await talk(history, "Ann: what was it about Tuesday?", start=START + timedelta(days=3))
    assert await found(history) == [("Tuesday at nine", "When does the plumber come?")]


async def test_a_question_brings_its_answer(context):
    history = context.chat_history
    await talk(history, "Ann: what is the wifi password?", "bot: It is hunter2", "Ann: thanks")
    await talk(history, "Ann: I forgot the wifi password", start=START + timedelta(days=3))
    assert await found(history) == [("what is the wifi password?", "It is hunter2")]


async def test_neighbours_that_stand_in_the_prompt_are_not_brought(context):
    history = context.chat_history
    await talk(history, "Ann: what is the wifi password?", "bot: It is hunter2, as on the wifi router")
    await talk(history, "Ann: what is the wifi password again?", start=START + timedelta(days=3))
    assert {neighbour for _, neighbour in await found(history, k=2)} == {None}


@pytest.mark.parametrize(
    ("before", "days"),
    [("bot: Nice weather", 0), ("bot: When does the plumber come?", 1), ("Ann: When does the plumber come?", 0)],
    ids=["no question", "another talk", "the same person"],
)
async def test_what_is_no_question_to_it_is_not_brought(context, before, days):
    history = context.chat_history
    await talk(history, before)
    await talk(history, "Ann: Tuesday at nine", start=START + timedelta(days=days, minutes=1))
    await talk(history, "Ann: tell me about Tuesday, nine o'clock", start=START + timedelta(days=9))
    assert ("Tuesday at nine", None) in await found(history, k=3)


async def test_a_message_that_says_enough_brings_nothing(context):
    history = context.chat_history
    await talk(history, "bot: How are you?", "Ann: I am well, and my sister Clara moved to Lisbon last week")
    await talk(history, "Ann: where does Clara live now?", start=START + timedelta(days=3))
    assert await found(history) == [("I am well, and my sister Clara moved to Lisbon last week", None)]


async def test_what_stands_in_the_window_is_not_repeated(context):
    history = context.chat_history
    await talk(history, "Ann: My dog is called Rex", "bot: Nice", "Ann: Rex is two", "Ann: how old is my dog Rex?")
    assert [text for text, _ in await found(history, k=5, selector=MessageWindowMessageSelector(2))] == [
        "My dog is called Rex"
    ]


@pytest.mark.parametrize("text", ["ok", "OK!", "thanks :)", "👍", "[sticker]", "/start", "danke", "네", "好的", "…"])
async def test_nothing_is_looked_for_where_nothing_is_asked(context, text):
    history = context.chat_history
    await talk(history, f"Ann: {text}", "bot: ok", f"Ann: {text}")
    assert await found(history, k=3) == []


def test_a_command_asks_with_its_words():
    assert question_of(Message(role=Role.USER, text="/ask where is my passport", created_at=START)) == (
        "where is my passport"
    )


async def test_what_the_demo_says_is_no_memory():
    def ask(text, *, remembered=""):
        messages: list[ChatMessage] = [{"role": "system", "content": remembered}, {"role": "user", "content": text}]
        return DemoChatLLM().chat(messages, [{"type": "function", "function": {"name": "current_time"}}])

    record = "[2024-03-01 09:00 UTC] Ann: My dog is called Rex"
    for text, remembered in [
        ("hi", ""),
        ("My dog is called Rex", ""),
        ("what is my dog called?", ""),
        ("what is my dog called?", record),
    ]:
        answer = (await ask(text, remembered=remembered)).text
        assert searchable_text(Role.ASSISTANT, answer) == "", answer
        assert searchable_text(Role.USER, answer)
