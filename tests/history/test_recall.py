"""What a prompt takes from a history: the window, what was found, and what makes it understandable."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from botservice import AgentContext, MessageWindowMessageSelector, NoMessages
from botservice.core.messages import Message, Role
from botservice.history.documents import question_of, searchable_text
from botservice.history.finding import SearchIndexes
from botservice.history.message_rendering import Room
from botservice.history.queries import begin_afresh, find_people
from botservice.llm.chat import ChatMessage
from botservice.llm.demo import DemoChatLLM
from botservice.storage.tables.conversations import contexts, messages

pytestmark = pytest.mark.any_database

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


async def test_what_stands_in_the_window_takes_no_place(context):
    history = context.chat_history
    await talk(
        history, "Ann: My dog Rex is two", "Ann: the dog Rex barks", "bot: dogs do", "Ann: how old is my dog Rex?"
    )
    assert [text for text, _ in await found(history, k=1, selector=MessageWindowMessageSelector(2))] == [
        "My dog Rex is two"
    ]


async def test_a_question_is_no_evidence_for_what_was_said_just_before_it(context):
    history = context.chat_history
    await talk(history, "Ann: I parked in garage 7", "bot: Fine, I will remember that", start=START - timedelta(days=1))
    for number in range(30):
        at = START + timedelta(minutes=3 * number)
        await talk(history, f"Ann: the report has a chapter {number}", "bot: Well done, go on", start=at)
    question = "Where did I leave my red car, in which garage?"
    searched = await history.search(question, k=3)
    assert searched[0].message.text == "I parked in garage 7"
    await talk(history, f"Ann: {question}", start=START + timedelta(minutes=92))
    recall = await history.recall(NoMessages(), search_k=3)
    assert recall.found[0].message.text == "I parked in garage 7"
    assert [hit.message.text for hit in recall.found] == [hit.message.text for hit in searched]


async def test_a_misspelt_question_does_not_teach_the_chat_its_mistakes(context):
    history = context.chat_history
    await talk(history, "Ann: The passport lies in the wardrobe", "bot: Noted", "Ann: Nice weather", "bot: Indeed")
    await talk(history, "Ann: where is my pasport?", start=START + timedelta(days=3))
    assert await found(history) == [("The passport lies in the wardrobe", None)]


async def test_the_same_is_found_once_and_the_newest_stays(context):
    history = context.chat_history
    await talk(history, "Ann: I parked in garage 7", "bot: Noted", "Ann: so I parked in the garage 7!")
    await talk(history, "Ann: where did I park, which garage", start=START + timedelta(days=3))
    recall = await history.recall(NoMessages(), search_k=5)
    assert [hit.message.text for hit in recall.found if "garage" in hit.message.text] == [
        "so I parked in the garage 7!"
    ]


async def test_what_says_something_else_is_not_the_same(context):
    history = context.chat_history
    await talk(
        history, "Ann: the train goes from Rome", "Ann: the train goes to Rome", "Ann: I eat no fish", "Ann: I eat fish"
    )
    await talk(history, "Ann: what did I say of the train to Rome, and do I eat fish?", start=START + timedelta(days=3))
    assert len(await found(history, k=9)) == 4


async def test_found_messages_are_put_into_their_room(context):
    history = context.chat_history
    await talk(history, *(f"Ann: my dog Rex number {number} barks {'x' * number}" for number in range(9)))
    await talk(history, "Ann: tell me of my dog Rex", start=START + timedelta(days=3))
    room = Room(25, lambda _: 10, lambda message, *_: message, lambda message, *_: message)
    recall = await history.recall(NoMessages(), search_k=9, room=room)
    assert len(recall.found) == 2
    everything = await history.recall(NoMessages(), search_k=9)
    assert [hit.message for hit in recall.found] == [hit.message for hit in everything.found[:2]]


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


async def test_nothing_is_searched_where_all_that_was_said_stands_in_the_window(storage, context):
    history = context.chat_history
    await talk(history, "Ann: My dog is called Rex", "bot: Nice", "Ann: how old is my dog Rex?")
    recall = await history.recall(MessageWindowMessageSelector(20), search_k=5)
    assert [message.text for message in recall.window] == ["My dog is called Rex", "Nice"]
    assert recall.found == []
    assert len(SearchIndexes.of(storage)) == 0


async def test_a_message_that_left_the_window_is_found_from_the_next_question_on(context):
    history = context.chat_history
    selector = MessageWindowMessageSelector(2)
    await talk(history, "Ann: My dog is called Rex", "bot: Nice", "Ann: is Rex a name for my dog?")
    assert await found(history, k=5, selector=selector) == []
    await talk(history, "bot: It is", "Ann: what is my dog called?")
    assert ("My dog is called Rex", None) in await found(history, k=5, selector=selector)


async def test_what_was_said_after_the_question_is_found_though_the_window_shows_all_before_it(context):
    history = context.chat_history
    await talk(history, "Ann: My dog is called Rex", "bot: Nice", "Ann: how old is my dog?")
    question = history.last_user_message
    await talk(history, "Ann: my dog is two")
    history.remember_last(question)
    assert ("my dog is two", None) in await found(history, k=5, selector=MessageWindowMessageSelector(20))


async def test_what_was_said_before_a_fresh_start_is_found(storage, context):
    history = context.chat_history
    await talk(history, "Ann: My dog is called Rex")
    await storage.write(lambda connection: begin_afresh(connection, context.id))
    await talk(history, "Ann: what is my dog called?")
    assert await found(history, k=5, selector=MessageWindowMessageSelector(20)) == [("My dog is called Rex", None)]


async def test_a_message_that_was_deleted_leaves_nothing_to_search_for(storage, context):
    history = context.chat_history
    gone = await history.append_user_message("My dog is called Max")
    await talk(history, "Ann: My dog is called Rex", "Ann: what is my dog called?")
    await history.delete_messages([gone.id])
    assert await found(history, k=5, selector=MessageWindowMessageSelector(20)) == []
    assert len(SearchIndexes.of(storage)) == 0


async def test_what_else_is_read_comes_of_the_same_view(context):
    history = context.chat_history
    await talk(history, "Ann: My dog is called Rex", "Ann: what is my dog called?")
    for selector in (NoMessages(), MessageWindowMessageSelector(20)):
        recall = await history.recall(
            selector, search_k=5, also_read=lambda connection: len(find_people(connection, context.id))
        )
        assert recall.also_read == 1
    assert (await history.recall(NoMessages(), search_k=0, also_read=lambda _: "known")).also_read == "known"


class OwnSelector:
    """A program's own: it may take its time."""

    def __init__(self):
        self.threads = []

    def get_messages(self, messages):
        self.threads.append(threading.current_thread())
        return list(messages)


