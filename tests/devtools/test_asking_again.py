"""Asking a past turn again: the prompt is the recorded one, tools are answered from the record, and nothing changes."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select
from standins.tools import adder

from botservice import (
    AgentContext,
    AgentService,
    Author,
    BotServiceError,
    ChatResponse,
    FunctionsBasedAgent,
    LLMError,
    ScriptedChatLLM,
    TokenUsage,
    Tool,
    ToolCall,
)
from botservice.agent.tool import WEB_SEARCH
from botservice.core.policies import Scope, parse_limits, parse_prices
from botservice.devtools.recorded_turn import read_record
from botservice.devtools.replayed_answers import Changes
from botservice.devtools.replaying import ask_again, prompt_again
from botservice.people.budgets import Budgets
from botservice.people.usage import Payer, UsageBy
from botservice.people.usage_queries import list_usage
from botservice.storage.tables.columns import metadata

ran: list[tuple[int, int]] = []


@pytest.fixture(autouse=True)
def nothing_ran():
    """Each test counts the tools' runs from none."""
    ran.clear()


add = adder(ran)


def service_of(storage, script, *, tools=(add,), **options):
    llm = ScriptedChatLLM(script)
    agent = FunctionsBasedAgent(tools=tools, llm=llm, prompt="Be kind.", **options)
    return AgentService(agent, storage), llm


async def count_rows(storage):
    def count(connection):
        tables = [each for each in metadata.sorted_tables if not each.name.startswith("model_usage")]
        return {each.name: connection.execute(select(func.count()).select_from(each)).scalar_one() for each in tables}

    return await storage.read(count)


ADDED = [ToolCall("c1", "add", {"a": 2, "b": 3}), "It is 5."]


@pytest.mark.parametrize("blank", ["", " ", "\u200b\ufeff"])
async def test_an_answer_in_which_nothing_can_be_seen_is_an_error(storage, context, blank):
    service, _ = service_of(storage, ["one", blank])
    await service.prompt(context, "go")
    asked = await ask_again(service, context, 1)
    assert asked.again.error == "the model gave an empty answer"


async def test_the_model_reads_what_it_read_then_and_nothing_in_the_chat_changes(storage, context):
    service, llm = service_of(storage, [*ADDED, *ADDED, "And now?"])
    await context.chat_history.append_user_message("My dog is called Rex", author="alice")
    await service.prompt(context, "What is 2 + 3?", author="alice")
    before = await count_rows(storage)
    compared = await ask_again(service, context, 1)
    assert llm.prompts[2] == llm.prompts[0]
    assert llm.prompts[3] == llm.prompts[1]
    assert llm.tools[2] == llm.tools[0]
    assert (compared.then.text, compared.again.text, compared.is_same) == ("It is 5.", "It is 5.", True)
    assert ran == [(2, 3)]
    assert await count_rows(storage) == before
    assert [each.text for each in await context.chat_history.messages()][-1] == "It is 5."


@pytest.mark.any_database
async def test_what_is_said_later_is_not_in_the_prompt(storage, context):
    service, llm = service_of(storage, ["one", "two", "again"])
    await service.prompt(context, "first?")
    await service.prompt(context, "second?")
    await ask_again(service, context, 1)
    assert llm.prompts[2] == llm.prompts[0]


@pytest.mark.any_database
async def test_a_call_that_is_not_in_the_record_is_not_made_and_is_told(storage, context):
    other = [ToolCall("c1", "add", {"a": 2, "b": 4}), "I cannot tell."]
    service, llm = service_of(storage, [*ADDED, *other])
    await service.prompt(context, "What is 2 + 3?")
    compared = await ask_again(service, context, 1)
    assert ran == [(2, 3)]
    assert [(each.name, each.arguments) for each in compared.again.missing] == [("add", {"a": 2, "b": 4})]
    assert "not in the record" in llm.prompts[3][-1]["content"]
    assert compared.again.text == "I cannot tell."


@pytest.mark.any_database
async def test_the_same_call_twice_gets_both_results_in_their_order(storage, context):
    drawn = iter("ab")
    draw = Tool(lambda: next(drawn), name="draw", description="Draw a card.")
    twice = [ToolCall("c1", "draw"), ToolCall("c2", "draw"), "done"]
    service, llm = service_of(storage, [*twice, *twice], tools=[draw])
    await service.prompt(context, "Draw two")
    compared = await ask_again(service, context, 1)
    assert [each.result for each in compared.again.tool_calls] == ["a", "b"]
    assert llm.prompts[5] == llm.prompts[2]


