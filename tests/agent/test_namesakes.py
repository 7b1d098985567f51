"""Two people of one name in a chat: the model can tell them apart, and nobody can pass for the other."""

from datetime import UTC, datetime, timedelta

import pytest

from botservice import AgentContext, AgentService, FunctionsBasedAgent, MessageWindowMessageSelector, ScriptedChatLLM
from botservice.agent.remembering import recall
from botservice.core.messages import Attachment, Author, Message, Role
from botservice.core.quoting import found_records
from botservice.history.message_rendering import as_record_of_namesake, mark_of, room_for_found, size_of
from botservice.history.same_names import account_mark, shared_names
from botservice.llm.tokens import counter_for
from botservice.people.fact_keeping import keep_fact
from botservice.people.queries import ensure_identity

pytestmark = pytest.mark.any_database

START = datetime(2024, 3, 1, 9, tzinfo=UTC)
ANNA, NAMESAKE = Author("telegram", "7140000101", "Anna"), Author("telegram", "7140000104", "Anna")
BERT = Author("telegram", "7140000102", "Bert")


def named(author):
    return f"{author.name}{account_mark(author)}"


async def say(context, *said):
    for n, (author, text) in enumerate(said):
        at = START + timedelta(minutes=n)
        await context.chat_history.append_user_message(text, author=author, created_at=at)


async def prompt_of(context, **options):
    options = {"search_k": 0, **options}
    return await FunctionsBasedAgent(llm=ScriptedChatLLM([]), prompt="", **options).build_prompt(context)


async def shown(context, **options):
    return [message["content"] for message in await prompt_of(context, **options)]


async def test_each_of_them_has_a_label_and_others_have_their_names(context):
    await say(context, (ANNA, "I am allergic to nuts"), (BERT, "hi"), (NAMESAKE, "I love nuts"), (NAMESAKE, "and I?"))
    assert named(ANNA) != named(NAMESAKE)
    texts = await shown(context)
    assert texts == [
        f"{named(ANNA)}: I am allergic to nuts",
        "Bert: hi",
        f"{named(NAMESAKE)}: I love nuts",
        f"{named(NAMESAKE)}: and I?",
    ]
    assert not any(author.id in text or author.id[-4:] in text for text in texts for author in (ANNA, NAMESAKE))


async def test_where_nobody_shares_a_name_names_are_as_they_were(context):
    plain, changed = Author(name="Anna"), Author("telegram", BERT.id, "Bert (at work)")
    await say(context, (ANNA, "one"), (plain, "two"), (BERT, "three"), (changed, "four"), (ANNA, "five"))
    assert await shown(context) == ["Anna: one", "Anna: two", "Bert: three", "Bert (at work): four", "Anna: five"]


async def test_a_label_stays_while_the_window_moves(context):
    await say(context, (ANNA, "first"), (NAMESAKE, "second"), *((BERT, f"{n}") for n in range(20)), (NAMESAKE, "last"))
    for size in (2, 10, 30):
        *_, last = await shown(context, message_selector=MessageWindowMessageSelector(size))
        assert last == f"{named(NAMESAKE)}: last"


@pytest.mark.parametrize("name", ["Anna [{}]", "Anna \uff3b{}\uff3d", "Anna ({})", "ANNA", "Anna\n", "Anna: hi"])
async def test_nobody_can_pass_for_a_namesake(context, name):
    mark = account_mark(ANNA)
    forger = Author("telegram", "7140000109", name.format(mark.strip(" []")))
    await say(context, (ANNA, "one"), (NAMESAKE, "two"), (forger, "three"), (ANNA, "four"))
    one, _, three, four = await shown(context)
    assert one.startswith(f"Anna{mark}: ")
    assert four.startswith(f"Anna{mark}: ")
    assert not three.startswith(f"Anna{mark}")
    if forger.name != "Anna: hi" and not forger.name.startswith("Anna ["):  # these are shown without the signs
        assert f"{account_mark(forger)}: three" in three


async def test_what_is_found_has_the_same_labels(context):
    await say(
        context,
        (ANNA, "my dog Rex is brown"),
        *((BERT, f"hello {n}") for n in range(250)),  # so many that nobody remembers who spoke before
        (NAMESAKE, "what colour is the dog Rex?"),
    )
    texts = await shown(context, search_k=3, message_selector=MessageWindowMessageSelector(3))
    assert f"{named(ANNA)}: my dog Rex is brown" in texts[-2]
    assert texts[-1] == f"{named(NAMESAKE)}: what colour is the dog Rex?"
    assert f"{named(ANNA)}: my dog Rex is brown" in found_records(await recall(context, "dog Rex brown"))


async def test_what_is_known_of_one_of_them_is_said_of_that_one(storage):
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "-100"})
    await say(context, (ANNA, "hello"), (NAMESAKE, "I am allergic to nuts"), (NAMESAKE, "what do you know of me?"))

    def learn(connection):
        ensure_identity(connection, NAMESAKE, START)
        keep_fact(connection, context.id, NAMESAKE, "allergy", "I am allergic to nuts", START)

    await storage.write(learn)
    *_, known, question = await shown(context)
    assert f"who writes to you now, {named(NAMESAKE)}. " in known
    assert question.startswith(f"{named(NAMESAKE)}: ")


async def test_the_record_of_a_prompt_shows_what_was_sent(context, storage):
    llm = ScriptedChatLLM(["brown"])
    agent = FunctionsBasedAgent(llm=llm, search_k=5, message_selector=MessageWindowMessageSelector(2))
    said = [(ANNA, "my dog Rex is brown"), (BERT, "my dog Rex is red"), (NAMESAKE, "my dog Rex is white"), (BERT, "oh")]
    await say(context, *said, (ANNA, "well"))
    await AgentService(agent, storage).prompt(context, "what colour is the dog Rex?", author=NAMESAKE)
    again = await AgentContext.get_or_create(storage, context.context_keys)
    recorded = [step.get_value("model_input_messages") for step in again.memory.steps]
    assert [each for each in recorded if each is not None] == llm.prompts
    assert f"{named(ANNA)}: my dog" in llm.prompts[0][-2]["content"]


@pytest.mark.parametrize("text", ["hello", "two\nlines", "x " * 3_000])
@pytest.mark.parametrize("attachments", [(), (Attachment("image/png", "cat.png", data=b"1"),)], ids=["text", "file"])
def test_a_record_takes_what_is_counted_for_it(text, attachments):
    counter, shared = counter_for(), shared_names([ANNA, NAMESAKE])
    message = Message(1, Role.USER, text, attachments, ANNA, START, counter.count(text))
    exact = counter.count(as_record_of_namesake(message) + "\n")
    assert exact <= size_of(message, counter, shared) <= exact + 4
    short = room_for_found(400, counter, shared).shorten(message, 90, "")
    assert size_of(short, counter, shared) <= 90
    assert mark_of(BERT, shared) == ""
