"""What is found, in a prompt: within its tokens, each text once, readable."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from botservice import AgentService, FunctionsBasedAgent, MessageWindowMessageSelector, NoMessages, ScriptedChatLLM
from botservice.agent.remembering import recall
from botservice.conversation.step_records import read_steps
from botservice.core.messages import Attachment, Author, Message, Role
from botservice.core.quoting import found_records
from botservice.history.message_rendering import as_record, describe_found, records_of, room_for_found, size_of
from botservice.history.search_values import SearchHit
from botservice.llm.tokens import counter_for

pytestmark = pytest.mark.any_database

START = datetime(2024, 3, 1, 9, tzinfo=UTC)


def agent(**options):
    options = {"message_selector": NoMessages(), **options}
    return FunctionsBasedAgent(llm=ScriptedChatLLM([]), **options)


async def fill(history, count, text="my dog Rex likes the park number {n}"):
    for n in range(count):
        await history.append_user_message(text.format(n=n), author="Ann", created_at=START + timedelta(hours=n))
    await history.append_user_message("what does my dog Rex like?", author="Ann", created_at=START + timedelta(days=30))


async def found_in(context, **options):
    prompt = await agent(**options).build_prompt(context)
    first, end = prompt.sections().get("found", (0, 0))
    return prompt[first]["content"] if end else ""


async def records(context, **options):
    found = await found_in(context, **options)
    return found_records(found).splitlines() if found else []


@pytest.mark.parametrize("tokens", [200, 400, 1000])
async def test_what_is_found_keeps_to_its_tokens(context, tokens):
    await fill(context.chat_history, 60, "my dog Rex likes the park number {n} in the north of our beautiful town")
    found = await found_in(context, search_tokens=tokens, search_k=60)
    assert tokens * 0.6 < counter_for().count(found) <= tokens


async def test_what_is_found_comes_with_the_day_from_which_last_month_is_counted(context):
    await fill(context.chat_history, 20)
    heading, _, found = (await found_in(context)).partition("<memory>")
    assert "Today is Sunday, 2024-03-31." in heading
    assert "[2024-03-01 09:00 UTC]" in found


async def test_as_it_comes_24_messages_are_found_at_most(context):
    await fill(context.chat_history, 40, "dog Rex likes {n}")
    assert len(await records(context)) == 24


async def test_a_number_by_itself_is_exact_whatever_it_takes(context):
    await fill(context.chat_history, 40, "my dog Rex likes park {n} " + "and grass " * 60)
    assert len(await records(context, search_k=30)) == 30
    assert len(await records(context, search_k=30, search_tokens=300)) < 10
    assert await records(context, search_k=0) == []
    assert await records(context, search_tokens=0) == []


async def test_no_place_goes_to_what_the_window_shows(context):
    await fill(context.chat_history, 20)
    found = await records(context, search_k=12, message_selector=MessageWindowMessageSelector(8))
    assert len(found) == 12
    assert not any(f"number {n}" in record for n in range(12, 20) for record in found)


async def test_a_very_long_message_leaves_room_for_others(context):
    history = context.chat_history
    await history.append_user_message("my dog Rex likes " + "long walks " * 2_000, author="Ann", created_at=START)
    await fill(history, 12)
    found = await records(context)
    assert len(found) > 8
    assert any("long walks" in record and record.endswith("[… #1]") for record in found)


@pytest.mark.parametrize("name", ["Ann", "Ann\nMarie", None])
@pytest.mark.parametrize("text", ["hello", "나는 부산에 살아", "two\nlines", "x " * 3_000])
@pytest.mark.parametrize("attachments", [(), (Attachment("image/png", "cat.png", data=b"1"),)], ids=["text", "file"])
def test_a_record_takes_what_is_counted_for_it(text, name, attachments):
    counter = counter_for()
    author = Author(name=name) if name else None
    message = Message(1, Role.USER, text, attachments, author, START, counter.count(text))
    exact = counter.count(as_record(message) + "\n")
    assert exact <= size_of(message, counter) <= exact + 4


def test_a_shortened_record_fits():
    counter = counter_for()
    room = room_for_found(400, counter)
    for text in ("long walks " * 900, "산책 " * 900, "x" * 9_000):
        message = Message(1, Role.USER, text, (), None, START, counter.count(text))
        assert size_of(room.shorten(message, 90, ""), counter) <= 90


CHANGED = (
    ("Ann", "The rent for our flat is 800 a month", ""),
    ("Ann", "Good news: from May on the rent of the flat is 760 a month", " (newer)"),
    ("Bob", "I heard that the rent for a flat is 900 a month", ""),
    ("Ann", "the garden is full of roses", ""),
)


async def say_changed(history):
    for n, (name, text, _) in enumerate(CHANGED):
        await history.append_user_message(text, author=name, created_at=START + timedelta(days=n))
    asked = "How much is the rent of my flat a month?"
    await history.append_user_message(asked, author="Ann", created_at=START + timedelta(days=30))


async def test_what_one_person_said_anew_is_marked_and_stands_after_the_old(context):
    await say_changed(context.chat_history)
    found = await records(context)
    assert [each.split("] ", 1)[1] for each in found] == [f"{name}{mark}: {text}" for name, text, mark in CHANGED[:3]]


async def test_what_one_person_said_anew_stands_next_to_the_old_whatever_others_said_meanwhile(context):
    ann, newer, bob, other = CHANGED
    history = context.chat_history
    for n, (name, text, _) in enumerate([ann, bob, other, newer]):
        await history.append_user_message(text, author=name, created_at=START + timedelta(days=n))
    asked = "How much is the rent of my flat a month?"
    await history.append_user_message(asked, author="Ann", created_at=START + timedelta(days=30))
    found = [each.split("] ", 1)[1] for each in await records(context)]
    assert found == [f"{name}{mark}: {text}" for name, text, mark in (bob, ann, newer)]


def test_a_mark_stays_where_only_the_middle_one_of_three_versions_goes():
    counter = counter_for()
    texts = ("the rent is 800 a month", "the rent is 700 a month" + " really" * 30, "the rent is 600 a month")
    said = [Message(n, Role.USER, text, (), None, START, counter.count(text)) for n, text in enumerate(texts, 1)]
    hits = [SearchHit(said[place], 1.0) for place in (2, 0, 1)]
    sizes = [size_of(each, counter) for each in said]
    room = replace(room_for_found(10_000, counter), tokens=sum(sizes) + 4)
    room = replace(room, shorten=lambda message, most, asked: message)
    filled = room.fill(hits, "what is the rent a month?")
    assert [hit.message.id for hit in filled if hit.is_newer] == [3]
    assert records_of(filled).text.index("800") < records_of(filled).text.index("(newer): the rent is 600")


async def test_the_record_of_a_prompt_shows_what_was_marked(storage, context):
    await say_changed(context.chat_history)
    service = AgentService(agent(), storage=storage)
    service.agent.llm = ScriptedChatLLM(["760."])
    await service.prompt(context, "How much is the rent of my flat a month?")
    steps = await storage.read(lambda connection: read_steps(connection, context.id))
    kept = str(steps[-1].item.get_value("model_input_messages"))
    assert "Ann (newer): Good news" in kept
    assert "Ann: The rent" in kept


def test_the_marks_of_what_is_newer_are_counted():
    counter = counter_for()
    said = [Message(n + 1, Role.USER, f"the rent is {n} a month", (), None, START, 7) for n in range(40)]
    hits = [SearchHit(each, 1.0) for each in said]
    room = room_for_found(400, counter)
    filled = room.fill(hits, "what is the rent a month?")
    assert 5 < len(filled) < 40
    text = describe_found(records_of(filled), START)
    assert counter.count(text) <= 400
    assert text.count(" (newer): ") == len(filled) - 1


async def ask(history, question):
    for n in range(30):
        at = START + timedelta(days=n)
        await history.append_user_message(f"the kitchen of flat {n} needs a plumber and new paint", created_at=at)
    await history.append_user_message(question, created_at=START + timedelta(days=60))


WEAK = "weak matches"


async def test_what_has_little_to_do_with_the_question_is_said_to_be_weak(context):
    await ask(
        context.chat_history, "Which vaccinations, passports and insurances does Antarctica demand of new visitors?"
    )
    found = await found_in(context)
    assert WEAK in found
    assert counter_for().count(found) <= 600


@pytest.mark.parametrize(
    "question", ["Who paints the kitchen?", "What did I say on 3 March 2024?", "plumber", "does flat 7 need paint?"]
)
async def test_what_answers_is_no_weak_match(context, question):
    await ask(context.chat_history, question)
    found = await found_in(context)
    assert "kitchen" in found
    assert WEAK not in found


async def test_recall_says_that_matches_are_weak(context):
    await ask(context.chat_history, "hm")
    assert WEAK in await recall(context, "vaccinations passports insurances Antarctica new")
    assert WEAK not in await recall(context, "vaccinations Antarctica", more_queries=["kitchen plumber"])
