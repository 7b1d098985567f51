"""What only programs want done waits in line, so that a burst of it keeps nobody waiting."""

from collections.abc import Sequence

import pytest
from sqlalchemy import event
from turns.messenger import Messenger, Office, echo, message, office

from botservice import Storage
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_or_insert_context
from botservice.core.states import EventKind
from botservice.people.names import HOOKS
from botservice.turns.hook_events import HookEvent
from botservice.turns.proactive_messages import prepare_message, write_message
from botservice.turns.turn import InboundEvent

HOUR = 3600.0


async def say(bot: Office, text: str, chat: str) -> None:
    """Have a program say something in a chat, as `AgentService.send` does."""
    storage, keys = bot.storage, ContextKeys.of({"transport": "messenger", "chat_id": chat})
    now = storage.now()
    new = await prepare_message(text, (), now)
    context_id = await storage.write(lambda connection: find_or_insert_context(connection, keys, now))
    await storage.write(lambda connection: write_message(connection, context_id, new))
    bot.worker.wake(context_id, EventKind.PROGRAM)


async def ask(bot: Office, number: int, chat: str) -> None:
    """Have the event of a hook answered in a chat."""
    raw = HookEvent("ci", "Say what failed.", (), str(number)).to_bytes()
    keys = {"transport": "messenger", "chat_id": chat}
    await bot.inbox.accept(f"{HOOKS}messenger", [InboundEvent(f"hook:{number}", keys, number, raw)])


def told(messenger: Messenger, chats: Sequence[str]) -> list[str]:
    return [text for chat in chats for text in messenger.visible.get(chat, [])]


@pytest.mark.parametrize("do", ["say", "ask"])
async def test_people_are_answered_before_all_but_the_first_event_of_a_burst(storage: Storage, do: str):
    chats = [f"b{number}" for number in range(6)]
    async with office(storage, echo, program_seconds=HOUR) as bot:
        for number, chat in enumerate(chats):
            await (say(bot, "news", chat) if do == "say" else ask(bot, number, chat))
        for order in range(3):
            await bot.write(f"hi {order}", chat="7", order=order)
        await bot.messenger.shows("7", "re: hi 0", "re: hi 1", "re: hi 2")
        await bot.messenger.until(lambda: bool(told(bot.messenger, chats[:1])))
        assert len(told(bot.messenger, chats)) == 1


async def test_a_burst_that_an_earlier_process_left_waits_in_line_too(storage: Storage):
    chats = [f"b{number}" for number in range(6)]
    async with office(storage, echo, program_seconds=HOUR, is_started=False) as bot:
        for number, chat in enumerate(chats):
            await (say(bot, "news", chat) if number % 2 else ask(bot, number, chat))
        await bot.write("hi", chat="7", order=1)
        await bot.worker.start()
        await bot.messenger.shows("7", "re: hi")
        await bot.messenger.until(lambda: bool(told(bot.messenger, chats)))
        assert len(told(bot.messenger, chats)) == 1


@pytest.mark.any_database
async def test_a_person_takes_their_chat_out_of_the_line(storage: Storage):
    async with office(storage, echo, program_seconds=HOUR) as bot:
        for chat in ("b0", "b1", "7"):
            await say(bot, "news", chat)
        await say(bot, "more", "7")
        await bot.inbox.accept("messenger", [message("hi", chat="7", order=1)])
        await bot.messenger.shows("7", "news", "more", "re: hi")
        assert told(bot.messenger, ["b0", "b1"]) == ["news"]


@pytest.mark.any_database
async def test_all_of_a_burst_is_done_in_the_order_of_each_chat(storage: Storage):
    chats = ["b0", "b1", "b2"]
    async with office(storage, echo, program_seconds=0.0) as bot:
        for number in range(5):
            for chat in chats:
                await say(bot, f"news {number}", chat)
        for chat in chats:
            await bot.messenger.shows(chat, *(f"news {number}" for number in range(5)))


@pytest.mark.any_database
async def test_what_came_before_a_stop_is_done_after_the_next_start(storage: Storage):
    async with office(storage, echo, program_seconds=HOUR) as bot:
        for chat in ("b0", "b1"):
            await say(bot, "news", chat)
        await bot.messenger.shows("b0", "news")
    async with office(storage, echo, program_seconds=HOUR) as bot:
        await bot.messenger.shows("b1", "news")


@pytest.mark.any_database
async def test_a_message_of_a_program_costs_five_commits(storage: Storage):
    async with office(storage, echo, program_seconds=0.0) as bot:
        await say(bot, "news 0", "b0")
        await bot.messenger.shows("b0", "news 0")
        await storage.write(lambda _: None)  # by now it is stored that it was sent
        commits = list[int]()
        event.listen(storage._writer.connection._engine, "commit", lambda _: commits.append(1))
        await say(bot, "news 1", "b0")
        await bot.messenger.shows("b0", "news 0", "news 1")
        await storage.write(lambda _: None)
    if not storage.is_sqlite:
        pytest.skip("on Postgres the writer commits its heartbeats too")
    # Its context is looked for, it is stored, its sending begins and ends; and one that only waits.
    assert len(commits) <= 5
