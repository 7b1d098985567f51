"""A reminder that begins a task has the role of the person who made it."""

from datetime import UTC, datetime, timedelta

import pytest

from botservice.agent.reminding import Reminders
from tests.turns.bots import call
from tests.turns.messenger import SetClock
from tests.turns.ranks import REFUSED, obeying, say_in_one_turn, team

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.any_database
@pytest.mark.parametrize("who", ["anna", "olga"])
async def test_a_reminder_that_begins_a_task_is_of_the_person_who_made_it(storage, who):
    clock = SetClock(NOON)

    def script(prompt):
        if prompt[-1]["content"].endswith("remind me"):
            return call("remind_me", text="use deploy 1", in_hours=2, ask_agent=True)
        return "I will" if "reminder" in str(prompt[-1]).lower() and prompt[-1]["role"] == "tool" else obeying(prompt)

    async with team(storage, script=script, clock=clock, tools=Reminders(clock).tools()) as bot:
        await bot.ask(who, "remind me")
        other = "olga" if who == "anna" else "anna"
        assert (await bot.ask(other, "hello")).endswith("hello")
        clock.now += timedelta(hours=2)
        said = await bot.next(2)
        assert said.startswith(REFUSED) == (who == "anna")
        assert bot.ran == [("deploy", 1)] * (who == "olga")


@pytest.mark.parametrize("last", ["hm", "~hm"])
async def test_nobody_has_a_task_set_in_the_name_of_another(storage, last):
    def script(prompt):
        if prompt[-1]["role"] != "tool" and "remind me" in str(prompt):
            return call("remind_me", text="use deploy 1", in_hours=2, ask_agent=True)
        return prompt[-1]["content"]

    async with team(storage, script=script, tools=Reminders(storage.now).tools(), is_started=False) as bot:
        said = await say_in_one_turn(bot, ("bob", "remind me"), ("olga", last))
        assert said == "Not set: several people ask at once; let the one who wants the task ask for it alone."
        await bot.ask("olga", "remind me")
        assert (await bot.ask("bob", "/retry")).startswith("Not set: several people ask")
