"""Long messages in a prompt and in `recall`: the passages that were asked for, wherever they stand."""

from datetime import UTC, datetime, timedelta

import pytest

from botservice import AgentContext, FunctionsBasedAgent, NoMessages, ScriptedChatLLM
from botservice.agent.remembering import recall
from botservice.conversation.step_records import read_steps
from botservice.core.messages import Message, Role
from botservice.core.quoting import found_records
from botservice.history.excerpts import make_excerpt
from botservice.history.message_rendering import room_for_found, size_of
from botservice.llm.tokens import counter_for
from botservice.search.passages import _words_of, rank_passages, split_passages
from botservice.service import AgentService

pytestmark = pytest.mark.any_database

START = datetime(2024, 3, 1, 9, tzinfo=UTC)
CLAUSE = "Either party may end this agreement with a notice period of eleven weeks."
ASKED = "How long is the notice period in the contract?"
SENTENCES = (
    "The landlord keeps the stairs clean and lit.",
    "Rent is due on the third working day of each month, by transfer.",
    "Bicycles stand in the yard, prams in the hall.",
    "Repairs below a hundred euros are paid by whoever lives there.",
)


def contract(words, place):
    """Return a contract of so many words with the clause at a place from 0 (first) to 1 (last)."""
    count = max(2, words // 9)
    sentences = [f"§ {n}. {SENTENCES[n % len(SENTENCES)]}" for n in range(count)]
    sentences.insert(round(place * count), CLAUSE)
    return "This is the contract. " + " ".join(sentences)


async def put(history, text, *, is_reply=False):
    """Store a long message, much other talk, and the question."""
    append = history.append_assistant_message if is_reply else history.append_user_message
    said = await append(text, created_at=START)
    for n in range(30):
        at = START + timedelta(days=1, minutes=n)
        await history.append_user_message(f"the weather is fine in period {n} of the year, is it not", created_at=at)
        await history.append_assistant_message(f"It is, and the garden has {n} roses", created_at=at)
    await history.append_user_message(ASKED, created_at=START + timedelta(days=9))
    return said


def test_the_words_of_long_texts_are_remembered_within_bounds():
    for n in range(60):
        rank_passages(f"text {n}: " + contract(2_000, 0.5), ASKED, 240)
    rank_passages(contract(200_000, 0.5), ASKED, 240)
    assert 0 < _words_of.cache.currsize <= 500_000


def agent(**options):
    return FunctionsBasedAgent(llm=ScriptedChatLLM(["Eleven weeks."]), message_selector=NoMessages(), **options)


async def found_in(context, **options):
    prompt = await agent(**options).build_prompt(context)
    first, _ = prompt.sections()["found"]
    return prompt[first]["content"]


@pytest.mark.parametrize("words", [150, 2_000, 20_000])
@pytest.mark.parametrize("place", [0, 0.5, 1])
@pytest.mark.parametrize("is_reply", [False, True], ids=["said", "reply"])
async def test_the_asked_passage_of_a_long_message_stands_in_the_prompt(context, words, place, is_reply):
    await put(context.chat_history, contract(words, place), is_reply=is_reply)
    assert CLAUSE in await found_in(context)


async def test_without_a_limit_of_tokens_it_is_the_passage_and_not_the_beginning(context):
    await put(context.chat_history, contract(3_000, 0.7))
    assert CLAUSE in await found_in(context, search_k=5)


async def test_a_reply_takes_no_more_than_an_eighth_of_the_room(context):
    await put(context.chat_history, contract(2_000, 0.5), is_reply=True)
    record = next(each for each in found_records(await found_in(context)).split("\n[") if CLAUSE in each)
    assert counter_for().count(record) <= 125


async def test_what_is_left_out_is_marked(context):
    said = await put(context.chat_history, contract(2_000, 0.5))
    found = await found_in(context)
    assert "[…] " in found
    assert f"[… #{said.id}]" in found


async def test_the_record_of_a_prompt_keeps_the_passage_as_it_was_shown(storage, context):
    await put(context.chat_history, contract(2_000, 0.5))
    shown = await found_in(context)
    service = AgentService(agent(), storage=storage)
    await service.prompt(context, ASKED)
    steps = await storage.read(lambda connection: read_steps(connection, context.id))
    prompt = steps[-1].item.get_value("model_input_messages")
    kept = next(each["content"] for each in prompt if CLAUSE in str(each["content"]))
    assert found_records(kept).splitlines()[0] == found_records(shown).splitlines()[0]


async def test_recall_shows_the_passage(context):
    await put(context.chat_history, contract(20_000, 0.5))
    assert CLAUSE in await recall(context, "notice period")


async def test_recall_reads_a_long_message_to_its_end(context):
    text = contract(2_000, 0.5)
    said = await put(context.chat_history, text)
    read, start = [], 0
    for _ in range(20):
        part = await recall(context, message=said.id, start=start)
        assert counter_for().count(part) <= 1000
        record = found_records(part).partition(": ")[2]
        body, _, on = record.partition(f" [… #{said.id}, goes on at start=")
        read.append(body.removeprefix("[…] "))
        if not on:
            break
        start = int(on.removesuffix("]"))
    assert "".join(read) == text


async def test_recall_looks_for_words_in_one_message(context):
    said = await put(context.chat_history, contract(20_000, 0.9))
    assert CLAUSE in await recall(context, "notice period", message=said.id)


async def test_recall_reads_nothing_of_another_chat(storage, context):
    other = await AgentContext.get_or_create(storage, {"chat_id": "another"})
    said = await put(other.chat_history, contract(150, 0.5))
    told = await recall(context, message=said.id)
    assert "There is no message" in told
    assert "landlord" not in told


@pytest.mark.parametrize("number", [-5, 999, 1 << 62, 1 << 63, 10**40])
async def test_recall_says_that_there_is_no_such_message(context, number):
    assert f"There is no message #{number}" in await recall(context, message=number)


@pytest.mark.parametrize("start", [-1, 10_000_000, 10**40])
async def test_recall_says_where_a_message_ends(context, start):
    said = await put(context.chat_history, contract(150, 0.5))
    assert f"has {len(said.text)} characters" in await recall(context, message=said.id, start=start)


async def test_recall_merges_what_several_queries_find(context):
    history = context.chat_history
    for n, text in enumerate(["Rex is a good hound", "Our flat is in Porto", "The car is red", "what was that?"]):
        await history.append_user_message(text, created_at=START + timedelta(days=n))
    found = await recall(context, "hound", more_queries=["flat in Porto", "", "hound"])
    assert found_records(found).count("hound") == 1
    assert "Porto" in found
    assert "red" not in found


@pytest.mark.parametrize(
    "text", ["x" * 9_000, "산책을 갑니다" * 900, "\n" * 9_000, "a b " * 3_000, "今天天气很好。" * 900]
)
def test_a_passage_of_any_text_fits(text):
    counter = counter_for()
    message = Message(1, Role.USER, text, (), None, START, counter.count(text))
    for most in (60, 90, 300):
        short = room_for_found(900, counter).shorten(message, most, "산책 天气 b")
        assert size_of(short, counter) <= most


def test_a_short_message_stays_as_it_is():
    message = Message(1, Role.USER, "hello", (), None, START, 1)
    assert make_excerpt(message, 90, "hello", size=lambda _: 9, count=len) is message


def test_passages_hold_all_of_a_text_in_order():
    text = contract(600, 0.5) + "\n\n- one\n- two " + "y" * 700
    passages = split_passages(text, 120)
    assert "".join("".join(text[start:end] for start, end in passages).split()) == "".join(text.split())
    assert max(end - start for start, end in passages) <= 120
    assert sorted(rank_passages(text, ASKED, 120)) == passages