async def test_a_call_without_a_result_takes_none_of_another_call(storage, context):
    def lose_the_first(step):
        step.tool_results = step.tool_results[1:]

    llm = ScriptedChatLLM([[ToolCall("c1", "add", {"a": 1, "b": 1}), ToolCall("c2", "add", {"a": 2, "b": 2})], "done"])
    service = AgentService(FunctionsBasedAgent(tools=(add,), llm=llm), storage, step_callbacks=[lose_the_first])
    await service.prompt(context, "add")
    recorded = await read_record(storage, context.id, context.turn_id)
    assert [(each.arguments, each.result) for each in recorded.tool_calls] == [({"a": 2, "b": 2}, "4")]


@pytest.mark.any_database
async def test_a_tool_that_asks_first_never_runs_and_asks_nobody(storage, context):
    asking = adder(ran, needs_approval=True)
    service, _ = service_of(storage, ["No.", ToolCall("c1", "add", {"a": 1, "b": 1}), "Still no."], tools=[asking])
    await service.prompt(context, "What is 1 + 1?")
    before = await count_rows(storage)
    compared = await ask_again(service, context, 1)
    assert compared.again.text == "Still no."
    assert len(compared.again.missing) == 1
    assert (ran, await count_rows(storage)) == ([], before)


@pytest.mark.any_database
async def test_the_recorded_result_of_a_final_tool_is_the_answer(storage, context):
    final = adder(ran, is_final=True)
    call = ToolCall("c1", "add", {"a": 2, "b": 3})
    service, _ = service_of(storage, [call, call], tools=[final])
    await service.prompt(context, "What is 2 + 3?")
    compared = await ask_again(service, context, 1)
    assert (compared.then.text, compared.again.text) == ("5", "5")
    assert ran == [(2, 3)]


@pytest.mark.any_database
async def test_what_the_server_of_a_model_would_run_is_not_offered(storage, context):
    service, llm = service_of(storage, ["one", "two"], tools=[add, WEB_SEARCH])
    llm.searches_web = True
    await service.prompt(context, "Hi")
    await ask_again(service, context, 1)
    assert [len(tools) for tools in llm.tools] == [2, 1]


@pytest.mark.any_database
async def test_another_prompt_stands_in_the_place_of_the_agents_and_the_persona_stays(storage, context):
    service, llm = service_of(storage, ["Hello.", "Arr!"])
    context.metadata["persona"] = {"text": "A pirate", "by": "alice"}
    await context.save_metadata()
    await service.prompt(context, "Hi")
    compared = await ask_again(service, context, 1, Changes(prompt="Be rude."))
    then, again = (prompt[0]["content"] for prompt in llm.prompts)
    assert again == then.replace("Be kind.", "Be rude.")
    assert "A pirate" in again
    assert compared.changed == ["another prompt"]


@pytest.mark.any_database
async def test_a_prompt_of_the_conversation_s_own_gives_way_as_the_agents_does(storage, context):
    service, llm = service_of(storage, ["Hello.", "Arr!"])
    await context.set_prompt("Be brief.")
    await service.prompt(context, "Hi")
    await ask_again(service, context, 1, Changes(prompt="Be rude."))
    assert llm.prompts[1][0]["content"] == "Be rude."


@pytest.mark.any_database
async def test_parts_of_what_is_remembered_can_be_left_out(storage, context):
    service, llm = service_of(storage, ["Rex.", "I do not know."])
    await context.chat_history.append_user_message("My dog is called Rex")
    await context.chat_history.append_assistant_message("Nice")
    await service.prompt(context, "What is my dog called?")
    compared = await ask_again(service, context, 1, Changes(without=["window"]))
    assert "Rex" in str(llm.prompts[0])
    assert "Rex" not in str(llm.prompts[1])
    assert llm.prompts[1][-1] == llm.prompts[0][-1]
    assert compared.changed == ["without window"]


@pytest.mark.any_database
async def test_the_whole_prompt_can_be_given(storage, context):
    service, llm = service_of(storage, ["one", "two"])
    await service.prompt(context, "Hi")
    own = [{"role": "user", "content": "Something else"}]
    await ask_again(service, context, 1, Changes(messages=own))
    assert llm.prompts[1] == own


async def test_a_part_that_no_prompt_has_is_refused_by_name():
    with pytest.raises(BotServiceError, match=r"no part 'facts'.*notes, window"):
        Changes(without=["facts"])
    with pytest.raises(BotServiceError, match="the whole prompt"):
        Changes(prompt="a", messages=[{"role": "user", "content": "b"}])


@pytest.mark.any_database
async def test_it_may_begin_with_a_later_call(storage, context):
    service, llm = service_of(storage, [*ADDED, "It is five."])
    await service.prompt(context, "What is 2 + 3?")
    compared = await ask_again(service, context, 1, call=2)
    assert llm.prompts[2] == llm.prompts[1]
    assert (compared.then.calls, compared.then.tool_calls, compared.again.text) == (1, (), "It is five.")
    with pytest.raises(BotServiceError, match="asked 2 times in turn 1: there is no call 3"):
        await ask_again(service, context, 1, call=3)


