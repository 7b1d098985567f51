"""What /why, a replay and the list of turns say of calls that wait or have waited: readable, and without secrets."""

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.devtools.conversations import read_turns
from botservice.devtools.reports import render_turns
from tests.turns.bots import call
from tests.turns.messenger import SetClock
from tests.turns.test_waiting import keys, shop

SECRET = "sk-abcdefghijklmnop1234567"  # pragma: allowlist secret - invented


async def replay(storage, *, detailed):
    context_id = await storage.read(lambda connection: find_context(connection, ContextKeys.of(keys("1"))))
    found = await read_turns(storage, context_id)
    console = Console(file=io.StringIO(), width=300)
    console.print(render_turns(found, detailed=detailed))
    return console.file.getvalue()


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("fate", "says", "why"),
    [
        ("suspended", "waits for approval of pay (#1), asked by Anna, since 2026-06-01 00:00, until", None),
        ("allowed", "pay (#1): allowed, 2026-06-01 00:00 UTC", "pay: succeeded"),
        ("denied", "pay (#1): denied, 2026-06-01 00:00 UTC", "pay: not allowed, so not run"),
        ("expired", "pay (#1): expired, 2026-06-02 01:00 UTC", "pay: not allowed, so not run"),
    ],
)
async def test_the_record_says_what_became_of_a_call_and_shows_no_secret(storage, fate, says, why):
    clock = SetClock(datetime(2026, 6, 1, tzinfo=UTC))
    async with shop(storage, call("pay", to=SECRET, amount=5), clock=clock) as bot:
        await bot.say("pay her")
        (buttons,) = await bot.asked()
        if fate in ("allowed", "denied"):
            await bot.press(buttons[fate == "denied"])
        elif fate == "expired":
            clock.now += timedelta(hours=25)
        if fate != "suspended":
            await bot.shows(lambda texts: len(texts) == 2)
        shown = [await replay(storage, detailed=each) for each in (False, True)]
        await bot.say("/why")
        texts = await bot.shows(lambda texts: len(texts) == (2 if fate == "suspended" else 3))
    assert all(says in each for each in shown)
    assert all("Call pay" in each for each in shown)
    assert not any(SECRET in each for each in [*shown, *texts])
    assert why is None or why in texts[-1]
