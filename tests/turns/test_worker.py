"""What a worker does with what came in."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update
from turns.messenger import PATIENCE_SECONDS, HastyClock, Messenger, echo, message, office

from botservice import AgentContext, LLMError, Storage
from botservice.core.errors import DeliveryError, DeliveryRefused
from botservice.storage.tables.conversations import deliveries, turns
from botservice.turns.backlog_queries import put_off
from botservice.turns.inbox import Inbox
from botservice.turns.retry_policies import SUSPECTS_AT_ONCE, SUSPICIOUS_BEGINNINGS

CHAT = {"transport": "messenger", "chat_id": "1"}


async def history(storage: Storage, chat: str = "1") -> list[tuple[str, str]]:
    context = await AgentContext.get_or_create(storage, {**CHAT, "chat_id": chat})
    return [(each.role.value, each.text) for each in await context.chat_history.messages()]


async def test_a_message_is_answered_once_however_often_it_is_delivered(storage):
    async with office(storage, echo) as bot:
        assert await bot.write("hello", order=1) == 1
        assert await bot.write("hello", order=1) == 0
        await bot.messenger.shows("1", "re: hello")
        assert await bot.write("hello", order=1) == 0
        await bot.write("bye", order=2)
        await bot.messenger.shows("1", "re: hello", "re: bye")
    assert await history(storage) == [
        ("user", "hello"),
        ("assistant", "re: hello"),
        ("user", "bye"),
        ("assistant", "re: bye"),
    ]


async def test_parts_that_were_put_off_behind_something_that_is_gone_do_not_wait(storage):
    messenger = Messenger()
    messenger.belong_together = lambda known, event: all(b"part" in each.raw for each in (*known, event))
    async with office(storage, echo, messenger=messenger, is_started=False) as bot:
        await bot.write("part 1", order=1)
        await bot.write("part 2", order=2)
        now = datetime.now(UTC)
        await storage.write(lambda connection: put_off(connection, 1, now + timedelta(hours=1), now))
        await bot.worker.start()
        await bot.write("other", order=3)
        await messenger.shows("1", "re: part 2", "re: other")
    assert [text for role, text in await history(storage) if role == "user"] == ["part 1", "part 2", "other"]


async def test_the_same_message_twice_in_one_commit_is_one_message(storage):
    async with office(storage, echo) as bot:
        assert await bot.inbox.accept("messenger", [message("hello", order=1), message("hello", order=1)]) == 1
        await bot.messenger.shows("1", "re: hello")


@pytest.mark.any_database
async def test_what_has_arrived_is_answered_in_the_platforms_order(storage):
    async with office(storage, echo, is_started=False) as bot:
        for order in (3, 1, 2):
            await bot.write(f"m{order}", order=order)
        await bot.worker.start()
        await bot.messenger.shows("1", "re: m1", "re: m2", "re: m3")


async def test_one_context_works_on_one_turn_at_a_time_and_other_contexts_go_on_meanwhile(storage):
    held, running = asyncio.Event(), []

    async def model(messages):
        text = messages[-1]["content"]
        running.append(text)
        if text == "slow":
            await held.wait()
        return f"re: {text}"

    async with office(storage, model) as bot:
        await bot.write("slow", order=1)
        await bot.write("after", order=2)
        await bot.write("other", chat="2", order=3)
        await bot.messenger.shows("2", "re: other")
        assert "after" not in running
        held.set()
        await bot.messenger.shows("1", "re: slow", "re: after")


@pytest.mark.any_database
async def test_what_is_not_meant_for_the_bot_is_kept_and_not_answered(storage):
    async with office(storage, echo) as bot:
        await bot.write("~ between people", order=1)
        await bot.write("(nothing)", order=2)
        await bot.write("hello", order=3)
        await bot.messenger.shows("1", "re: hello")
        assert bot.messenger.lives == [None], "nothing is shown for what is not answered"
    assert await history(storage) == [("user", "~ between people"), ("user", "hello"), ("assistant", "re: hello")]


@pytest.mark.any_database
async def test_the_parts_of_an_album_are_one_turn_and_what_comes_after_it_waits(storage):
    async with office(storage, echo, is_started=False) as bot:  # or a part that takes a second would come too late
        await bot.write("part one", order=1, group="album")
        await bot.write("after", order=3)
        await bot.write("part two", order=2, group="album")
        await bot.worker.start()
        await bot.messenger.shows("1", "re: part two", "re: after")
    assert [text for _, text in await history(storage)] == [
        "part one", "part two", "re: part two", "after", "re: after",
    ]  # fmt: skip


@pytest.mark.any_database
async def test_a_model_that_is_down_costs_an_apology_and_the_chat_goes_on(storage):
    script = [LLMError("sk-secret was refused", is_transient=False), "all right again"]
    async with office(storage, script) as bot:
        await bot.write("first", order=1)
        await bot.messenger.until(lambda: "1" in bot.messenger.visible)
        apology = bot.messenger.visible["1"][0]
        assert apology.startswith("Sorry")
        assert "T1" in apology
        assert "sk-secret" not in apology
        await bot.write("second", order=2)
        await bot.messenger.shows("1", apology, "all right again")
    assert await history(storage) == [("user", "first"), ("user", "second"), ("assistant", "all right again")]


async def test_a_turn_that_keeps_failing_is_tried_again_in_its_place_and_then_set_aside(sqlite_storage):
    messenger = Messenger()
    messenger.read_errors = [RuntimeError("token 123:abc")] * 4
    async with office(sqlite_storage, echo, messenger=messenger, clock=HastyClock()) as bot:
        await bot.write("poisoned", order=1)
        await bot.write("after", order=2)
        await messenger.until(lambda: len(messenger.visible.get("1", [])) == 2)
        apology, answer = messenger.visible["1"]
        assert apology.startswith("Sorry")
        assert "123:abc" not in apology
        assert answer == "re: after"
    assert messenger.read_errors == []


async def test_an_error_that_no_database_takes_is_told_all_the_same(storage):
    unspeakable = "half \ud800 and nothing \0 " + "of it " * 1_000
    messenger = Messenger()
    messenger.read_errors = [RuntimeError(unspeakable)] * 4
    messenger.send_errors = [DeliveryError(unspeakable, retry_after_seconds=1), DeliveryError(unspeakable)]
    async with office(storage, echo, messenger=messenger, clock=HastyClock()) as bot:
        await bot.write("poisoned", order=1)
        await bot.write("after", order=2)
        await messenger.until(lambda: len(messenger.visible.get("1", [])) == 2)
    reasons = await storage.read(lambda connection: connection.execute(select(deliveries.c.error)).scalars().all())
    assert [each[:20] for each in reasons if each] == ["half \ufffd and nothing \ufffd"]


async def test_a_turn_that_fails_once_is_answered_before_what_came_after_it(sqlite_storage):
    messenger = Messenger()
    messenger.read_errors = [RuntimeError("a hiccup")]
    async with office(sqlite_storage, echo, messenger=messenger, clock=HastyClock()) as bot:
        await bot.write("first", order=1)
        await bot.write("second", order=2)
        await messenger.shows("1", "re: first", "re: second")


async def test_a_platform_that_asks_to_wait_is_waited_for_and_the_order_is_kept(sqlite_storage):
    messenger = Messenger()
    messenger.send_errors = [DeliveryError("flood", retry_after_seconds=1800), DeliveryError("bad gateway")]
    async with office(sqlite_storage, echo, messenger=messenger, clock=HastyClock()) as bot:
        await bot.write("a|b", order=1)
        await bot.write("c", order=2)
        await messenger.shows("1", "re: a", "b", "re: c")
    assert messenger.tries == ["re: a", "re: a", "re: a", "b", "re: c"]


async def test_the_first_message_of_an_answer_is_on_its_way_from_the_commit_of_the_answer_on(storage):
    seen = []

    class Watching(Messenger):
        async def send(self, context_keys, delivery):
            query = select(deliveries.c.payload, deliveries.c.status, deliveries.c.attempts).order_by(deliveries.c.id)
            rows = await storage.read(lambda connection: connection.execute(query).all())
            seen.append((delivery.attempts, [(row.payload["text"], row.status, row.attempts) for row in rows]))
            return await super().send(context_keys, delivery)

    async with office(storage, lambda _: "one|two", messenger=Watching()) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "one", "two")
    assert seen == [
        (0, [("one", "attempting", 1), ("two", "pending", 0)]),
        (0, [("one", "delivered", 1), ("two", "attempting", 1)]),
    ]


async def test_a_first_message_whose_process_ended_before_it_was_sent_is_sent_by_the_next(storage):
    class Ending(Messenger):
        async def send(self, context_keys, delivery):
            self.tries.append(delivery.payload["text"])
            async with self._changed:
                self._changed.notify_all()
            await asyncio.Event().wait()

    async with office(storage, echo, messenger=Ending()) as first:
        await first.write("hello", order=1)
        await first.messenger.until(lambda: first.messenger.tries == ["re: hello"])
    async with office(storage, echo) as second:
        await second.messenger.shows("1", "re: hello")


@pytest.mark.any_database
async def test_a_person_who_blocked_the_bot_is_not_tried_again(storage):
    messenger = Messenger()
    messenger.send_errors = [DeliveryRefused("blocked by the user")]
    async with office(storage, echo, messenger=messenger) as bot:
        await bot.write("first", order=1)
        await bot.write("second", order=2)
        await messenger.shows("1", "re: second")
    assert messenger.tries == ["re: first", "re: second"]


@pytest.mark.any_database
async def test_a_transport_that_breaks_while_sending_holds_nothing_up(storage):
    messenger = Messenger()
    messenger.send_errors = [RuntimeError("a bug")]
    async with office(storage, echo, messenger=messenger) as bot:
        await bot.write("first", order=1)
        await bot.write("second", order=2)
        await messenger.shows("1", "re: second")


@pytest.mark.any_database
async def test_turns_of_a_transport_that_is_off_are_left_for_when_it_is_on(storage):
    await Inbox(storage, lambda *_: None).accept("messenger", [message("early", order=1)])
    other = Messenger()
    other.name = "other"
    async with office(storage, echo, messenger=other) as bot:
        await bot.inbox.accept("other", [message("now", chat="2", order=1)])
        await other.shows("2", "re: now")
    async with office(storage, echo) as bot:
        await bot.messenger.shows("1", "re: early")
    assert "1" not in other.visible


@pytest.mark.any_database
async def test_no_more_turns_run_at_once_than_are_allowed(storage):
    running, most = set(), []
    gate = asyncio.Event()

    async def model(messages):
        running.add(messages[-1]["content"])
        most.append(len(running))
        if len(running) == 2:
            gate.set()
        await gate.wait()
        running.discard(messages[-1]["content"])
        return "done"

    async with office(storage, model, max_turns=2) as bot:
        await bot.inbox.accept("messenger", [message(f"m{n}", chat=str(n), order=n) for n in range(8)])
        await bot.messenger.until(lambda: len(bot.messenger.visible) == 8)
    assert max(most) == 2


class Hanging(Messenger):
    """A platform that takes what is sent only when a gate opens."""

    name = "hanging"

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def send(self, context_keys, delivery):
        await self.gate.wait()
        return await super().send(context_keys, delivery)


@pytest.mark.any_database
async def test_a_platform_that_hangs_holds_no_place_of_the_others(storage):
    hanging = Hanging()
    async with office(storage, lambda messages: "done|and more", others=[hanging], max_turns=4) as bot:
        await bot.inbox.accept("hanging", [message(f"m{n}", chat=f"h{n}", order=n) for n in range(40)])
        for n in range(4):
            await bot.write("hello", chat=str(n), order=n)
        await bot.messenger.until(lambda: len(bot.messenger.visible) == 4)
        assert not hanging.visible
        hanging.gate.set()
        await hanging.until(lambda: list(hanging.visible.values()).count(["done", "and more"]) == 40)


async def test_turns_that_may_end_their_process_run_a_few_at_a_time_and_hold_nobody_else_up(storage):
    running, most = set(), []
    gate, are_running = asyncio.Event(), asyncio.Event()

    async def model(messages):
        text = messages[-1]["content"]
        if text == "innocent":
            return "at once"
        running.add(text)
        most.append(len(running))
        if len(running) == SUSPECTS_AT_ONCE:
            are_running.set()
        await gate.wait()
        running.discard(text)
        return "done"

    suspects = [message(f"m{n}", chat=str(n), order=n) for n in range(4 * SUSPECTS_AT_ONCE)]
    async with office(storage, model, is_started=False, max_turns=len(suspects)) as bot:
        await bot.inbox.accept("messenger", suspects)
        blame = update(turns).values(attempts=SUSPICIOUS_BEGINNINGS)
        await storage.write(lambda connection: connection.execute(blame))
        await bot.worker.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await are_running.wait()
        await bot.inbox.accept("messenger", [message("innocent", chat="other", order=1)])
        await bot.messenger.shows("other", "at once")
        gate.set()
        await bot.messenger.until(lambda: len(bot.messenger.visible) == len(suspects) + 1)
    assert 0 < max(most) <= SUSPECTS_AT_ONCE


@pytest.mark.parametrize("text", ["", " ", "x" * 1_000_000, "\ud800\0", "🎉" * 5000])
async def test_any_text_is_kept_and_answered(storage, text):
    async with office(storage, lambda _: "fine") as bot:
        await bot.inbox.accept("messenger", [message("placeholder", order=1)])
        event = message("x", order=2)
        raw = type(event)(event.key, event.context_keys, event.order_key, text.encode("utf-8", "surrogatepass"))
        bot.messenger.read = _reads_as(text)
        await bot.inbox.accept("messenger", [raw])
        await bot.messenger.shows("1", "fine", "fine")


def _reads_as(text):
    from botservice import InboundMessage

    async def read(_):
        return InboundMessage(text)

    return read


@pytest.mark.any_database
async def test_a_worker_that_is_stopped_lets_what_runs_finish_within_its_grace(storage):
    asked, held = asyncio.Event(), asyncio.Event()

    async def model(_):
        asked.set()
        await held.wait()
        return "just in time"

    async with office(storage, model) as bot:
        await bot.write("hello", order=1)
        await asyncio.wait_for(asked.wait(), PATIENCE_SECONDS)
        stopping = asyncio.create_task(bot.worker.stop(grace_seconds=PATIENCE_SECONDS))
        await asyncio.sleep(0)
        held.set()
        await stopping
        await bot.messenger.shows("1", "just in time")


async def test_a_turn_that_was_cut_off_is_finished_by_the_next_worker(storage):
    asked = asyncio.Event()

    async def hangs(_):
        asked.set()
        await asyncio.Event().wait()

    async with office(storage, hangs) as bot:
        await bot.write("hello", order=1)
        await asyncio.wait_for(asked.wait(), PATIENCE_SECONDS)
    async with office(storage, echo) as bot:
        await bot.messenger.shows("1", "re: hello")
    assert await history(storage) == [("user", "hello"), ("assistant", "re: hello")]


async def test_work_beside_turns_that_fails_is_logged_once_with_its_error(storage, caplog):
    async def fail():
        raise RuntimeError("no transport stops that")

    async with office(storage, echo) as bot:
        bot.worker._spawn(fail())
        await asyncio.wait(list(bot.worker._tasks))
    [line] = [record for record in caplog.records if record.message == "worker.task_failed"]
    assert "no transport stops that" in str(line.exc_info[1])


async def test_a_context_that_failed_here_and_was_finished_elsewhere_is_forgotten(storage):
    async with office(storage, echo, is_started=False) as bot:
        now = asyncio.get_running_loop().time()
        bot.worker._resting = {1: (3, now - 3600), 2: (1, now + 3600)}
        bot.worker._drop_old_rests()
        assert list(bot.worker._resting) == [2]
