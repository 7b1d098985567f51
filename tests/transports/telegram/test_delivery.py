"""Answers go out: each message once as far as Telegram lets us know, in order, in the form that it takes."""

import asyncio
import json

import pytest
from standins.bot_api import BotApi, Drop, LoseAnswer, MessageShown, RateLimits, Refuse, flood, server_error
from standins.bot_api.calls import Call
from standins.clocks import TIMES_AS_FAST, JumpingClock, fast_clock

from botservice import AgentContext, Attachment, Storage, Tool, ToolCall
from botservice.core.messages import Message, Role
from botservice.storage.tables.conversations import deliveries
from transports.telegram.answer_messages import plan_answer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


async def statuses(storage: Storage) -> list[tuple[str, int]]:
    def query(connection):
        return [(row.status, row.attempts) for row in connection.execute(deliveries.select().order_by(deliveries.c.id))]

    return await storage.read(query)


async def delivered(storage: Storage) -> list[tuple[str, int]]:
    """Return how deliveries stand once none is open."""
    async with asyncio.timeout(60):
        while True:
            found = await statuses(storage)
            if found and all(status in ("delivered", "failed") for status, _ in found):
                return found
            await asyncio.sleep(0)


async def test_signs_that_are_no_marks_are_seen_as_they_were_written(api: BotApi, bot_on) -> None:
    literal = (
        "5$/month or 50$/year, $AAPL/$MSFT and ^foo$|^bar$",
        "Use <b> for bold, <i> for italics and <div> for a block",
        "F = m*a*t, price*qty*tax, 2**n and snake_case_name",
        "1986. That was the year.",
    )
    answer = "\n\n".join(literal)
    async with bot_on(api, [answer]):
        api.person_says("hello", chat_id=42)
        await api.message(42)
    assert api.visible_texts(42) == [answer]


async def test_an_answer_in_which_nothing_can_be_seen_is_asked_for_again(api: BotApi, bot_on) -> None:
    async with bot_on(api, ["\u200b", "\u2800\ufeff", "here"], clock=fast_clock()):
        api.person_says("hello", chat_id=42)
        await api.message(42, "here")
    assert api.visible_texts(42) == ["here"]


async def test_a_long_answer_comes_in_parts_in_order(api: BotApi, bot_on) -> None:
    answer = "\n\n".join(f"Paragraph {n}. " + "Some words follow. " * 30 for n in range(40))
    async with bot_on(api, [answer]):
        api.order(Refuse(404, "Not Found: method not found"), "sendRichMessage", times=None)
        api.person_says("go on", chat_id=42)
        await api.message(42, "Paragraph 39", timeout=60)
    shown = " ".join(api.visible_texts(42)).split()
    assert shown == answer.split()
    assert all(len(text) <= 4096 for text in api.visible_texts(42))


@pytest.mark.parametrize("fault", [Drop(), server_error(500), server_error(502, html=True), flood(1)])
async def test_what_was_not_taken_is_sent_again_once(api: BotApi, bot_on, fault) -> None:
    async with bot_on(api, clock=fast_clock()):
        api.order(fault, "sendMessage")
        api.person_says("hello", chat_id=42)
        await api.message(42)
        api.person_says("and now?", chat_id=42)
        await api.messages(42, 2)
    assert api.visible_texts(42) == ["You said: hello", "You said: and now?"]


async def test_a_lost_answer_costs_one_duplicate_at_most(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, clock=fast_clock()):
        api.order(LoseAnswer(), "sendMessage")
        api.person_says("hello", chat_id=42)
        await api.messages(42, 2)
        assert await delivered(sqlite_storage) == [("delivered", 2)]
    assert api.visible_texts(42) == ["You said: hello"] * 2


async def test_a_flood_is_waited_out_as_told(api: BotApi, bot_on, monkeypatch) -> None:
    waits = []
    async with bot_on(api, clock=fast_clock()) as bot:
        monkeypatch.setattr(bot.transport._sender._pace, "refused", lambda chat, seconds: waits.append((chat, seconds)))
        api.order(flood(1), "sendMessage")
        api.person_says("hello", chat_id=42)
        await api.message(42)
    refused, taken = api.answers("sendMessage")
    assert (refused.status, taken.status) == (429, 200)
    assert (taken.at - refused.at) * TIMES_AS_FAST >= 0.99
    assert waits == [("42", 1.0)]


