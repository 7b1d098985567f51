"""Finding turns: by whatever is known of them, and with as little work among many as among few."""

from datetime import UTC, datetime

import pytest
from devtools.many_turns import analyze, make_many, rows_read
from sqlalchemy import insert, update
from standins.tools import add

from botservice import (
    AgentContext,
    AgentService,
    Author,
    FunctionsBasedAgent,
    LLMError,
    ScriptedChatLLM,
    ToolCall,
    tool,
)
from botservice.core.personas import TITLE
from botservice.devtools.conversations import list_contexts
from botservice.devtools.turn_queries import (
    PageCursor,
    Rating,
    State,
    TurnFilter,
    TurnOrder,
    find_turns,
    find_with_failed_calls,
)
from botservice.storage.tables.conversations import contexts, turn_figures, turns
from botservice.storage.tables.services import feedback
from transports.web.inspector_turn_lines import read_titles

MANY = {"sqlite": 100_000, "postgresql": 20_000}
MOST = {"sqlite": 250_000, "postgresql": 60_000}  # steps, and rows: many times less than going through all takes


async def ask(storage, chat, text, *script, author="Ann", tools=(add,)):
    """Have something asked in a chat; a failure is one of the script's."""
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": chat})
    service = AgentService(FunctionsBasedAgent(tools=tools, llm=ScriptedChatLLM(list(script))), storage)
    try:
        await service.prompt(context, text, author=Author("telegram", f"id of {author}", author))
    except LLMError:
        await storage.write(lambda connection: connection.execute(update(turns).values(status="set_aside")))
    return context


def found(storage, **sought):
    limit, after = sought.pop("limit", 10), sought.pop("after", None)
    looks_at = sought.pop("looks_at", 1_000)
    query = TurnFilter(**sought)
    return storage.read(lambda c: find_turns(c, query, limit=limit, after=after, looks_at=looks_at))


async def ids(storage, **sought):
    return [each.row.id for each in (await found(storage, **sought)).found]


@pytest.fixture
async def busy(storage):
    """A storage with three answered turns; the second used a tool, and took long."""
    await ask(storage, "1", "How tall is Ben Nevis?", "1,345 metres")
    await ask(storage, "1", "What is 2 + 3?", ToolCall("", "add", {"a": 2, "b": 3}), "It is 5", author="Bob")
    await ask(storage, "2", "100% of what_is?", "Nothing at all")
    facts = {1: (5, 100), 2: (9, 3_000), 3: (7, 50)}

    def write(connection):
        for turn_id, (cost, lasted) in facts.items():
            row = turn_figures.c.turn_id == turn_id
            connection.execute(update(turn_figures).where(row).values(cost=cost, lasted_ms=lasted))
        values = {"platform": "slack", "created_at": datetime(2026, 1, 1, tzinfo=UTC)}
        for turn_id, person, verdict in ((1, "a", "bad"), (1, "b", "bad"), (1, "c", "good"), (3, "a", "good")):
            connection.execute(insert(feedback).values(turn_id=turn_id, person_id=person, verdict=verdict, **values))

    await storage.write(write)
    return storage


# What is sought, and the turns that are found.
SEARCHES = [
    ({}, [3, 2, 1]),
    ({"text": "BEN nevis"}, []),  # what a program asks has no event; its answer is found
    ({"text": "metres"}, [1]),
    ({"text": "%"}, []),
    ({"platform": "api"}, [3, 2, 1]),
    ({"platform": "slack"}, []),
    ({"tool": "add"}, [2]),
    ({"tool": "ad"}, []),
    ({"tool": "%"}, []),
    ({"model": "scripted"}, [3, 2, 1]),
    ({"model": "other"}, []),
    ({"rating": Rating.BAD}, [1]),
    ({"rating": Rating.GOOD}, [3, 1]),
    ({"order": TurnOrder.SLOWEST}, [2, 1, 3]),
    ({"order": TurnOrder.MOST_EXPENSIVE}, [2, 3, 1]),
    ({"state": State.ANSWERED}, [3, 2, 1]),
    ({"state": State.FAILED}, []),
    ({"state": State.COMMANDS}, []),
    ({"context_id": 1}, [2, 1]),
    ({"context_id": 1, "rating": Rating.BAD}, [1]),
    ({"since": datetime(2100, 1, 1, tzinfo=UTC)}, []),
    ({"until": datetime(2100, 1, 1, tzinfo=UTC)}, [3, 2, 1]),
]


async def test_turns_are_found_by_what_is_known_of_them(busy):
    model = await busy.read(lambda c: c.execute(turn_figures.select()).first().model)
    searches = [
        (sought | ({"model": model} if sought.get("model") == "scripted" else {}), expected)
        for sought, expected in SEARCHES
    ]
    assert [(sought, await ids(busy, **sought)) for sought, _ in searches] == searches


@pytest.mark.any_database
async def test_ratings_are_counted_by_their_verdict(busy):
    page = await found(busy)
    assert {each.row.id: each.ratings for each in page.found} == {1: (1, 2), 2: (0, 0), 3: (1, 0)}