async def test_a_selector_of_a_program_holds_up_nobody(context):
    await talk(context.chat_history, "Ann: hello", "bot: hello", "Ann: and now?")
    selector = OwnSelector()
    recall = await context.chat_history.recall(selector, search_k=0)
    assert [each.text for each in recall.window] == ["hello", "hello"]
    assert len(selector.threads) == 1
    assert selector.threads[0] is not threading.current_thread()


async def test_what_stands_in_the_prompts_of_a_turn_is_chosen_once(context):
    history = context.chat_history
    await talk(history, "Ann: my dog is Rex", "bot: hello", "Ann: what is my dog called?")
    measured, counts = [], []
    room = Room(15, lambda message: measured.append(message) or 10, lambda message, *_: message, lambda *_: None)
    for number in range(3):
        recall = await history.recall(NoMessages(), search_k=5, room=room, also_read=lambda _, n=number: n)
        assert [hit.message.text for hit in recall.found] == ["my dog is Rex"]
        assert recall.also_read == number, "what else is known may change"
        counts.append(len(measured))
    assert counts == [counts[0]] * 3
    await talk(history, "Ann: and what is my dog?")
    await history.recall(NoMessages(), search_k=5, room=room)
    assert len(measured) > counts[0], "the next question is another one"


@pytest.mark.parametrize("change", ["delete", "edit", "say"])
async def test_what_others_do_to_a_chat_during_a_turn_is_seen_by_the_next_prompt(storage, context, change):
    history = context.chat_history
    other = await AgentContext.get_or_create(storage, context.context_keys)
    dog = await history.append_user_message("my dog is called Rex", author="Ann")
    await talk(history, "Ann: what is my dog called?")
    assert await found(history, k=5) == [("my dog is called Rex", None)]
    if change == "delete":
        await other.chat_history.delete_messages([dog.id])
    elif change == "edit":
        edited = update(messages).where(messages.c.id == dog.id).values(text="my dog is called Max")
        version = update(contexts).where(contexts.c.id == context.id).values(deletion_version=1)
        await storage.write(lambda connection: [connection.execute(each) for each in (edited, version)])
    else:
        await talk(other.chat_history, "Bob: Max is what my dog is called")
    texts = {"delete": [], "edit": ["Max"], "say": ["Max", "Rex"]}[change]
    assert [each for each in ("Max", "Rex") if each in str(await found(history, k=5))] == texts
