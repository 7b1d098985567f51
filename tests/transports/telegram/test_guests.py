"""A bot as a guest: called into a chat that it is no member of, it answers once, in public, and knows nobody there."""

import asyncio
import json
import logging
from typing import Any

import pytest
from sqlalchemy import select
from standins.bot_api import BotApi, Hang, Person, Refuse, flood
from standins.bot_api.guests import GuestQuery
from standins.clocks import fast_clock
from standins.models import Typist

from botservice import ChatResponse, Storage, TokenUsage, ToolCall, tool
from botservice.agent.tool_catalogue import built_in
from botservice.core.messages import Author, Message, Role
from botservice.core.policies import AccessMode, Scope, parse_limits
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.people.fact_queries import facts_of, share_fact
from botservice.people.queries import find_identity
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import contexts, deliveries, messages
from botservice.texts import in_language
from botservice.texts.formatted import line, quoted
from transports.telegram.context import TelegramTempo
from transports.telegram.guests import plan_guest

ADA, BOB = Person(42, "Ada"), Person(43, "Bob")
AT_ONCE, NEVER = TelegramTempo(first_sign=0.0), TelegramTempo(first_sign=3600.0)
STUB = in_language("guests.stub", "en")
LATE = in_language("guests.late", "en")
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


async def stored(storage: Storage) -> list[tuple[str, str, bool]]:
    """Return what is kept of questions to a guest: role, text, and whether others may listen."""
    query = messages.select().add_columns(contexts.c.is_shared, contexts.c.context_keys).join(contexts)
    rows = await storage.read(lambda connection: connection.execute(query.order_by(messages.c.id)).all())
    return [(row.role, row.text, row.is_shared) for row in rows if "guest" in row.context_keys]


async def asked(api: BotApi, text: str, **how: Any) -> GuestQuery:
    """Call the bot, once it has said that it takes guests: until then, Telegram tells it nothing of them."""
    await api.until(lambda: api.updates.allowed)
    return api.guest_is_asked(text, **how)


