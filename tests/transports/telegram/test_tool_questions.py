"""Questions of a tool on Telegram: only the person who is asked answers, with a button or with typed words."""

import asyncio
from datetime import UTC, datetime, timedelta

from sqlalchemy import select
from standins.bot_api import BotApi, Person
from standins.questions import Hotel, receptionist

from botservice import Tool, ToolCall
from botservice.core.states import EventKind
from botservice.people.access import Access
from botservice.storage.tables.conversations import events
from tests.transports.telegram.test_approval import labels, press, told
from tests.turns.messenger import SetClock

GROUP = -1001000000001
ANNA = Person(1001, first_name="Anna")
BERTA = Person(1002, first_name="Berta", language_code="de")


async def test_in_a_group_only_the_asker_answers_and_the_call_goes_on_once(api: BotApi, bot_on_both) -> None:
    hotel = Hotel()
    api.add_group(GROUP)
    async with bot_on_both(api, receptionist, tools=hotel.tools):
        asked = api.person_says(f"@{api.username} reserve", chat_id=GROUP, user=ANNA)
        question = await api.message(GROUP, "Room")
        assert question.reply_to == asked.message_id
        assert labels(question) == ["Single", "Double", "Decline"]
        for label in ("Double", "Decline"):
            query = press(api, question, label, user=BERTA)
            assert await told(api, query) == "Diese Buttons sind nur für die Person, die gefragt hat."
        api.person_says(f"@{api.username} Double", chat_id=GROUP, user=BERTA)
        await api.message(GROUP, "Double", after=question.message_id)
        reply = api.person_says("Single", chat_id=GROUP, user=BERTA, reply_to=question.message_id)
        await api.message(GROUP, "Single", after=reply.message_id)
        assert labels(api.seen(GROUP, question.message_id)) == ["Single", "Double", "Decline"]
        press(api, question, "Double", user=ANNA)
        named = await api.message(GROUP, "Name (2/2)")
        other = api.person_says("Berta", chat_id=GROUP, user=BERTA, reply_to=named.message_id)
        await api.message(GROUP, "Berta", after=other.message_id)
        api.person_says("Anna", chat_id=GROUP, user=ANNA, reply_to=named.message_id)
        await api.message(GROUP, "Read: booked")
    assert hotel.booked == [{"size": "Double", "name": "Anna"}]


async def ask_name(api: BotApi):
    """Have a person get as far as the question that is answered with words, and return it."""
    api.person_says("reserve", chat_id=42)
    press(api, await api.message(42, "Room (1/2)"), "Double")
    return await api.message(42, "Name (2/2)")


async def test_a_voice_message_that_nobody_listens_to_is_no_answer(api: BotApi, bot_on) -> None:
    hotel = Hotel()
    async with bot_on(api, receptionist, tools=hotel.tools):
        await ask_name(api)
        api.person_sends_voice(b"OggS", chat_id=42)
        await api.message(42, "Read: [voice message")
        api.person_says("Anna", chat_id=42)
        await api.message(42, "Read: booked")
    assert hotel.booked == [{"size": "Double", "name": "Anna"}]


async def test_an_answer_that_is_edited_before_it_is_read_answers_as_edited(api: BotApi, bot_on) -> None:
    hotel, began, may_end = Hotel(), asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        began.set()
        await may_end.wait()
        return "waited"

    def model(prompt):
        is_wait = prompt[-1]["role"] == "user" and "wait" in str(prompt[-1]["content"])
        return ToolCall("1", "wait", {}) if is_wait else receptionist(prompt)

    def find_edit(connection):
        return connection.execute(select(events.c.id).where(events.c.kind == EventKind.EDIT.value)).first()

    async with bot_on(api, model, tools=[*hotel.tools, Tool(wait)]) as bot:
        await ask_name(api)
        api.person_sends_photo(b"\xff\xd8\xff", chat_id=42, caption="wait")
        await began.wait()
        said = api.person_says("Ana", chat_id=42)
        api.person_edits(42, said.message_id, "Anna")
        while await bot.storage.read(find_edit) is None:
            pass
        may_end.set()
        await api.message(42, "Read: booked")
    assert hotel.booked == [{"size": "Double", "name": "Anna"}]


async def test_words_of_a_pause_are_no_answer_and_after_it_has_run_out_they_are(api: BotApi, bot_on) -> None:
    hotel, clock = Hotel(), SetClock(datetime(2026, 1, 1, tzinfo=UTC))
    access = Access(owners=frozenset({"telegram:42"}))
    async with bot_on(api, receptionist, tools=hotel.tools, access=access, clock=clock):
        await ask_name(api)
        clock.now += timedelta(minutes=1)
        api.person_says("/pause 30m", chat_id=42)
        await api.message(42, "paused in this chat")
        api.person_says("Ben", chat_id=42)
        api.person_says("/help", chat_id=42)  # answered in a pause, and after what came before it
        await api.message(42, "/forget")
        assert hotel.booked == []
        clock.now += timedelta(minutes=31)
        api.person_says("Anna", chat_id=42)
        await api.message(42, "Read: booked")
    assert hotel.booked == [{"size": "Double", "name": "Anna"}]
