"""Several replicas on one Postgres: who hears of what, and who goes on with what."""

import asyncio
import contextlib

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool
from standins.patience import PATIENT
from turns.messenger import PATIENCE_SECONDS, Messenger, echo, message, office
from turns.test_worker import history
from turns.test_worker_controls import Talker

from botservice import AgentContext, Storage
from botservice.commands.standard import standard_commands
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.pausing import Pause, set_pause
from botservice.core.states import EventKind
from botservice.texts import in_language
from botservice.turns.event_queries import insert_event
from botservice.turns.inbox import Inbox, LocalWork
from botservice.turns.turn import InboundEvent, Share
from botservice.turns.wakeups import Wakeup

NEVER = 3600.0  # a sweep that finds nothing within a test: what happens, happens because it was heard of
CHAT = {"transport": "messenger", "chat_id": "1"}
LISTENING = "FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN%'"


@pytest.fixture
def operator(postgres_url):
    """Another person's connection to the same database."""
    engine = create_engine(
        make_url(postgres_url).set(drivername="postgresql+psycopg"), poolclass=NullPool, isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        yield connection
    engine.dispose()


async def until(condition):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await condition():  # noqa: ASYNC110 - a database tells nobody
            await asyncio.sleep(0.01)


async def listeners(operator, count=1):
    """Return once so many replicas listen."""

    async def listen():
        return operator.execute(text(f"SELECT count(*) {LISTENING}")).scalar_one() >= count

    await until(listen)


@contextlib.asynccontextmanager
async def opened(url):
    """Open the same database twice, as two processes do."""
    async with Storage.open(url, limits=PATIENT) as one, Storage.open(url, limits=PATIENT) as two:
        yield one, two


def nobody(*_):
    """Wake nobody: this process has no worker."""


async def test_what_a_process_without_a_worker_accepts_wakes_one_elsewhere(postgres_url, operator):
    async with opened(postgres_url) as (web, storage), office(storage, echo, sweep_seconds=NEVER) as bot:
        await listeners(operator)
        await Inbox(web, nobody, work=LocalWork(share=None)).accept("messenger", [message("hello", order=1)])
        await bot.messenger.shows("1", "re: hello")


async def test_processes_on_one_machine_each_answer_their_share(postgres_url, operator):
    one_s, two_s = Messenger(), Messenger()
    async with (
        opened(postgres_url) as (first, second),
        office(first, echo, messenger=one_s, sweep_seconds=NEVER, share=Share(0, 2)) as one,
        office(second, echo, messenger=two_s, sweep_seconds=NEVER, share=Share(1, 2)),
    ):
        await listeners(operator, 2)
        inbox = Inbox(first, one.worker.wake, work=LocalWork(Share(0, 2)))
        await inbox.accept("messenger", [message("hello", chat=str(n), order=n) for n in range(10)])
        await one_s.until(lambda: len(one_s.visible) == 5)
        await two_s.until(lambda: len(two_s.visible) == 5)
    assert not one_s.visible.keys() & two_s.visible.keys()


async def test_what_shows_here_as_it_is_made_is_made_here(postgres_url, operator):
    shown, elsewhere = Messenger(), Messenger()
    async with (
        opened(postgres_url) as (first, second),
        office(first, echo, messenger=shown, sweep_seconds=NEVER, share=Share(0, 2)) as one,
        office(second, echo, messenger=elsewhere, sweep_seconds=NEVER, share=Share(1, 2)),
    ):
        await listeners(operator, 2)
        inbox = Inbox(first, one.worker.wake, work=LocalWork(Share(0, 2), ["messenger"]))
        await inbox.accept("messenger", [message("hello", chat=str(n), order=n) for n in range(10)])
        await shown.until(lambda: len(shown.visible) == 10)
    assert not elsewhere.visible


async def test_a_stop_reaches_the_process_whose_share_the_chat_is(postgres_url, operator):
    llm, messenger = Talker("Once"), Messenger()
    async with (
        opened(postgres_url) as (first, second),
        office(first, echo, messenger=messenger, sweep_seconds=NEVER, share=Share(0, 2)) as one,
        office(second, llm, messenger=messenger, sweep_seconds=NEVER, share=Share(1, 2)),
    ):
        await listeners(operator, 2)
        inbox = Inbox(first, one.worker.wake, work=LocalWork(Share(0, 2)))
        context = await AgentContext.get_or_create(first, CHAT)
        assert Share(1, 2).has(context.id)
        await inbox.accept("messenger", [message("tell me", order=1)])
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await inbox.accept("messenger", [InboundEvent("stop", CHAT, 2, b"", EventKind.STOP)])
        await messenger.shows("1", "Once")
        assert llm.cancelled


async def test_a_stop_is_heard_where_it_was_accepted_although_the_chat_is_another_s_share(postgres_url):
    llm, messenger = Talker("Once"), Messenger()
    async with (
        Storage.open(postgres_url, limits=PATIENT) as storage,
        office(storage, llm, messenger=messenger, sweep_seconds=NEVER, share=Share(0, 2)) as one,
    ):
        inbox = Inbox(storage, one.worker.wake, work=LocalWork(Share(0, 2), holds=one.worker.holds))
        context = await AgentContext.get_or_create(storage, CHAT)
        assert not Share(0, 2).has(context.id)
        await inbox.accept("messenger", [message("tell me", order=1)])
        one.worker.wake(context.id)  # as when it finds that no other person works on it
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await inbox.accept("messenger", [InboundEvent("stop", CHAT, 2, b"", EventKind.STOP)])
        await messenger.shows("1", "Once")
        assert llm.cancelled


async def test_a_message_for_a_chat_that_another_replica_has_is_answered_there_after_the_one_before(
    postgres_url, operator
):
    llm, messenger = Talker("Once"), Messenger()
    async with (
        opened(postgres_url) as (one, two),
        office(one, llm, messenger=messenger, sweep_seconds=NEVER) as holder,
        office(two, echo, messenger=messenger, sweep_seconds=NEVER) as other,
    ):
        await listeners(operator, 2)
        await holder.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await other.write("after", order=2)
        llm.go.set()
        await messenger.shows("1", "Once to the end", "re: after")
    assert not llm.cancelled


async def test_a_stop_that_another_replica_accepted_reaches_the_one_that_has_the_chat(postgres_url, operator):
    llm, messenger = Talker("Once"), Messenger()
    async with (
        opened(postgres_url) as (one, two),
        office(one, llm, messenger=messenger, sweep_seconds=NEVER) as holder,
        office(two, echo, messenger=messenger, sweep_seconds=NEVER) as other,
    ):
        await listeners(operator, 2)
        await holder.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await other.stop_turn(order=2)
        await messenger.shows("1", "Once")
        assert llm.cancelled
        await other.write("next", order=3)
        await messenger.shows("1", "Once", "re: next")


async def test_a_stop_that_nobody_heard_of_is_found(storage):
    llm = Talker("Once")
    async with office(storage, llm) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        event = InboundEvent("stop", CHAT, 2, b"", EventKind.STOP)
        keys = ContextKeys.of(CHAT)
        await storage.write(lambda connection: insert_event(connection, "messenger", keys, event, bot.inbox._clock()))
        await bot.messenger.shows("1", "Once")


async def test_a_stop_accepted_where_nothing_runs_is_done_with(storage):
    async with office(storage, echo) as bot:
        await bot.stop_turn(order=1)
        count = text("SELECT count(*) FROM events WHERE handled_at IS NULL AND kind = 'stop'")

        async def is_handled():
            return await storage.read(lambda connection: connection.execute(count).scalar_one()) == 0

        await until(is_handled)


async def test_a_turn_whose_claim_went_with_the_connection_is_begun_afresh(postgres_url, operator):
    asked, hung, calls = asyncio.Event(), asyncio.Event(), []

    async def model(messages):
        calls.append(1)
        if len(calls) == 1:
            asked.set()
            await hung.wait()
        return "in the end"

    async with Storage.open(postgres_url, limits=PATIENT) as storage, office(storage, model) as bot:
        await bot.write("hello", order=1)
        await asyncio.wait_for(asked.wait(), PATIENCE_SECONDS)
        sessions = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'botservice'"
        operator.execute(text(f"SELECT pg_terminate_backend(pid, 10000) {sessions}")).all()
        await bot.messenger.shows("1", "in the end")
        assert await history(storage) == [("user", "hello"), ("assistant", "in the end")]
    assert len(calls) == 2, "the first call was cut off and not waited for"


async def test_a_replica_listens_again_after_its_connection_was_cut(postgres_url, operator):
    async with opened(postgres_url) as (web, storage), office(storage, echo, sweep_seconds=NEVER) as bot:
        await listeners(operator)
        operator.execute(text(f"SELECT pg_terminate_backend(pid, 10000) {LISTENING}")).all()
        await listeners(operator)
        await Inbox(web, nobody, work=LocalWork(share=None)).accept("messenger", [message("hello", order=1)])
        await bot.messenger.shows("1", "re: hello")


async def test_a_replica_takes_no_more_than_four_connections(postgres_url, operator):
    async with Storage.open(postgres_url, limits=PATIENT) as storage, office(storage, echo) as bot:
        await bot.inbox.accept("messenger", [message("hello", chat=str(n), order=n) for n in range(50)])
        await bot.messenger.until(lambda: len(bot.messenger.visible) == 50)
        await listeners(operator)
        ours = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'botservice'"
        assert operator.execute(text(f"SELECT count(*) {ours}")).scalar_one() <= 4


async def test_a_replica_does_not_try_what_another_one_has(postgres_url):
    async with opened(postgres_url) as (one, two):
        claim = await one.claims.try_claim(7)
        wanted = [5, 7, 2**31 + 5, 2**32 + 7]
        assert await two.read(lambda connection: two.claims.find_free(connection, wanted)) == [5, 2**31 + 5]
        await one.claims.release(claim)
        assert await two.read(lambda connection: two.claims.find_free(connection, wanted)) == wanted


@pytest.mark.parametrize(
    "wakeup",
    [Wakeup(1), Wakeup(2**40, EventKind.STOP), Wakeup(3, is_open=True), Wakeup(4, EventKind.STOP, is_open=True)],
)
def test_what_replicas_tell_each_other_is_understood(wakeup):
    assert Wakeup.decode(wakeup.encode()) == wakeup


def test_a_message_is_its_contexts_number_as_the_first_release_had_it():
    assert Wakeup(17).encode() == "17"


@pytest.mark.parametrize("payload", ["", " ", "x", "17 something-new", "-1", "\uff11\uff17"])
def test_what_is_not_understood_is_passed_over(payload):
    assert Wakeup.decode(payload) is None


async def test_a_pause_that_one_replica_stores_holds_on_another(postgres_url):
    async with opened(postgres_url) as (one, two):
        context = await AgentContext.get_or_create(one, CHAT)
        async with office(two, echo, commands=standard_commands()) as bot:
            await bot.write("hello", order=1)
            await bot.messenger.shows("1", "re: hello")
            await one.write(lambda connection: set_pause(connection, context.id, Pause(one.now())))
            await bot.write("are you there?", order=2)
            told = in_language("pause.told", "en")
            await bot.messenger.shows("1", "re: hello", told)
            await one.write(lambda connection: set_pause(connection, context.id, None))
            await bot.write("and now?", order=3)
            await bot.messenger.shows("1", "re: hello", told, "re: and now?")