@pytest.mark.any_database
async def test_another_model_is_asked_and_named(storage, context):
    service, _ = service_of(storage, ["one"])
    await service.prompt(context, "Hi")
    compared = await ask_again(service, context, 1, llm=ScriptedChatLLM(["two"], model="other"))
    assert (compared.then.models, compared.again.models) == (("scripted",), ("other",))
    assert (compared.then.text, compared.again.text) == ("one", "two")


@pytest.mark.any_database
async def test_a_model_that_fails_is_an_answer_that_says_so(storage, context):
    service, _ = service_of(storage, ["one", LLMError("the server is down")])
    await service.prompt(context, "Hi")
    compared = await ask_again(service, context, 1)
    assert (compared.again.text, compared.again.error) == ("", "the server is down")
    assert not compared.is_same


@pytest.mark.any_database
async def test_a_model_that_calls_for_ever_has_to_answer_in_the_end(storage, context):
    service, llm = service_of(storage, lambda prompt: "done" if len(prompt) < 3 else ToolCall("c", "add", {"a": 1}))
    await service.prompt(context, "Hi")
    looping = ScriptedChatLLM(lambda prompt: [ToolCall("c", "add", {"a": 1, "b": 1}), "so far"])
    compared = await ask_again(service, context, 1, llm=looping)
    assert compared.again.text == "so far"
    assert (compared.again.calls, looping.tools[-1]) == (11, [])
    assert looping.tools[0] == llm.tools[0]


@pytest.mark.any_database
async def test_a_turn_whose_model_failed_is_asked_again_with_what_that_was_sent(storage, context):
    service, llm = service_of(storage, [LLMError("no", is_transient=False), "Now it works."])
    with pytest.raises(LLMError):
        await service.prompt(context, "Hi")
    compared = await ask_again(service, context, 1)
    assert compared.then.error is not None
    assert compared.again.text == "Now it works."
    assert llm.prompts[0] == llm.prompts[1] == compared.prompt


@pytest.mark.any_database
async def test_tokens_and_money_are_told_of_both_and_paid_by_nobody(storage, context):
    script = [ChatResponse("a", usage=TokenUsage(100, 10)), ChatResponse("b", usage=TokenUsage(300, 20))]
    service, _ = service_of(storage, script)
    limits = {Scope.PERSON: parse_limits("9000 tokens/day"), Scope.SERVICE: parse_limits("9000 tokens/day")}
    budgets = Budgets(limits, parse_prices("scripted=10/100"))
    service.options = replace(service.options, budgets=budgets)
    alice = Author("telegram", "42", "Alice")
    await service.prompt(context, "Hi", author=alice)
    compared = await ask_again(service, context, 1)
    assert (compared.more_tokens, compared.more_cost) == (210, 3_000_000)
    assert (compared.then.cost, compared.again.cost) == (2_000_000, 5_000_000)
    now = storage.now()
    lines = await storage.read(lambda connection: list_usage(connection, UsageBy.MODEL, now))
    assert {line.subject: line.input_tokens for line in lines} == {"scripted": 100, "again": 300}
    people = await storage.read(lambda connection: list_usage(connection, UsageBy.PERSON, now))
    assert {line.subject: line.input_tokens for line in people} == {"telegram:42": 100, "": 300}
    payer = Payer.of(context.id, context.context_keys, alice)
    used = {each.scope: each.used for each in await budgets.standings(storage, payer, now)}
    assert used == {Scope.PERSON: 110, Scope.SERVICE: 430}


@pytest.mark.any_database
async def test_the_prompt_can_be_seen_before_anybody_is_asked(storage, context):
    service, llm = service_of(storage, ["one"])
    await service.prompt(context, "Hi")
    assert await prompt_again(service, context.id, 1) == llm.prompts[0]
    assert len(llm.prompts) == 1


@pytest.mark.any_database
async def test_what_was_forgotten_since_does_not_come_back(storage, context):
    service, llm = service_of(storage, ["Nice.", "Rex.", "It is gone."])
    await service.prompt(context, "My dog is called Rex")
    await service.prompt(context, "What is my dog called?")
    first = (await context.chat_history.messages())[0]
    await context.chat_history.delete_messages([first.id])
    await ask_again(service, context, 2)
    assert "Rex" not in str(llm.prompts[2])


@pytest.mark.any_database
async def test_a_turn_of_another_conversation_is_not_there(storage, context):
    service, _ = service_of(storage, ["one"])
    await service.prompt(context, "Hi")
    other = await AgentContext.get_or_create(storage, {"chat_id": "2"})
    with pytest.raises(BotServiceError, match="context 2 has no turn 1"):
        await ask_again(service, other, 1)