@pytest.mark.parametrize("order", TurnOrder)
async def test_pages_follow_each_other_without_a_gap_or_a_repetition(busy, order):
    seen, after = [], None
    while True:
        page = await found(busy, order=order, limit=1, after=after)
        seen += [each.row.id for each in page.found]
        after = page.rest
        if after is None:
            break
    assert seen == await ids(busy, order=order)


async def test_a_search_that_finds_little_ends_and_goes_on_where_it_ended(busy):
    page = await found(busy, text="metres", looks_at=2)
    assert (page.found, page.rest, page.is_full) == ([], PageCursor(2, 2), False)
    page = await found(busy, text="metres", looks_at=2, after=page.rest)
    assert [each.row.id for each in page.found] == [1]
    assert page.rest is None


async def test_a_turn_that_waits_or_runs_is_shown_among_the_others(storage):
    context = await ask(storage, "1", "hello", "hi")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    row = {"context_id": context.id, "status": "queued", "transport": "web", "order_key": 1, "due_at": at}
    await storage.write(lambda connection: connection.execute(insert(turns).values(**row, created_at=at)))
    assert await ids(storage) == [2, 1]
    assert await ids(storage, state=State.OPEN) == [2]


async def test_chats_are_called_by_the_people_in_them(storage):
    await ask(storage, "1", "hello", "hi", author="Ann\u202e <b>")
    nobody = await AgentContext.get_or_create(storage, {"transport": "web", "session_id": "a secret session"})
    titles = await storage.read(lambda connection: read_titles(connection, [1, nobody.id]))
    assert titles[1].text == "Ann\\u202e <b>"
    assert titles[1].keys == {"chat_id": "1"}
    assert titles[nobody.id].text == f"Browser chat {nobody.id}"
    assert "secret" not in repr(titles)


async def test_a_chat_that_was_given_a_title_is_called_that_with_its_people_beside_it(storage):
    await ask(storage, "1", "hello", "hi", author="Ann")
    own = {TITLE: "Trip to \u202eOslo\nand back"}
    await storage.write(lambda connection: connection.execute(update(contexts).values(metadata=own)))
    keys = {"transport": "web", "session_id": "5" * 32, "thread_id": "00ff00ff00ff00ff"}
    other = await AgentContext.get_or_create(storage, keys)
    titles = await storage.read(lambda connection: read_titles(connection, [1, other.id]))
    assert (titles[1].text, titles[1].people) == ("Trip to \\u202eOslo and back", "Ann")
    assert (titles[other.id].text, titles[other.id].people) == (f"Browser chat {other.id}", "")
    assert "00ff" not in repr(titles)
    await other.chat_history.append_user_message("What does the train to Porto cost, and does it go on Sundays at all?")
    titles = await storage.read(lambda connection: read_titles(connection, [other.id]))
    assert titles[other.id].text == "What does the train to Porto cost, and does it go on Sundays…"


async def test_turns_whose_tools_failed_are_told_by_their_records_and_not_by_what_is_said(storage):
    @tool
    async def check(text: str) -> str:
        """Check something."""
        if text == "bad":
            raise ValueError("no")
        return text

    said = '{"is_error":true}'
    calls = [ToolCall("", "check", {"text": each}) for each in (said, "bad")]
    for call in calls:
        await ask(storage, "1", said, call, said, tools=[check])
    assert await storage.read(lambda connection: find_with_failed_calls(connection, [1, 2])) == {2}
    assert await storage.read(lambda connection: find_with_failed_calls(connection, [1])) == set()


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_lists_of_very_many_conversations_take_as_little_as_short_ones(storage):
    dialect = await storage.read(lambda connection: connection.dialect.name)
    many = MANY[dialect]
    await storage.write(lambda connection: make_many(connection, many))
    await storage.write(analyze)
    last = (await list_contexts(storage, limit=1))[0]
    assert last.id == many
    searches = [
        TurnFilter(),
        TurnFilter(state=State.FAILED),
        TurnFilter(order=TurnOrder.SLOWEST),
        TurnFilter(order=TurnOrder.MOST_EXPENSIVE, model="odd"),
        TurnFilter(rating=Rating.BAD),
        TurnFilter(context_id=many // 2),
        TurnFilter(text="no such words", person="nobody", tool="other"),
    ]
    afters = [None, PageCursor(many * 2 // 5, many * 2 // 5)]
    for sought in searches:
        for after in afters:

            def read(connection, sought=sought, after=after):
                return rows_read(connection, lambda each: find_turns(each, sought, limit=50, after=after))

            page, effort = await storage.read(read)
            assert len(page.found) <= 50
            assert effort < MOST[dialect], (sought, after)


async def test_the_list_of_conversations_begins_anywhere_without_counting_from_the_top(storage):
    await storage.write(lambda connection: make_many(connection, 20))
    listed = await list_contexts(storage, limit=5)
    rest = await list_contexts(storage, limit=5, after=(listed[-1].last_message_id, listed[-1].id))
    assert [each.id for each in [*listed, *rest]] == list(range(20, 10, -1))
