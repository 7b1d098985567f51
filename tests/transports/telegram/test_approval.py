"""Tools that ask first, on Telegram: buttons that turn into what was decided, by whoever may decide, once."""

from datetime import timedelta

import pytest
from standins.bot_api import BotApi, LoseAnswer, Person
from standins.clocks import fast_clock
from standins.payments import HOSTILE, Till, cashier

from botservice.people.access import Access

GROUP = -1001000000001
ANNA = Person(1001, first_name="Anna")
BERTA = Person(1002, first_name="Berta", language_code="de")
OWNER = Person(1003, first_name="Olga")


def labels(message) -> list[str]:
    return [button["text"] for row in message.buttons for button in row]


def press(api: BotApi, message, text: str, **who) -> str:
    data = next(each["callback_data"] for row in message.buttons for each in row if each["text"] == text)
    return api.person_presses(message.chat_id, message.message_id, data, **who)


async def told(api: BotApi, query_id: str) -> str | None:
    """Return what the presser alone was told."""
    await api.until(lambda: api.callback_answers[query_id] is not None)
    return api.callback_answers[query_id].get("text")


async def becomes(api: BotApi, message, text: str):
    """Return a message once it says something."""
    await api.until(lambda: text in api.seen(message.chat_id, message.message_id).text)
    return api.seen(message.chat_id, message.message_id)


@pytest.mark.parametrize(
    ("webhook", "button", "paid", "says"), [(False, "Allow", 1, "Allowed for"), (True, "Deny", 0, "Denied for")]
)
async def test_a_press_decides_and_the_question_says_so(api, bot_on_both, webhook, button, paid, says) -> None:
    till = Till()
    async with bot_on_both(api, cashier(), tools=till.tools, webhook=webhook):
        api.person_says("pay her", chat_id=42)
        question = await api.message(42, "May I do this")
        assert "pay" in question.text
        assert "to: Anna\namount: 5" in question.text
        assert labels(question) == ["Allow", "Deny", "Always in this chat"]
        api.person_says("how are you?", chat_id=42)
        await api.message(42, "Read: how are you?")
        assert till.paid == []
        assert (await told(api, press(api, question, button))).startswith(says.split()[0])
        decided = await becomes(api, question, says)
        assert decided.buttons == ()
        assert "to: Anna\namount: 5" in decided.text
        await api.message(42, "Read: paid 5 to Anna" if paid else "did not allow")
    assert till.paid == [("Anna", 5)] * paid
    assert len(api.visible_texts(42)) == 3


async def test_pressed_twice_or_afterwards_it_counts_once(api, bot_on) -> None:
    till = Till()
    async with bot_on(api, cashier(), tools=till.tools):
        api.person_says("pay her", chat_id=42)
        question = await api.message(42, "May I do this")
        queries = [press(api, question, each) for each in ("Allow", "Allow", "Deny")]
        assert [await told(api, each) for each in queries] == [
            "Allowed: pay", *["That was already decided, or it has expired."] * 2]  # fmt: skip
        await api.message(42, "Read: paid 5 to Anna")
        await becomes(api, question, "Allowed for")
        assert await told(api, press(api, question, "Deny")) == "That was already decided, or it has expired."
    assert till.paid == [("Anna", 5)]


async def test_in_a_group_a_stranger_cannot_decide_and_an_owner_can(api, bot_on) -> None:
    till = Till()
    api.add_group(GROUP)
    access = Access(owners=frozenset({"telegram:1003"}))
    async with bot_on(api, cashier(), tools=till.tools, access=access):
        asked = api.person_says(f"@{api.username} pay her", chat_id=GROUP, user=ANNA)
        question = await api.message(GROUP, "May I do this for Anna")
        assert question.reply_to == asked.message_id
        query = press(api, question, "Allow", user=BERTA)
        assert await told(api, query) == "Diese Buttons sind nur für die Person, die gefragt hat."
        assert labels(api.seen(GROUP, question.message_id)) == ["Allow", "Deny", "Always in this chat"]
        assert till.paid == []
        assert (await told(api, press(api, question, "Allow", user=OWNER))).startswith("Allowed")
        decided = await becomes(api, question, "Allowed for Anna")
        assert "Decided by Olga." in decided.text
        await api.message(GROUP, "Read: paid 5 to Anna")
    assert till.paid == [("Anna", 5)]


