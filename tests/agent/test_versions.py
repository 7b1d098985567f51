"""Values that changed, in five languages: a prompt shows the newest after the older ones, next to them, and marked."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from botservice import AgentContext, FunctionsBasedAgent, MessageWindowMessageSelector, ScriptedChatLLM
from botservice.core.quoting import FOUND_END, FOUND_START, found_records

DATA = Path(__file__).parents[1] / "data"
TOPICS = json.loads((DATA / "said_anew" / "versions.json").read_text("utf-8"))
TALK = json.loads((DATA / "paraphrases" / "talk.json").read_text("utf-8"))
START = datetime(2024, 3, 1, 9, tzinfo=UTC)
NEWER_ABOVE = "conversation above is newer"


async def say(history, lines):
    """Store what a person said, and short answers."""
    for number, text in enumerate(lines):
        at = START + timedelta(hours=7 * number)
        await history.append_user_message(text, created_at=at)
        await history.append_assistant_message("👍", created_at=at + timedelta(minutes=1))


async def found_for(context, asked, **options):
    """Return what a prompt shows of what was found, with its heading."""
    agent = FunctionsBasedAgent(
        llm=ScriptedChatLLM(["ok"]), message_selector=MessageWindowMessageSelector(6), **options
    )
    question = await context.chat_history.append_user_message(asked, created_at=START + timedelta(days=90))
    prompt = await agent.build_prompt(context)
    await context.chat_history.delete_messages([question.id])
    return next((str(each["content"]) for each in prompt if FOUND_START in str(each["content"])), "")


async def ask_all(storage, language):
    """Yield for each topic of a language whether the newest value is marked, and comes after all older ones."""
    topics, talk = TOPICS[language], [asked for asked, _ in TALK[language]]
    lines = []
    for number in range(max(len(topic["said"]) for topic in topics)):
        lines += [topic["said"][number] for topic in topics if number < len(topic["said"])]
        lines += talk[number * 5 : number * 5 + 5]
    context = await AgentContext.get_or_create(storage, {"chat": language})
    await say(context.chat_history, lines)
    for topic in topics:
        records = found_records(await found_for(context, topic["asked"])).splitlines()
        places = [[n for n, record in enumerate(records) if record.endswith(f": {text}")] for text in topic["said"]]
        assert all(places), topic
        yield places == sorted(places) and "(newer)" in records[places[-1][0]]


async def test_of_several_values_the_newest_comes_last_and_is_marked(storage):
    right = [each for language in TOPICS async for each in ask_all(storage, language)]
    assert len(right) == 25
    assert sum(right) >= 0.95 * len(right)


async def test_each_of_two_questions_has_its_versions_marked(context):
    lines = [
        "The rent is 800 a month",
        "My dog is called Rex",
        "The rent is 760 a month now",
        "My dog is called Max now",
    ]
    await say(context.chat_history, [*lines, *(f"talk {n}" for n in range(9))])
    found = await found_for(context, "How much is the rent and what is my dog called?")
    assert [text for text in lines if f"(newer): {text}" in found] == lines[2:]


async def test_a_newer_value_in_the_window_is_said_to_be_newer_than_what_was_found(context):
    await say(
        context.chat_history, ["The rent is 800 a month", *(f"talk {n}" for n in range(9)), "The rent is 760 now"]
    )
    found = await found_for(context, "How much is the rent a month?")
    assert "800" in found
    assert "760" not in found
    assert NEWER_ABOVE in found
    assert found.index(NEWER_ABOVE) < found.index(FOUND_START) < found.index(FOUND_END)


async def test_a_window_that_is_older_than_what_was_found_is_not_said_to_be_newer(context):
    class Oldest(MessageWindowMessageSelector):
        def get_messages(self, messages):
            return list(messages)[:2]

    await say(context.chat_history, [*(f"talk {n}" for n in range(9)), "The rent is 760 now", "never mind"])
    question = "How much is the rent a month?"
    await context.chat_history.append_user_message(question, created_at=START + timedelta(days=90))
    agent = FunctionsBasedAgent(llm=ScriptedChatLLM(["ok"]), message_selector=Oldest(2))
    found = next(
        str(each["content"]) for each in await agent.build_prompt(context) if FOUND_START in str(each["content"])
    )
    assert "760" in found
    assert NEWER_ABOVE not in found
