"""Several conversations of one person: listed, found, named, opened by them alone, and forgotten."""

import asyncio

import pytest
from sqlalchemy import func, select, text
from standins.payments import Till, cashier

from botservice import AgentContext, ToolCall, remember, tool
from botservice.core.messages import Author
from botservice.storage.tables.conversations import contexts, messages
from transports.web.conversations import mark
from transports.web.inbound_events import context_keys

HOSTILE = '<img src=x onerror="window.pwned=1">\u202e gpj.exe'


async def begin(visitor, text):
    """Say the first words of a new conversation; return its name."""
    name = (await visitor.post("/web/new", {})).json()["conversation"]
    await talk(visitor, text, name)
    return name


async def talk(visitor, text, conversation="first", **fields):
    """Say something and wait for its answer; return what the page was told."""
    async with visitor.events(conversation=conversation) as events:
        await events.until_idle()
        answer = await visitor.say(text, conversation=conversation, **fields)
        assert answer.status_code == 202, answer.text
        await events.until_idle()
        return events


async def listed(visitor, **query):
    """Return the names and titles of a person's conversations."""
    answer = await visitor.client.get("/web/conversations", params=query)
    return [(each["name"], each["title"]) for each in answer.json()["conversations"]]


def shown_by(page):
    """Return which conversation a page shows."""
    return page.text.partition('data-conversation="')[2].partition('"')[0]


async def test_conversations_are_listed_by_their_first_words_the_newest_first(site):
    visitor, other = await site.visitor(), await site.visitor()
    assert await listed(visitor) == []
    await talk(visitor, "What is a good name for a dog?")
    second = await begin(
        visitor, "Plan a weekend in Lisbon for two children and their grandparents, with little walking"
    )
    await talk(other, "nobody else sees this")
    title = "Plan a weekend in Lisbon for two children and their…"
    assert await listed(visitor) == [(second, title), ("first", "What is a good name for a dog?")]
    await talk(visitor, "Rex, perhaps?")
    assert [name for name, _ in await listed(visitor)] == ["first", second]


async def test_the_page_shows_the_newest_conversation_or_the_one_that_its_address_names(site):
    visitor = await site.visitor()
    assert shown_by(await visitor.open()) == "first"
    await talk(visitor, "one")
    second = await begin(visitor, "two")
    assert shown_by(await visitor.open()) == second
    assert shown_by(await visitor.client.get("/?conversation=first", headers={"Accept": "text/html"})) == "first"
    for odd in ("..%2F..", "A" * 4, "x" * 33, "", "a%2Fb", "%00"):
        answer = await visitor.client.get(f"/?conversation={odd}", headers={"Accept": "text/html"})
        assert answer.status_code == 400, odd


async def test_a_name_of_anothers_conversation_opens_an_empty_one_of_ones_own(site):
    alice, mallory = await site.visitor(), await site.visitor()
    await talk(alice, "hello")
    name = await begin(alice, "my dog is called Rex")
    async with mallory.events(conversation=name) as events:
        await events.until_idle()
        assert [event.name for event in events.seen] == ["state"]
    number = await site.storage.read(lambda c: c.execute(select(func.max(messages.c.id))).scalar_one())
    for path in (f"/web/earlier?before={number}&", f"/web/why?message={number}&"):
        answer = await mallory.client.get(f"{path}conversation={name}")
        assert "Rex" not in answer.text
    refused = await mallory.post("/web/conversations/rename", {"conversation": name, "title": "mine now"})
    assert refused.status_code == 404
    assert (await mallory.post("/web/conversations/delete", {"conversation": name})).status_code == 404
    opinion = {"conversation": name, "message": number, "verdict": "bad"}
    assert (await mallory.post("/web/feedback", opinion)).status_code == 404
    await talk(mallory, "mine", name)
    assert [title for _, title in await listed(alice)] == ["my dog is called Rex", "hello"]