async def until(holds: Any) -> None:
    """Return once something holds of which no platform hears."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - no other person says it
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("webhook", [False, True])
async def test_a_quick_answer_is_the_one_message(api: BotApi, bot_on, sqlite_storage: Storage, webhook: bool) -> None:
    async with bot_on(api, guests=True, tempo=NEVER, webhook=webhook):
        query = await asked(api, f"@{api.username} what is the time?", user=ADA)
        await api.guest_shows(query, "You said: what is the time?")
    assert query.shown == ["You said: what is the time?"]
    assert not [call.method for call in api.calls() if call.chat_id is not None]
    assert await stored(sqlite_storage) == [
        ("user", "what is the time?", True),
        ("assistant", "You said: what is the time?", True),
    ]


async def test_a_stub_stands_there_at_once_and_the_answer_takes_its_place(api: BotApi, bot_on, typist: Typist) -> None:
    async with bot_on(api, typist, guests=True, tempo=AT_ONCE):
        query = await asked(api, "what is love?", user=ADA)
        await api.guest_shows(query, STUB)
        typist.write("**Baby**, ", "don't hurt me")
        typist.finish()
        await api.guest_shows(query, "Baby, don't hurt me")
    assert query.shown == [STUB, "Baby, don't hurt me"]
    assert [entity["type"] for entity in query.entities] == ["bold"]


async def test_a_stub_is_in_the_language_of_whoever_asks(api: BotApi, bot_on, typist: Typist) -> None:
    async with bot_on(api, typist, guests=True, tempo=AT_ONCE):
        query = await asked(api, "was?", user=Person(42, "Ada", language_code="de"))
        await api.guest_shows(query, in_language("guests.stub", "de"))
        typist.write("Das.")
        typist.finish()


async def test_nobody_is_answered_unless_the_owner_wants_guests(api: BotApi, bot_on) -> None:
    async with bot_on(api):
        await api.until(lambda: api.updates.allowed)
        assert "guest_message" not in api.calls("getUpdates")[0].params["allowed_updates"]
        api.updates.allow(["message", "guest_message"])
        query = await asked(api, "hello?", user=ADA)
        api.person_says("hello", chat_id=42)
        await api.message(42)
    assert query.shown == []


async def test_that_guest_mode_is_off_at_telegram_is_said_once(api: BotApi, bot_on, caplog: Any) -> None:
    api.abilities["supports_guest_queries"] = False
    async with bot_on(api, guests=True):
        api.person_says("hello", chat_id=42)
        await api.message(42)
    assert [each.msg for each in caplog.records if each.levelno >= logging.WARNING] == ["telegram.guests_are_off"]


async def test_nothing_that_a_person_said_elsewhere_stands_in_a_guests_prompt(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    def model(prompt: list[Any]) -> Any:
        is_private = "vegetarian, and" in str(prompt[-1]["content"])
        return ToolCall("1", "remember", {"text": "Is vegetarian"}) if is_private else "noted"

    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    author = Author("telegram", "42")
    async with bot_on(api, model, guests=True, tools=[*built_in(["facts", "reminders", "recall"]), add]) as bot:
        api.person_says("I am vegetarian, and secretly a spy", chat_id=42, user=ADA)
        await api.message(42, "noted")

        def share(connection: Any) -> None:
            person = find_identity(connection, author).person_id
            for fact in facts_of(connection, person):
                share_fact(connection, person, fact.id, is_shareable=True)

        await sqlite_storage.write(share)
        api.person_says(f"@{api.username} what do I eat?", chat_id=-1001, user=ADA)
        await api.message(-1001)
        assert "vegetarian" in json.dumps(bot.llm.prompts[-1]), "in a group that was allowed, it may be told"
        query = await asked(api, "what do I eat?", user=ADA)
        await api.guest_shows(query, "noted")
        prompt = json.dumps(bot.llm.prompts[-1])
        offered = [each["function"]["name"] for each in bot.llm.tools[-1]]
    assert "vegetarian" not in prompt
    assert "spy" not in prompt
    assert offered == ["add"], "nothing that reads or writes what is known of people"


async def test_each_question_stands_alone_with_what_it_replies_to(api: BotApi, bot_on) -> None:
    async with bot_on(api, guests=True) as bot:
        first = await asked(api, "my number is 7", user=ADA)
        await api.guest_shows(first, "You said: my number is 7")
        said = {"message_id": 3, "date": 1, "chat": {"id": 9, "type": "private"}, "text": "Tea at five?",
                "from": BOB.as_user()}  # fmt: skip
        second = await asked(api, "answer him", user=ADA, extra={"reply_to_message": said})
        await api.until(lambda: second.shown and second.shown[-1].startswith("You said"))
        prompt = json.dumps(bot.llm.prompts[-1])
    assert "Tea at five?" in prompt
    assert "number is 7" not in prompt


async def test_a_tool_that_may_have_to_ask_is_not_there_for_guests(api: BotApi, bot_on) -> None:
    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    async with bot_on(api, [ToolCall("1", "pay", {"amount": 5}), "I cannot pay here"], guests=True, tools=[pay]) as bot:
        query = await asked(api, "pay five", user=ADA)
        await api.guest_shows(query, "I cannot pay here")
    assert not bot.llm.tools[0]


@pytest.mark.parametrize("text", ["/usage", "/memory", "/forget everything", "/stop"])
async def test_commands_of_people_are_words_like_others_to_a_guest(api: BotApi, bot_on, text: str) -> None:
    async with bot_on(api, guests=True):
        query = await asked(api, f"{text}@{api.username}", user=ADA)
        await api.guest_shows(query, f"You said: {text}@{api.username}")


@pytest.mark.parametrize("mode", [AccessMode.ALLOW, AccessMode.PAIRING])
async def test_only_those_who_are_let_in_are_answered_and_strangers_hear_nothing(
    api: BotApi, bot_on, sqlite_storage: Storage, mode: AccessMode
) -> None:
    async with bot_on(api, guests=True, access=Access(mode, allowed=frozenset({"telegram:42"}))):
        strange = await asked(api, "who are you?", user=BOB)
        known = await asked(api, "who are you?", user=ADA)
        await api.guest_shows(known, "You said: who are you?")
        await api.all_taken()
        again = await asked(api, "really?", user=ADA)
        await api.guest_shows(again, "You said: really?")
    assert strange.shown == []
    assert not [row for row in await stored(sqlite_storage) if row[2] is not True]
    assert len(await stored(sqlite_storage)) == 4, "nothing of the stranger is kept"


async def test_who_asks_pays(api: BotApi, bot_on) -> None:
    budgets = Budgets({Scope.PERSON: parse_limits("1 messages/minute")})
    async with bot_on(api, guests=True, budgets=budgets, tempo=NEVER):
        first = await asked(api, "one", user=ADA)
        await api.guest_shows(first, "You said: one")
        second, of_bob = await asked(api, "two", user=ADA), await asked(api, "three", user=BOB)
        await api.guest_shows(of_bob, "You said: three")
        await api.until(lambda: second.shown)
    assert not second.shown[0].startswith("You said")


async def test_a_guest_says_nothing_of_a_budget_before_others(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    def model(prompt: list[Any]) -> ChatResponse:
        return ChatResponse(f"re: {prompt[-1]['content']}", usage=TokenUsage(8200, 0))

    budgets = Budgets({Scope.PERSON: parse_limits("20000 tokens/day")})
    async with bot_on(api, model, guests=True, budgets=budgets, tempo=NEVER):
        for text in ("one", "two"):
            query = await asked(api, text, user=ADA)
            await api.guest_shows(query, f"re: {text}")
        planned = await sqlite_storage.read(lambda connection: connection.execute(select(deliveries.c.payload)).all())
    assert [row.payload["text"] for row in planned] == ["re: one", "re: two"]


def test_what_the_service_says_as_a_guest_is_no_markdown() -> None:
    said = line("I couldn’t read ", quoted("**x** [here](https://evil.example)"))
    (payload,) = plan_guest(Message(None, Role.SYSTEM, said.plain, formatted=said), {})
    assert payload["text"] == "I couldn’t read **x** [here](https://evil.example)"
    assert [each["type"] for each in payload["entities"]] == ["code"]


async def test_other_bots_are_not_answered(api: BotApi, bot_on) -> None:
    async with bot_on(api, guests=True):
        by_bot = await asked(api, "let us talk for ever", user=BOB, extra={"from": BOB.as_user() | {"is_bot": True}})
        query = await asked(api, "hello", user=ADA)
        await api.guest_shows(query, "You said: hello")
    assert by_bot.shown == []


async def test_an_answer_that_is_too_long_for_one_message_says_so(api: BotApi, bot_on) -> None:
    async with bot_on(api, ["word " * 3000], guests=True, tempo=NEVER):
        query = await asked(api, "tell me all", user=ADA)
        await api.until(lambda: query.shown)
    assert query.shown[0].endswith(in_language("guests.cut", "en"))
    assert len(query.shown[0]) <= 4096


async def test_formatting_that_is_refused_leaves_plain_text(api: BotApi, bot_on) -> None:
    api.order(Refuse(400, "Bad Request: ENTITY_BOUNDS_INVALID"), "answerGuestQuery")
    async with bot_on(api, ["**bold**"], guests=True, tempo=NEVER):
        query = await asked(api, "x", user=ADA)
        await api.guest_shows(query, "bold")
    assert query.entities == []


async def test_a_flood_is_waited_out(api: BotApi, bot_on, typist: Typist) -> None:
    api.order(flood(1), "editMessageText")
    async with bot_on(api, typist, guests=True, tempo=AT_ONCE, clock=fast_clock()):
        query = await asked(api, "x", user=ADA)
        await api.guest_shows(query, STUB)
        typist.write("done")
        typist.finish()
        await api.guest_shows(query, "done")


def closed(query: GuestQuery) -> None:
    query.is_open = query.is_editable = False


@pytest.mark.parametrize("is_after_stub", [False, True])
async def test_an_answer_that_comes_too_late_goes_to_whoever_asked_and_is_said_once(
    api: BotApi, bot_on, typist: Typist, caplog: Any, is_after_stub: bool
) -> None:
    async with bot_on(api, typist, guests=True, tempo=AT_ONCE if is_after_stub else NEVER):
        query = await asked(api, "x", user=ADA)
        await until(lambda: typist.prompts and (query.shown == [STUB] or not is_after_stub))
        closed(query)
        typist.write("the answer")
        typist.finish()
        await api.message(42, f"{LATE}\n\nthe answer")
    assert [each.msg for each in caplog.records].count("telegram.guest_too_late") == 1


async def test_an_answer_that_nobody_can_get_any_more_is_kept_and_said(
    api: BotApi, bot_on, typist: Typist, sqlite_storage: Storage, caplog: Any
) -> None:
    stranger = Person(77, "Eve")  # never wrote to the bot: it cannot write to her
    async with bot_on(api, typist, guests=True, tempo=NEVER):
        query = await asked(api, "x", user=stranger)
        await until(lambda: typist.prompts)
        closed(query)
        typist.write("the answer")
        typist.finish()
        await until(lambda: [each.msg for each in caplog.records].count("delivery.failed"))
    assert [row[1] for row in await stored(sqlite_storage)] == ["x", "the answer"]
    assert len(api.calls("sendMessage")) == 1


async def test_a_server_that_knows_no_guests_has_the_asker_told(api: BotApi, bot_on) -> None:
    api.order(Refuse(404, "Not Found: method not found"), "answerGuestQuery", times=None)
    async with bot_on(api, guests=True, tempo=AT_ONCE):
        await asked(api, "x", user=ADA)
        await api.message(42, f"{LATE}\n\nYou said: x")


async def test_a_turn_that_goes_on_elsewhere_changes_the_stub_that_stands_there(
    api: BotApi, bot_on, typist: Typist
) -> None:
    async with bot_on(api, typist, guests=True, tempo=AT_ONCE) as bot:
        query = await asked(api, "x", user=ADA)
        await api.guest_shows(query, STUB)
        await until(lambda: typist.prompts)
        await bot.worker.stop(grace_seconds=0)
    async with bot_on(api, ["done"], guests=True, tempo=AT_ONCE):
        await api.guest_shows(query, "done")
    assert query.shown == [STUB, "done"]
    assert len(api.calls("answerGuestQuery")) == 1


async def test_a_question_is_answered_that_was_asked_before_guests_were_turned_off(
    api: BotApi, bot_on, typist: Typist
) -> None:
    async with bot_on(api, typist, guests=True, tempo=AT_ONCE) as bot:
        query = await asked(api, "x", user=ADA)
        await api.guest_shows(query, STUB)
        await until(lambda: typist.prompts)
        await bot.worker.stop(grace_seconds=0)
    async with bot_on(api, ["| Tea | 2 |\n|--|--|\n| Milk | 3 |"], tempo=AT_ONCE):
        await api.until(lambda: "Milk" in query.shown[-1])


async def test_an_edit_whose_answer_was_lost_is_made_again_and_changes_nothing(
    api: BotApi, bot_on, typist: Typist
) -> None:
    lost = api.order(Hang(after_effect=True), "editMessageText")
    async with bot_on(api, typist, guests=True, tempo=AT_ONCE) as bot:
        query = await asked(api, "x", user=ADA)
        await api.guest_shows(query, STUB)
        typist.write("done")
        typist.finish()
        await api.guest_shows(query, "done")
        await bot.worker.stop(grace_seconds=0)
    lost.gate.open()
    async with bot_on(api, [], guests=True, tempo=AT_ONCE):
        await api.until(lambda: len(api.calls("editMessageText")) == 2)
        api.person_says("hello", chat_id=42)
    assert query.shown == [STUB, "done"]


async def test_forgetting_whoever_asked_takes_their_question_along(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, guests=True):
        query = await asked(api, "I have the flu, what helps?", user=ADA)
        await api.guest_shows(query, "You said: I have the flu, what helps?")
    await forget_person(sqlite_storage, Author("telegram", "42"))
    assert "flu" not in str([row for row in await stored(sqlite_storage) if row[0] == "user"])
