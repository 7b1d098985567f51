"""Turns that wait, as people see them: asked once, decided by whom it concerns, and shown what became of it."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from botservice import Author, InboundMessage, Later, tool
from botservice.commands.standard import standard_commands
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.states import EventKind
from botservice.people.access import Access
from botservice.storage.tables.conversations import turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.buttons import read_buttons, write_buttons
from botservice.turns.commands import parse_command
from botservice.turns.inbox import Inbox
from botservice.turns.transport import BUTTONS
from botservice.turns.turn import InboundEvent
from tests.turns.bots import call
from tests.turns.messenger import Messenger, SetClock, office

ANNA, BOB, OLGA = (Author("messenger", each.lower(), each) for each in ("Anna", "Bob", "Olga"))


class Group(Messenger):
    """Messages say who wrote them, `anna: hello`; buttons and edits are seen."""

    def __init__(self):
        super().__init__()
        self.buttons = {}

    async def read(self, event):
        who, _, text = event.raw.decode().partition(": ")
        author = Author(self.name, who, who.capitalize())
        return InboundMessage(text, author, external_id=event.key, command=parse_command(text), is_private=False)

    def is_shared(self, context_keys):
        return True

    def plan(self, answer, events):
        kept = {BUTTONS: write_buttons(answer.buttons)} if answer.buttons else {}
        return [{"text": answer.text, "says": [each.says for each in answer.buttons], **kept}] if answer.text else []

    async def send(self, context_keys, delivery):
        external_id = await super().send(context_keys, delivery)
        self.buttons[external_id] = delivery.payload["says"]
        return external_id


class Shop:
    """A bot with a till in a chat of several people."""

    def __init__(self, opened, till, inbox):
        self.office, self.till, self.inbox = opened, till, inbox
        self.platform = opened.messenger
        self.order = 0

    async def say(self, text, who="anna", chat="1"):
        self.order += 1
        event = InboundEvent(f"{chat}:{self.order}", keys(chat), self.order, f"{who}: {text}".encode())
        await self.office.inbox.accept("messenger", [event])

    async def stop(self, who="anna"):
        self.order += 1
        raw = f"{who}: /stop".encode()
        await self.office.inbox.accept(
            "messenger", [InboundEvent(f"s{self.order}", keys("1"), self.order, raw, EventKind.STOP)]
        )

    async def press(self, says, who=ANNA):
        return await self.inbox.decide(keys("1"), says, who, is_private=False)

    async def shows(self, condition, chat="1"):
        await self.platform.until(lambda: condition(self.platform.visible.get(chat, [])))
        return self.platform.visible[chat]

    async def asked(self, count=1):
        """Return what the buttons of the questions say, as soon as so many were asked."""
        await self.platform.until(lambda: len([each for each in self.platform.buttons.values() if each]) >= count)
        return [each for each in self.platform.buttons.values() if each]

    async def read(self, query):
        return await self.office.storage.read(lambda connection: connection.execute(query).all())


def keys(chat):
    return {"transport": "messenger", "chat_id": chat}


def answering(*script):
    """Return a model that calls what a script says, by how many results its prompt ends with."""

    def answer(prompt):
        said = [each["content"] for each in prompt if each["role"] == "user"][-1].rpartition(": ")[2]
        done = sum(1 for each in prompt if each.get("tool_calls"))
        return script[done] if "pay" in said and done < len(script) else f"re {said}"

    return answer


def pay(amount=5):
    return call("pay", to="Anna", amount=amount)


def payments(till):
    """Return the tool that pays, and notes it in a till."""

    @tool(needs_approval=True)
    async def pay(to: str, amount: int) -> str:
        """Pay a person."""
        till.append(amount)
        return "paid"

    return pay


@contextlib.asynccontextmanager
async def shop(storage, *script, paid=None, clock=None, **options):
    till = [] if paid is None else paid

    pay = payments(till)
    access = Access(owners=frozenset({"messenger:olga"}))
    now = {} if clock is None else {"clock": clock}
    async with office(
        storage,
        options.pop("model", None) or answering(*script),
        messenger=options.pop("messenger", None) or Group(),
        tools=options.pop("only_tools", None) or [pay, *options.pop("tools", ())],
        access=access,
        commands=standard_commands(),
        **now,
        **options,
    ) as opened:
        inbox = Inbox(storage, opened.worker.wake, clock, access=access)
        yield Shop(opened, till, inbox)


@pytest.mark.any_database
async def test_a_person_is_asked_with_what_would_be_done_and_it_is_done_once(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        (question,) = bot.platform.visible["1"]
        assert "pay" in question
        assert "to: Anna\namount: 5" in question
        assert "Anna" in question.splitlines()[0]
        assert [each.partition(" ")[0] for each in says] == ["/allow", "/deny", "/allow"]
        await bot.say("how are you", "bob")
        await bot.shows(lambda texts: len(texts) == 2)
        assert (await bot.press(says[0])).is_taken
        texts = await bot.shows(lambda texts: len(texts) == 3)
        assert texts[0].startswith("Allowed for Anna: pay")
        assert texts[1:] == ["re how are you", "re pay Anna"]
        assert bot.till == [5]
        again = await bot.press(says[0])
        assert (again.is_taken, "already decided" in again.text.plain) == (False, True)
        assert bot.platform.buttons["1"] == []


@pytest.mark.any_database
async def test_only_who_asked_may_decide_and_owners(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        refused = await bot.press(says[0], BOB)
        assert (refused.is_taken, "person who asked" in refused.text.plain) == (False, True)
        await bot.say(says[0], "bob")
        await bot.shows(lambda texts: len(texts) == 2)
        assert bot.till == []
        assert (await bot.press(says[1], OLGA)).is_taken
        texts = await bot.shows(lambda texts: len(texts) == 3)
        assert texts[0].startswith("Denied for Anna: pay")
        assert bot.till == []


async def test_who_is_taken_out_may_decide_nothing_and_what_they_asked_for_ends(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        await bot.say("/revoke messenger:anna", "olga")
        await bot.shows(lambda texts: len(texts) == 2)
        assert not (await bot.press(says[0])).is_taken
        assert (await bot.press(says[0], OLGA)).is_taken
        await bot.shows(lambda texts: "Stopped for" in texts[0] or "Allowed" in texts[0])
        found = turns.select().with_only_columns(turns.c.status, turns.c.outcome).order_by(turns.c.id).limit(1)
        ((status, outcome),) = await bot.read(found)
        assert (status, outcome, bot.till) == ("done", "stopped", [])


@pytest.mark.any_database
@pytest.mark.parametrize(("typed", "paid"), [("/allow", [5]), ("/deny", []), ("/allow all", [5]), ("/allow 0", None)])
async def test_a_word_can_be_typed(storage, typed, paid):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        await bot.asked()
        await bot.say(typed)
        if paid is None:
            await bot.shows(lambda texts: "with this number" in texts[-1])
            return
        texts = await bot.shows(lambda texts: len(texts) == 3)
        assert (texts[-1], bot.till) == ("re pay Anna", paid)


async def test_calls_of_one_step_are_asked_about_one_by_one_and_many_together(storage):
    async with shop(storage, [pay(1), pay(2)]) as bot:
        await bot.say("pay Anna")
        assert len(await bot.asked(2)) == 2
    async with shop(storage, [pay(each) for each in range(6)]) as bot:
        await bot.say("pay Anna", chat="2")
        (says,) = await bot.asked()
        assert len(says) == 2
        numbers = says[0].split()[1:]
        assert len(numbers) == 6
        await bot.inbox.decide(keys("2"), f"/deny {numbers[0]}", ANNA)
        texts = await bot.shows(lambda texts: "denied" in texts[0], chat="2")
        assert texts[0].startswith("May I do these 6 actions")
        await bot.inbox.decide(keys("2"), says[0], ANNA)
        texts = await bot.shows(lambda texts: len(texts) == 2, chat="2")
        assert texts[0].startswith("Decided for Anna:")
        assert sorted(bot.till) == [1, 2, 3, 4, 5]


@pytest.mark.any_database
async def test_what_nobody_decides_in_time_is_not_done_and_the_message_says_so(storage):
    clock = SetClock(datetime(2026, 6, 1, tzinfo=UTC))
    async with shop(storage, pay(), clock=clock) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        clock.now += timedelta(hours=25)
        texts = await bot.shows(lambda texts: len(texts) == 2)
        assert texts[0].startswith("Expired for Anna, because nobody decided in time")
        assert not (await bot.press(says[0])).is_taken
        assert bot.till == []


@pytest.mark.any_database
async def test_who_asked_may_stop_it_and_others_may_not(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        await bot.stop("bob")
        await bot.say("hello", "bob")
        await bot.shows(lambda texts: texts[-1] == "re hello")
        await bot.stop("anna")
        texts = await bot.shows(lambda texts: texts[0].startswith("Stopped for"))
        assert "Stopped" in texts[0]
        assert not (await bot.press(says[0])).is_taken
        assert bot.till == []


@pytest.mark.any_database
async def test_a_question_that_is_taken_back_is_not_gone_on_with(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        await bot.asked()
        bot.order += 1
        event = InboundEvent("gone", keys("1"), bot.order, b"anna: ", EventKind.DELETE, external_id="1:1")
        await bot.office.inbox.accept("messenger", [event])
        await bot.shows(lambda texts: texts[0].startswith("Stopped for"))
        assert bot.till == []


async def test_what_is_always_allowed_is_listed_and_taken_back(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        await bot.press(says[2])
        await bot.shows(lambda texts: len(texts) == 2)
        await bot.say("pay again")
        await bot.shows(lambda texts: texts[-1] == "re pay again")
        assert bot.till == [5, 5]
        await bot.say("/tools")
        await bot.shows(lambda texts: "pay" in texts[-1])
        await bot.say("/tools ask shout")
        await bot.shows(lambda texts: texts[-1].startswith("shout isn’t always allowed") and "- pay" in texts[-1])
        await bot.say("/tools ask pay")
        await bot.shows(lambda texts: "will ask you again" in texts[-1])
        await bot.say("/tools ask pay")
        await bot.shows(lambda texts: texts[-1] == "pay isn’t always allowed in this chat.")
        await bot.say("pay once more")
        await bot.shows(lambda texts: texts[-1].startswith("May I"))
        assert bot.till == [5, 5]


@pytest.mark.any_database
async def test_secrets_are_masked_and_all_of_long_arguments_comes_on_demand(storage):
    @tool(needs_approval=True)
    async def pay_later(text: str, api_key: str, inner: dict) -> str:
        """Pay."""
        return "paid"

    wish = call(
        "pay_later", text="x" * 999 + "zebra", api_key="sk-live-1234567890abcdef", inner={"password": "hunter2"}
    )
    async with shop(storage, wish, tools=[pay_later]) as bot:
        await bot.say("pay Anna")
        await bot.asked()
        (question,) = bot.platform.visible["1"]
        assert "sk-live" not in question
        assert "hunter2" not in question
        assert "zebra" not in question
        number = (await bot.read(pending_calls.select()))[0].id
        await bot.say(f"/allow show {number}")
        texts = await bot.shows(lambda texts: len(texts) == 2)
        assert "xzebra" in texts[1]
        assert "hunter2" not in texts[1]


@pytest.mark.any_database
async def test_a_result_that_comes_later_is_answered_when_it_comes(storage):
    @tool
    async def pay_by_post(amount: int) -> str:
        """Pay."""
        return Later("letter 1")

    async with shop(storage, call("pay_by_post", amount=1), tools=[pay_by_post]) as bot:
        await bot.say("pay Anna")
        await bot.shows(lambda texts: texts and "takes longer" in texts[0])
        await bot.say("hi", "bob")
        await bot.shows(lambda texts: len(texts) == 2)
        from botservice import AgentContext
        from botservice.turns.call_decisions import hand_in

        context = await AgentContext.get_or_create(storage, keys("1"))
        assert await hand_in(context, "letter 1", "arrived", storage.now())
        texts = await bot.shows(lambda texts: len(texts) == 3)
        assert texts[-1] == "re pay Anna"


@pytest.mark.any_database
async def test_a_turn_that_waits_is_forgotten_with_its_chat(storage):
    from botservice.privacy.forgetting import forget_chat

    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        context_id = await storage.read(lambda connection: find_context(connection, ContextKeys.of(keys("1"))))
        await forget_chat(storage, context_id)
        assert await bot.read(pending_calls.select()) == []
        assert not (await bot.press(says[0])).is_taken


async def test_another_process_goes_on_after_a_restart(storage):
    paid, platform = [], Group()
    async with shop(storage, pay(), paid=paid, messenger=platform) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
    async with shop(storage, pay(), paid=paid, messenger=platform) as bot:
        assert read_buttons([]) == ()
        assert (await bot.press(says[0])).is_taken
        await bot.shows(lambda texts: texts[-1] == "re pay Anna")
    assert paid == [5]
