"""What the model hears, in other turns of a chat, of calls that wait for a word there."""

import pytest

from botservice import ScriptedChatLLM
from tests.turns.test_waiting import answering, pay, shop


def heard(llm):
    """Return what the newest prompt says of calls that wait."""
    return [each["content"] for each in llm.prompts[-1] if "wait until a person allows" in str(each["content"])]


async def test_other_questions_are_told_of_a_call_that_waits_until_it_is_decided(storage):
    llm = ScriptedChatLLM(answering(pay()))
    async with shop(storage, model=llm) as bot:
        await bot.say("pay Anna, my secret is 1234")
        (says,) = await bot.asked()
        assert heard(llm) == [], "its own turn is not told of it"
        await bot.say("hello", "bob")
        await bot.shows(lambda texts: texts[-1] == "re hello")
        (said,) = heard(llm)
        assert "1: pay." in said
        assert "Anna" not in said
        assert llm.prompts[-1][-2]["content"] == said, "the question comes last"
        await bot.say("hello", "bob", chat="2")
        await bot.shows(lambda texts: texts == ["re hello"], chat="2")
        assert heard(llm) == [], "other conversations are not told"
        await bot.press(says[0])
        await bot.shows(lambda texts: len(texts) == 3)
        assert heard(llm) == []
        await bot.say("hello again", "bob")
        await bot.shows(lambda texts: texts[-1] == "re hello again")
        assert heard(llm) == []


@pytest.mark.any_database
async def test_it_is_said_in_the_same_words_from_question_to_question(storage):
    llm = ScriptedChatLLM(answering(pay()))
    async with shop(storage, model=llm) as bot:
        await bot.say("pay Anna")
        await bot.asked()
        said = []
        for number in range(2):
            await bot.say(f"hello {number}", "bob")
            await bot.shows(lambda texts, at=number: texts[-1] == f"re hello {at}")
            said += heard(llm)
        assert said[0] == said[1]
        assert len(said[0]) < 400
