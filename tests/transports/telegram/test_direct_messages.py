"""The direct messages of a channel: each person's topic is a conversation of its own, and is answered in it."""

from typing import Any

import pytest
from standins.bot_api import BotApi, Person
from standins.models import echo

from botservice import AgentContext, Button, Storage, Tool, ToolCall
from botservice.core.policies import AccessMode
from botservice.people.access import Access

CHANNEL = -1002000000001
ANN, BEN, EDITOR = Person(77, "Ann"), Person(78, "Ben"), Person(79, "Eve")


@pytest.fixture(autouse=True)
def direct_messages(api: BotApi) -> None:
    api.add_direct_messages(CHANNEL, members=[ANN, BEN, EDITOR])


def shown_to(api: BotApi, person: Person) -> list[str]:
    """Return the bot's messages in the topic of a person."""
    shown = [each for each in api.visible_messages(CHANNEL) if each.from_bot]
    return [each.text for each in shown if each.wire["direct_messages_topic"]["topic_id"] == person.id]


async def words(storage: Storage, **keys: str) -> list[str]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(CHANNEL), **keys})
    return [message.text for message in await context.chat_history.messages()]


@pytest.mark.parametrize("webhook", [False, True])
async def test_each_person_is_answered_in_their_topic_without_a_mention(
    api: BotApi, bot_on_both: Any, storage: Storage, webhook: bool
) -> None:
    async with bot_on_both(api, webhook=webhook) as bot:
        for person, text in ((ANN, "my pin is 4711"), (BEN, "what is her pin?")):
            api.person_says(text, chat_id=CHANNEL, user=person)
            await api.message(CHANNEL, f"You said: {text}")
        assert "4711" not in str(bot.llm.prompts[-1])
    assert (shown_to(api, ANN), shown_to(api, BEN)) == (["You said: my pin is 4711"], ["You said: what is her pin?"])
    assert await words(storage, direct_messages_topic_id="77") == ["my pin is 4711", "You said: my pin is 4711"]
    assert not api.calls("sendChatAction")


async def test_retry_answers_the_person_s_own_last_question(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api):
        api.person_says("from Ann", chat_id=CHANNEL, user=ANN)
        await api.message(CHANNEL, "You said: from Ann")
        api.person_says("/retry", chat_id=CHANNEL, user=BEN)
        await api.messages(CHANNEL, 2)
    assert len(shown_to(api, BEN)) == 1
    assert "Ann" not in shown_to(api, BEN)[0]


async def test_what_an_administrator_writes_to_a_person_is_not_answered(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api) as bot:
        api.person_says("I can help you, Ann", chat_id=CHANNEL, user=EDITOR, topic_of=ANN)
        api.person_says("thank you", chat_id=CHANNEL, user=ANN)
        await api.message(CHANNEL, "You said: Ann: thank you")
        assert "I can help you, Ann" in str(bot.llm.prompts[-1])
    assert shown_to(api, ANN) == ["You said: Ann: thank you"]


async def test_what_belongs_to_no_topic_there_belongs_to_no_conversation(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api) as bot:
        wire = {"message_id": 5, "date": 1, "chat": api.world.chats[CHANNEL].as_wire(), "from": BEN.as_user()}
        api.push_update({"message": {**wire, "text": "to whom?"}})
        api.person_says("hello", chat_id=CHANNEL, user=ANN)
        await api.message(CHANNEL, "You said: hello")
        assert "to whom?" not in str(bot.llm.prompts)


async def offer() -> list:
    """Offer a choice."""
    return ["Tea?", Button("Yes"), Button("No")]


async def test_a_pressed_button_says_its_words_in_the_topic(api: BotApi, bot_on: Any) -> None:
    def script(prompt: Any) -> Any:
        return ToolCall("1", "offer", {}) if prompt[-1]["content"] == "tea" else echo(prompt)

    async with bot_on(api, script, tools=[Tool(offer, is_final=True)]):
        api.person_says("tea", chat_id=CHANNEL, user=ANN)
        asked = await api.message(CHANNEL, "Tea?")
        api.person_presses(CHANNEL, asked.message_id, asked.buttons[0][0]["callback_data"], user=ANN)
        await api.message(CHANNEL, "You said: Yes")
    assert shown_to(api, ANN) == ["Tea?", "You said: Yes"]


async def test_a_long_answer_grows_in_the_topic(api: BotApi, bot_on: Any, typist: Any) -> None:
    async with bot_on(api, typist):
        api.person_says("tell me", chat_id=CHANNEL, user=ANN)
        await api.until(lambda: typist.prompts)
        typist.write("a long story " * 60)
        typist.finish()
        await api.until(lambda: "".join(shown_to(api, ANN)).count("story") == 60)


async def test_only_a_person_who_is_let_in_is_answered(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, access=Access(AccessMode.PAIRING, allowed=frozenset({"telegram:77"}))):
        for person in (BEN, ANN):
            api.person_says("hello", chat_id=CHANNEL, user=person)
        await api.message(CHANNEL, "You said: hello")
    assert (shown_to(api, ANN), shown_to(api, BEN)) == (["You said: hello"], [])
