"""A model that is asked for something else than an answer: what its own code raises, and its time limit."""

import asyncio

import pytest

from botservice import LLMError, ScriptedChatLLM, Storage
from botservice.agent.auxiliary_model import SideModel
from botservice.people.budgets import Budgets

QUESTION = [{"role": "user", "content": "yes or no?"}]


async def ask(storage: Storage, chat, *, patience_seconds: float = 60.0) -> str:
    class Model(ScriptedChatLLM):
        async def chat(self, messages, tools=(), **_options):
            return await chat()

    side = SideModel(Model(["yes"]), Budgets(), purpose="gate", patience_seconds=patience_seconds)
    with pytest.raises(LLMError) as error:
        await side.ask(storage, QUESTION)
    return str(error.value)


async def test_what_a_model_of_ones_own_raises_is_told_by_its_kind(sqlite_storage):
    async def fail():
        raise ZeroDivisionError("a secret")

    assert await ask(sqlite_storage, fail) == "the model failed with ZeroDivisionError"


async def test_a_time_limit_of_the_models_own_is_not_taken_for_that_of_the_side_model(sqlite_storage):
    async def give_up():
        raise TimeoutError

    assert await ask(sqlite_storage, give_up) == "the model failed with TimeoutError"


async def test_a_model_that_says_nothing_in_time_is_given_up(sqlite_storage):
    async def hang():
        await asyncio.Event().wait()

    assert await ask(sqlite_storage, hang, patience_seconds=0.0) == "the model did not answer within 0 seconds"