async def test_a_slash_in_a_name_leads_to_no_session(site):
    alice, mallory = await site.visitor(), await site.visitor()
    await talk(alice, "hello")
    query = select(contexts.c.context_keys)
    session = (await site.storage.read(lambda c: c.execute(query).scalar_one()))["session_id"]
    for name in (f"{session}/first", f"/{session}", session.upper(), 7, None, ["first"], {"a": 1}):
        answer = await mallory.say("hello", conversation=name)
        assert answer.status_code == 400, name
    assert (await mallory.say("hello", conversation=session)).status_code == 202  # a name like any other, of her own
    assert await listed(alice) == [("first", "hello")]


async def test_a_title_is_given_and_taken_back(site):
    visitor = await site.visitor()
    await talk(visitor, "What is a good name for a dog?")
    rename = {"conversation": "first", "title": f"  {HOSTILE}\n and more "}
    assert (await visitor.post("/web/conversations/rename", rename)).status_code == 200
    ((_, title),) = await listed(visitor)
    assert title == '<img src=x onerror="window.pwned=1"> gpj.exe and more'
    await talk(visitor, "Rex?")
    assert (await listed(visitor))[0][1] == title
    assert (await visitor.post("/web/conversations/rename", {"title": "x" * 500})).status_code == 200
    assert (await listed(visitor))[0][1] == "x" * 120
    assert (await visitor.post("/web/conversations/rename", {"title": " "})).status_code == 200
    assert await listed(visitor) == [("first", "What is a good name for a dog?")]
    assert (await visitor.post("/web/conversations/rename", {"conversation": "none", "title": "x"})).status_code == 404


