"""Buttons that tools offer travel with the answer, whatever is cut off in between."""

import pytest

from botservice import AgentContext, Button, tool
from botservice.agent.tool_executor import ToolOutcome
from botservice.turns import call_queries
from botservice.turns.buttons import read_buttons
from tests.turns.bots import add, call, make_service

KEYS = {"transport": "test", "chat_id": "1"}
YES, NO = Button("Yes", value="/order 7"), Button("No")


@tool
async def ask() -> list:
    """Ask."""
    return ["Shall I?", YES, NO]


@tool
async def look_up() -> list:
    """Link."""
    return [Button("Read", url="https://example.org")]


@pytest.mark.any_database
async def test_an_answer_has_the_buttons_of_the_newest_offer_of_its_turn(context, storage):
    script = [call("look_up"), [call("ask"), call("add", a=1, b=1)], call("add", a=2, b=2), "Well?", "plain"]
    service, llm = make_service(storage, script, tools=[ask, look_up, add])
    assert (await service.prompt(context, "go")).buttons == (YES, NO)
    assert "[buttons under your answer: Yes | No]" in llm.prompts[2][-2]["content"]
    assert (await service.prompt(context, "again")).buttons == (), "those of an earlier turn are not offered again"


async def test_a_final_tool_answers_with_its_buttons(context, storage):
    ask_finally = tool(is_final=True, name="ask")(ask._function)
    service, _ = make_service(storage, [call("ask")], tools=[ask_finally])
    answer = await service.prompt(context, "go")
    assert (answer.text, answer.buttons) == ("Shall I?", (YES, NO))


@pytest.mark.any_database
async def test_buttons_survive_a_cut_between_their_tool_and_the_answer(context, storage):
    service, _ = make_service(storage, [call("ask"), "Well?"], tools=[ask])
    run = await service.start(context, "go")
    await run.step()
    await run.close()
    again, _ = make_service(storage, ["Well?"], tools=[ask])
    resumed = await again.resume(await AgentContext.get_or_create(storage, KEYS))
    assert (await resumed.finish()).buttons == (YES, NO)


def test_a_call_that_ended_keeps_its_buttons_while_others_run():
    outcome = ToolOutcome("text", buttons=(YES, NO))
    assert call_queries._read_outcome(call_queries._write_outcome(outcome)) == outcome
    assert call_queries._read_outcome(call_queries._write_outcome(ToolOutcome("text"))) == ToolOutcome("text")


def test_what_is_no_button_is_none():
    assert read_buttons([{"text": 1}, "x", None, {"value": "y"}, {"text": "a", "newer": "field"}]) == (Button("a"),)
    assert read_buttons("text") == ()