async def test_after_its_time_the_question_says_that_it_is_over(api, bot_on) -> None:
    till = Till()
    async with bot_on(api, cashier(), tools=till.tools, approval_lasts=timedelta(seconds=0.3)):
        api.person_says("pay her", chat_id=42)
        question = await api.message(42, "May I do this")
        over = await becomes(api, question, "Expired for")
        assert over.buttons == ()
        await api.message(42, "Read: ", after=question.message_id)
        assert await told(api, press(api, question, "Allow")) == "That was already decided, or it has expired."
    assert till.paid == []


async def test_a_question_outlives_the_process_that_asked_it(api, bot_on) -> None:
    till = Till()
    async with bot_on(api, cashier(), tools=till.tools):
        api.person_says("pay her", chat_id=42)
        question = await api.message(42, "May I do this")
    async with bot_on(api, cashier(), tools=till.tools):
        press(api, question, "Allow")
        await becomes(api, question, "Allowed for")
        await api.message(42, "Read: paid 5 to Anna")
    assert till.paid == [("Anna", 5)]
    assert len(api.visible_texts(42)) == 2


async def test_arguments_are_shown_as_they_are(api, bot_on) -> None:
    till = Till()
    call = {"to": HOSTILE, "amount": 5, "note": "n" * 50_000}
    async with bot_on(api, cashier(call), tools=till.tools):
        api.person_says("pay her", chat_id=42)
        question = await api.message(42, "May I do this")
        shown = HOSTILE.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
        assert shown in question.text
        assert len(question.text) <= 4096
        assert {each["type"] for each in question.entities} == {"code", "pre", "date_time"}
        assert "/allow show" in question.text
        press(api, question, "Deny")
        assert shown in (await becomes(api, question, "Denied for")).text
    assert len(api.visible_texts(42)) >= 1


async def test_many_calls_are_decided_together(api, bot_on) -> None:
    till = Till()
    calls = [{"to": f"P{number}", "amount": number} for number in range(7)]
    async with bot_on(api, cashier(*calls), tools=till.tools):
        api.person_says("pay all", chat_id=42)
        question = await api.message(42, "May I do these 7 actions")
        assert labels(question) == ["Allow all", "Deny all"]
        press(api, question, "Allow all")
        await becomes(api, question, "Decided for")
        await api.message(42, "Read: ", after=question.message_id)
    assert sorted(till.paid) == [(each["to"], each["amount"]) for each in calls]


async def test_a_question_that_was_shown_twice_can_be_decided_on_either_copy(api, bot_on) -> None:
    till = Till()
    async with bot_on(api, cashier(), tools=till.tools, clock=fast_clock()):
        api.order(LoseAnswer(), "sendMessage")
        api.person_says("pay her", chat_id=42)
        await api.until(lambda: len([each for each in api.visible_messages(42, from_bot=True) if each.buttons]) == 2)
        copy, question = [each for each in api.visible_messages(42, from_bot=True) if each.buttons]
        assert await told(api, press(api, copy, "Allow")) == "Allowed: pay"
        await becomes(api, question, "Allowed for")
        await api.until(lambda: "✓ Allow" in labels(api.seen(42, copy.message_id)))
        await api.message(42, "Read: paid 5 to Anna")
        gone = "This button no longer works."
        assert await told(api, api.person_presses(42, copy.message_id, "b1")) == gone
    assert till.paid == [("Anna", 5)]