async def test_a_title_that_is_given_while_an_answer_is_made_stays(run_site):
    is_asked, is_named = asyncio.Event(), asyncio.Event()

    @tool
    async def note(context: AgentContext) -> str:
        """Note something with the chat."""
        is_asked.set()
        await is_named.wait()
        context.metadata["noted"] = True
        return "noted"

    async with run_site([ToolCall("", "note", {}), "done"], tools=[note]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("note this")
            await is_asked.wait()
            assert (await visitor.post("/web/conversations/rename", {"title": "Notes"})).status_code == 200
            is_named.set()
            await events.until_answered()
        assert await listed(visitor) == [("first", "Notes")]
        assert (await site.context()).metadata["noted"] is True


async def test_a_conversation_is_found_by_its_title_and_by_what_was_said_in_it(site):
    visitor, other = await site.visitor(), await site.visitor()
    await talk(visitor, "Собаки и кошки")
    second = await begin(visitor, "a holiday")
    await talk(visitor, "is 100% of Lisbon on hills?", second)
    await talk(other, "hills")
    assert [name for name, _ in await listed(visitor, search="HILLS")] == [second]
    assert [name for name, _ in await listed(visitor, search="собаки")] == ["first"]
    assert [name for name, _ in await listed(visitor, search="100%")] == [second]
    assert await listed(visitor, search="1%0") == []
    assert len(await listed(visitor, search="  ")) == 2
    assert [name for name, _ in await listed(visitor, search="lisbon said hills")] == [second]  # an answer
    assert await listed(visitor, search="lisbon cats") == []


async def test_what_the_service_itself_said_is_found_too(run_site, storage_url):
    till = Till()
    async with run_site(cashier({"to": "Ä😀", "amount": 5}), tools=till.tools, storage_url=storage_url) as site:
        visitor = await site.visitor()
        asked = await begin(visitor, "pay them")
        helped = await begin(visitor, "hello")
        async with visitor.events(conversation=helped) as events:
            await events.until_idle()
            await visitor.say("/help", conversation=helped)
            notice = (await events.until("notice")).data
        answer = await visitor.client.get("/web/conversations", params={"search": "LAST question"})
        (found,) = answer.json()["conversations"]
        assert (found["name"], found["hit"]["place"], found["at"]) == (
            helped,
            f"notice-{notice['place']}",
            notice["at"],
        )
        assert [part["text"] for part in found["hit"]["parts"] if part["is_hit"]] == ["last", "question", "last"]
        assert [name for name, _ in await listed(visitor, search="ä😀 amount")] == [asked]  # what a tool asks
        assert await listed(visitor, search='"text"') == []
        assert await listed(await site.visitor(), search="last question") == []
        assert (await visitor.post("/web/conversations/delete", {"conversation": helped})).status_code == 200
        assert await listed(visitor, search="last question") == []


async def test_the_sentence_around_what_was_found_is_shown_with_it_marked(run_site, storage_url):
    answer = (
        f"{'Something else. ' * 40}The capital of **Portugal** is [Lisbon](https://example.com/lisbon), "
        f"on seven hills. {'Nothing more. ' * 40}"
    )
    async with run_site([answer, "no"], storage_url=storage_url) as site:
        visitor = await site.visitor()
        await talk(visitor, "Tell me about it")
        second = await begin(visitor, f"what about {HOSTILE}?")
        found = (await visitor.client.get("/web/conversations", params={"search": "portugal LISBON"})).json()
        (each,) = found["conversations"]
        parts = each["hit"]["parts"]
        shown = "".join(part["text"] for part in parts)
        assert shown.startswith("…The capital of Portugal is Lisbon, on seven hills. Nothing more.")
        assert len(shown) < 200
        assert [part["text"] for part in parts if part["is_hit"]] == ["Portugal", "Lisbon"]
        async with visitor.events() as events:
            await events.until_idle()
            assert each["hit"]["place"] == f"message-{events.messages[-1]['id']}"
            assert each["at"] == events.messages[-1]["at"]
        found = (await visitor.client.get("/web/conversations", params={"search": "<img"})).json()
        assert [each["name"] for each in found["conversations"]] == [second]
        assert [part["text"] for part in found["conversations"][0]["hit"]["parts"] if part["is_hit"]] == ["<img"]
        listing = (await visitor.client.get("/web/conversations")).json()["conversations"]
        assert [each["hit"] for each in listing] == [None, None]
        stranger = await site.visitor()
        assert await listed(stranger, search="lisbon") == []


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("abcabc", ["abc"], ["abc", "abc"]),
        ("Straße", ["STRASSE"], []),
        ("İstanbul", ["stanbul"], ["stanbul"]),
        ("banana", ["ana", "banana"], ["banana"]),
        ("aaa", ["aa"], ["aa"]),
        ("x", ["y"], []),
    ],
)
def test_marks_stand_where_words_do_and_nothing_is_lost(text, words, marked):
    parts = mark(text, words)
    assert [each["text"] for each in parts if each["is_hit"]] == marked
    assert "".join(each["text"] for each in parts) == text


async def test_a_deleted_conversation_is_gone_with_what_is_known_from_it(run_site):
    script = ["hello", ToolCall("", "remember", {"text": "has a dog called Rex", "topic": "dog"}), "noted"]
    async with run_site(script, tools=[remember]) as site:
        visitor = await site.visitor()
        await talk(visitor, "hello")
        second = await begin(visitor, "my dog is called Rex")
        assert (await visitor.post("/web/conversations/delete", {"conversation": second})).status_code == 200
        assert await listed(visitor) == [("first", "hello")]
        left = await site.storage.read(lambda c: c.execute(select(messages.c.text)).scalars().all())
        assert "Rex" not in str(left)
        events = await talk(visitor, "/memory")
        assert "Rex" not in str(events.of("notice"))


async def test_what_one_says_of_oneself_is_known_in_all_conversations(run_site):
    script = [ToolCall("", "remember", {"text": "is called Ada", "topic": "name"}), "noted", "you are Ada"]
    async with run_site(script, tools=[remember]) as site:
        visitor = await site.visitor()
        await talk(visitor, "I am called Ada")
        await begin(visitor, "who am I?")
        assert "is called Ada" in str(site.llm.prompts[-1])