async def test_published_limits_are_kept_after_the_first_refusal(api: BotApi, bot_on) -> None:
    clock = JumpingClock()
    api.limits = RateLimits(clock=clock)
    async with bot_on(api, pace=clock.pace(), clock=fast_clock()):
        for number in range(4):
            api.person_says(f"message {number}", chat_id=42)
        await api.messages(42, 4, timeout=60)
    assert api.limits.refused <= 1


async def test_the_parts_of_one_answer_keep_to_the_published_limits(api: BotApi, bot_on) -> None:
    clock = JumpingClock()
    api.limits = RateLimits(clock=clock)
    async with bot_on(api, ["word " * 2500], pace=clock.pace(), clock=fast_clock()):
        api.order(Refuse(404, "Not Found: method not found"), "sendRichMessage", times=None)
        api.person_says("go on", chat_id=42)
        await api.messages(42, 4, timeout=60)
    assert api.limits.refused <= 1, "without, it would be each part but the first"


async def test_a_person_who_blocked_the_bot_is_not_written_to_again(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        api.order(Refuse(403, "Forbidden: bot was blocked by the user"), "sendMessage", times=None)
        api.person_says("hello", chat_id=42)
        assert await delivered(sqlite_storage) == [("failed", 1)]
    assert len(api.calls("sendMessage")) == 1


@pytest.mark.parametrize("reason", ["chat not found", "PEER_ID_INVALID", "not enough rights to send text messages"])
async def test_a_chat_that_is_gone_is_given_up(api: BotApi, bot_on, sqlite_storage: Storage, reason: str) -> None:
    async with bot_on(api):
        api.order(Refuse(400, f"Bad Request: {reason}"), "sendMessage", times=None)
        api.person_says("hello", chat_id=42)
        assert (await delivered(sqlite_storage))[0][0] == "failed"
    assert len(api.calls("sendMessage")) == 1


async def test_entities_that_are_refused_all_the_same_leave_plain_text(api: BotApi, bot_on) -> None:
    def has_entities(call: Call) -> bool:
        return "entities" in call.params

    api.order(Refuse(400, "Bad Request: can't parse MessageEntity: no"), "sendMessage", when=has_entities, times=None)
    async with bot_on(api, ["It is **bold**"]):
        api.person_says("hello", chat_id=42)
        shown = await api.message(42)
    assert (shown.text, shown.entities) == ("It is bold", ())


async def test_an_answer_in_a_topic_that_is_gone_comes_outside_of_it(api: BotApi, bot_on) -> None:
    group = api.add_group(is_forum=True)
    topic = api.add_topic(group.id)
    async with bot_on(api) as bot:
        gate = api.order(Refuse(400, "Bad Request: message thread not found"), "sendMessage")
        api.person_says(f"@{api.username} hello", chat_id=group.id, thread_id=topic)
        shown = await api.message(group.id)
        assert gate.used == 1
        assert shown.thread_id is None
        assert bot.worker.is_running


async def test_a_group_that_became_a_supergroup_gets_its_answer(api: BotApi, bot_on) -> None:
    api.add_group(-500, type="group")

    def migrate_first(_: object) -> str:
        api.migrate(-500, -1000000000500)
        return "here"

    async with bot_on(api, migrate_first):
        api.person_says(f"@{api.username} hello", chat_id=-500)
        assert (await api.message(-1000000000500, "here")).text == "here"


async def test_files_of_tools_reach_the_person(api: BotApi, bot_on) -> None:
    async def draw() -> list[Attachment]:
        """Draw."""
        return [
            Attachment("image/png", "chart.png", PNG),
            Attachment("text/csv", "data.csv", b"a,b\n1,2\n"),
            Attachment("audio/ogg", "voice.ogg", b"OggS" + bytes(40)),
        ]

    async with bot_on(api, [ToolCall("", "draw")], tools=[Tool(draw, is_final=True)]):
        api.person_says("draw", chat_id=42)
        shown = await api.messages(42, 3, lambda message: message.kind != "text")
    assert [message.kind for message in shown] == ["photo", "document", "voice"]
    assert [api.file(message.file_id).data[:8] for message in shown] == [PNG[:8], b"a,b\n1,2\n", b"OggS\0\0\0\0"]
    assert api.file(shown[1].file_id).name == "data.csv"


def answer(text: str = "", *attachments: Attachment) -> Message:
    return Message(None, Role.ASSISTANT, text, attachments)


def test_one_file_carries_a_short_text_as_its_caption() -> None:
    (payload,) = plan_answer(answer("The **chart**", Attachment("image/png", data=PNG)), [])
    assert payload["method"] == "sendPhoto"
    assert payload["caption"] == "The chart"
    assert payload["caption_entities"] == [{"type": "bold", "offset": 4, "length": 5}]
    text, photo = plan_answer(answer("word " * 400, Attachment("image/png", data=PNG)), [])
    assert (text["method"], photo["method"]) == ("sendMessage", "sendPhoto")


def test_planning_is_pure_and_makes_nothing_of_nothing() -> None:
    assert plan_answer(answer(), []) == []
    assert plan_answer(answer("  \n\u200b "), []) == []
    long = answer("**word** " * 2000, Attachment("image/png", data=PNG))
    assert json.loads(json.dumps(plan_answer(long, []))) == plan_answer(long, [])


async def test_a_picture_that_telegram_cannot_process_comes_as_a_document(api: BotApi, bot_on) -> None:
    async def draw() -> Attachment:
        """Draw."""
        return Attachment("image/png", "odd.png", b"no picture")

    async with bot_on(api, [ToolCall("", "draw")], tools=[Tool(draw, is_final=True)]):
        api.person_says("draw", chat_id=42)
        shown = await api.message(42, lambda message: message.kind == "document")
    assert api.file(shown.file_id).data == b"no picture"


async def test_an_apology_reaches_the_person_and_names_an_id(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    from botservice import LLMError

    async with bot_on(api, [LLMError("no such model", is_transient=False), "better now"]):
        api.person_says("hello", chat_id=42)
        assert "T1" in (await api.message(42)).text
        api.person_says("again", chat_id=42)
        await api.message(42, "better now")
    context = await AgentContext.get_or_create(sqlite_storage, {"transport": "telegram", "chat_id": "42"})
    assert [message.text for message in await context.chat_history.messages()] == ["hello", "again", "better now"]


async def test_nothing_is_shown_twice_in_a_busy_hour(api: BotApi, bot_on) -> None:
    people = range(100, 110)
    async with bot_on(api):
        for number in range(5):
            for person in people:
                api.person_says(f"{person} says {number}", chat_id=person)
        for person in people:
            await api.messages(person, 5, timeout=60)
    for person in people:
        assert api.visible_texts(person) == [f"You said: {person} says {number}" for number in range(5)]
    assert len([entry for entry in api.journal.entries(MessageShown) if entry.from_bot]) == 50


async def test_a_process_that_lost_its_chat_while_it_waited_for_its_turn_sends_nothing(
    api: BotApi, bot_on, sqlite_storage: Storage, monkeypatch
) -> None:
    lost = []
    async with bot_on(api) as bot:
        turn = bot.transport._sender._pace.turn

        async def hang(*arguments: object) -> None:
            await turn(*arguments)
            if not lost:  # as another process does with the claim of one that hangs
                context = await AgentContext.get_or_create(sqlite_storage, {"transport": "telegram", "chat_id": "42"})
                holder = sqlite_storage.claims.holder(context.id)
                lost.append(sqlite_storage.claims.take_over(holder))

        monkeypatch.setattr(bot.transport._sender._pace, "turn", hang)
        api.person_says("hello", chat_id=42)
        await api.until(lambda: bool(lost))
        api.person_says("another chat", chat_id=43)
        await api.message(43)
        assert api.visible_texts(42) == []
        await sqlite_storage.claims.release(lost[0])
        await api.message(42)
    assert api.visible_texts(42) == ["You said: hello"]
