"""MCP servers that ask the model, as usage of the person for whom they work."""

import pytest
from sqlalchemy import select

from botservice.storage.tables.people import model_usage
from tests.turns.asking_hotel import REVISIONS, calling, hotel, newest

pytestmark = [pytest.mark.slow, pytest.mark.any_database]


@REVISIONS
async def test_a_server_that_may_asks_the_model_as_usage_of_the_person(storage, tmp_path, revision):
    answer, seen = calling("sum_up"), []

    def model(prompt):
        if "Sum up" not in str(prompt[-1]["content"]):
            return answer(prompt)
        seen.append([each["content"] for each in prompt])
        return "wide sea"

    async with hotel(storage, tmp_path, revision, model, entry={"sampling": True}) as bot:
        await bot.say("go")
        await newest(bot, "got in short: wide sea")
        [used] = await bot.read(select(model_usage.c.calls))
        assert used.calls == 3
    assert seen == [["You sum up.", "Sum up: the sea is wide."]]


@REVISIONS
async def test_no_other_server_asks_the_model(storage, tmp_path, revision):
    async with hotel(storage, tmp_path, revision, calling("sum_up")) as bot:
        await bot.say("go")
        text = await newest(bot, "got ")
        assert "ampling" in text