async def test_a_stop_is_about_its_own_conversation(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        name = (await visitor.post("/web/new", {})).json()["conversation"]
        async with visitor.events(conversation=name) as events:
            await visitor.say("count", conversation=name)
            typist.write("one")
            await events.until_written("one")
            assert (await visitor.post("/web/stop", {"id": "stop-0001"})).status_code == 202
            typist.write(", two")
            await events.until_written("one, two")
            assert (await visitor.post("/web/stop", {"id": "stop-0002", "conversation": name})).status_code == 202
            await events.until_answered()


@pytest.mark.slow
async def test_the_list_of_many_conversations_comes_in_pages_and_a_search_finds_one_word_of_a_very_long_one(site):
    visitor = await site.visitor()
    await talk(visitor, "the first words")
    keys = (await site.context()).context_keys
    await fill(site.storage, keys["session_id"], chats=500, long=30_000)
    for query, count in (({}, 50), ({"search": "word 3 of"}, 50), ({"search": "word 27777"}, 1)):
        answer = (await visitor.client.get("/web/conversations", params=query)).json()
        assert (len(answer["conversations"]), answer["has_more"]) == (count, count == 50)


async def fill(storage, session, *, chats, long):
    """Put conversations of a person into the database, and many messages into the first."""
    first = await AgentContext.get_or_create(storage, context_keys(session))
    author = Author("web", session)

    def rows(connection, context_id, count):
        now = storage.now()
        start = connection.execute(
            select(func.coalesce(func.max(messages.c.position), 0)).where(messages.c.context_id == context_id)
        ).scalar_one()
        for number in range(1, count + 1):
            is_user = number % 2
            yield {
                "context_id": context_id,
                "position": start + number,
                "role": "user" if is_user else "assistant",
                "text": f"word {number} of a message that is as long as messages are, in words that are usual",
                "author_platform": author.platform if is_user else None,
                "author_id": author.id if is_user else None,
                "created_at": now,
            }

    def write(connection):
        connection.execute(messages.insert(), list(rows(connection, first.id, long)))
        identity = connection.execute(select(contexts.c.only_identity_id).where(contexts.c.id == first.id)).scalar_one()
        for number in range(chats):
            keys = context_keys(f"{session}/c{number}")
            row = {"key_hash": f"k{number}", "context_keys": keys, "metadata": {}, "created_at": storage.now()}
            made = connection.execute(
                contexts.insert().values(**row, only_identity_id=identity).returning(contexts.c.id)
            )
            connection.execute(messages.insert(), list(rows(connection, made.scalar_one(), 4)))
        connection.execute(text("ANALYZE"))

    await storage.write(write)


async def test_everything_of_the_list_works_on_both_databases(run_site, storage_url):
    async with run_site(storage_url=storage_url) as site:
        visitor = await site.visitor()
        await talk(visitor, "What about Lisbon?")
        second = await begin(visitor, "and Porto?")
        await visitor.post("/web/conversations/rename", {"conversation": second, "title": "Über Porto"})
        assert await listed(visitor) == [(second, "Über Porto"), ("first", "What about Lisbon?")]
        assert [name for name, _ in await listed(visitor, search="über")] == [second]
        assert [name for name, _ in await listed(visitor, search="lisbon")] == ["first"]
        (place, *_) = [
            each["place"] for each in (await visitor.client.get("/web/conversations")).json()["conversations"]
        ]
        assert [name for name, _ in await listed(visitor, before=place)] == ["first"]
        async with visitor.events(conversation=second) as events:
            answer = (await events.until("message", lambda data: data["role"] == "assistant")).data
        opinion = {"conversation": second, "message": answer["id"], "verdict": "good"}
        assert (await visitor.post("/web/feedback", opinion)).status_code == 200
        why = {"conversation": second, "message": answer["id"]}
        assert "and Porto?" in (await visitor.client.get("/web/why", params=why)).text
        assert (await visitor.post("/web/conversations/delete", {"conversation": second})).status_code == 200
        assert await listed(visitor) == [("first", "What about Lisbon?")]
