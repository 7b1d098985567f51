import asyncio
import json

import pytest

from botservice import ActionStep, AgentContext, Attachment, StepError, Tool, ToolCall, tool
from tests.turns.bots import add, call, fail, make_service, without_ids

pytestmark = pytest.mark.any_database

PNG = Attachment("image/png", "plot.png", data=b"\x89PNG" + b"x" * 2000)
PDF = Attachment("application/pdf", "report.pdf", data=b"%PDF")


async def test_whatever_goes_wrong_with_a_call_becomes_an_observation_and_the_person_gets_an_answer(context, storage):
    @tool(timeout_seconds=0.01)
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()

    script = [
        call("nope"),
        call("add", a="x", b=1),
        call("add", a=1),
        call("add", a=1, b=2, c=3),
        ToolCall("m", "add", {}, malformed_arguments="{not json"),
        call("fail"),
        call("hang"),
        "Sorry",
    ]
    service, llm = make_service(storage, script, tools=[add, fail, hang])
    answer = await service.prompt(context, "go")
    assert answer.text == "Sorry"
    observed = [step.observations for step in context.completed_steps]
    for part, text in zip(
        [
            "no tool 'nope'",
            "do not fit: a",
            "do not fit: b",
            "do not fit: c",
            "not a JSON object",
            "it broke",
            "0.01 seconds",
        ],
        observed,
        strict=True,
    ):
        assert part in text
    assert [step.error.type for step in context.completed_steps] == [*["ToolError"] * 5, "ValueError", "TimeoutError"]
    assert context.completed_steps[5].error == StepError("ValueError", "it broke")
    assert llm.prompts[-1][-1] == {"role": "tool", "tool_call_id": "call_6", "content": observed[-1]}


async def test_a_final_tool_answers_word_for_word_and_is_not_sent_back(context, storage):
    text = "  *The* answer\n\x00\ud800 is 42 \n"

    @tool(is_final=True)
    async def submit() -> str:
        """Submit."""
        return text

    service, llm = make_service(storage, [call("submit"), "never"], tools=[submit])
    run = await service.start(context, "go")
    step = await run.step()
    assert step.is_final_answer
    assert run.answer is None
    last = await run.step()
    text = text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")  # no platform could send these
    assert last.output == run.answer.text == text
    assert len(llm.prompts) == 1
    assert [type(each).__name__ for each in (await context.load_memory()).steps] == [
        "TaskStep",
        "ActionStep",
        "FinalAnswerStep",
    ]
    assert [each.text for each in await context.chat_history.messages()] == ["go", run.answer.text]
    assert (await context.load_memory()).steps[1].action_output == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), ({"größe": [1, None]}, '{"größe": [1, null]}'), (7, "7"), ("", "")]
)
async def test_a_final_tool_may_give_any_json_value(sqlite_storage, value, text):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    service, _ = make_service(sqlite_storage, [call("give")], tools=[Tool(lambda: value, name="give", is_final=True)])
    assert (await service.prompt(context, "go")).text == text


async def test_a_final_tool_that_fails_is_an_observation_like_any_other(context, storage):
    @tool(is_final=True)
    async def submit(number: int) -> str:
        """Submit."""
        if number < 2:
            raise ValueError("too small")
        return f"number {number}"

    service, llm = make_service(storage, [call("submit", number=1), call("submit", number=2)], tools=[submit])
    assert (await service.prompt(context, "go")).text == "number 2"
    assert "too small" in llm.prompts[1][-1]["content"]


async def test_a_final_tool_may_answer_with_files(context, storage):
    @tool(is_final=True)
    async def submit() -> list:
        """Submit."""
        return ["Here it is", PNG, PDF]

    @tool
    async def look() -> Attachment:
        """Look."""
        return Attachment("image/png", "other.png", data=b"other")

    service, _ = make_service(storage, [call("submit"), [call("look"), call("submit")]], tools=[submit, look])
    for question in ("alone", "beside another tool that gives a file"):
        answer = await service.prompt(context, question)
        assert (answer.text, answer.attachments) == ("Here it is", (PNG, PDF))
    assert (await context.chat_history.messages())[-1].attachments == (PNG, PDF)


async def test_a_tool_gets_the_context_which_is_not_in_its_schema(context, storage):
    @tool
    async def remember(words: str, where: AgentContext) -> str:
        """Remember words."""
        where.metadata["words"] = words
        return f"{len(await where.chat_history.messages())} messages"

    service, llm = make_service(storage, [call("remember", words="x"), "ok"], tools=[remember])
    await service.prompt(context, "go")
    assert llm.tools[0][0]["function"]["parameters"]["properties"].keys() == {"words"}
    assert context.completed_steps[0].observations == "1 messages"
    again = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "1"})
    assert again.metadata == {"words": "x"}


async def test_images_follow_the_results_as_a_message_of_their_own(context, storage):
    @tool
    async def look() -> list:
        """Look."""
        return ["a plot", PNG, PDF]

    service, llm = make_service(storage, [[call("look", "a"), call("add", "b", a=1, b=1)], "nice"], tools=[look, add])
    await service.prompt(context, "go")
    calls, first, second, images = llm.prompts[1][2:]
    assert [each["id"] for each in calls["tool_calls"]] == ["a", "b"]
    assert first["content"] == "a plot\n[plot.png: image/png]\n[report.pdf: application/pdf]"
    assert second["content"] == "2"
    assert images["role"] == "user"
    assert [part["type"] for part in images["content"]] == ["image_url"]
    step = (await context.load_memory()).steps[1]
    assert step.observations_images == [PNG]
    assert step.get_value("observations_files") == [PDF]
    assert step.observations == f"{first['content']}\n2"


async def test_files_that_tools_give_go_with_the_answer_each_once(context, storage):
    @tool
    async def look() -> list:
        """Look."""
        return ["a plot", PNG, PDF]

    script = [call("look"), [call("look"), call("add", a=1, b=1)], "Here they are", "and nothing more"]
    service, _ = make_service(storage, script, tools=[look, add])
    answer = await service.prompt(context, "go")
    assert (answer.text, answer.attachments) == ("Here they are", (PNG, PDF))
    again = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "1"})
    assert (await again.chat_history.messages())[-1].attachments == (PNG, PDF)
    assert (await service.prompt(context, "and now?")).attachments == (), "they went with their own answer"


async def test_of_very_many_files_the_newest_go_with_the_answer(context, storage):
    files = [Attachment("text/plain", f"{number}.txt", b"words %d" % number) for number in range(12)]

    @tool
    async def write(number: int) -> Attachment:
        """Write."""
        return files[number]

    script = [*(call("write", number=number) for number in range(len(files))), "too many"]
    service, _ = make_service(storage, script, tools=[write], max_steps=len(files))
    assert (await service.prompt(context, "go")).attachments == tuple(files[2:])


async def test_a_final_tool_answers_with_its_own_files_alone_and_a_stranger_s_tool_shows_none(context, storage):
    @tool
    async def look() -> list:
        """Look."""
        return [PNG]

    @tool(is_final=True)
    async def report() -> list:
        """Report."""
        return ["done", PDF]

    foreign = Tool(look._function, name="screen")
    foreign.shows_files = False
    script = [[call("look"), call("screen")], call("report"), call("screen"), "nothing to show"]
    service, _ = make_service(storage, script, tools=[look, foreign, report])
    assert (await service.prompt(context, "go")).attachments == (PDF,)
    assert (await service.prompt(context, "and the screen?")).attachments == ()


async def test_calls_of_one_step_run_side_by_side_and_keep_their_order(context, storage):
    both_run = asyncio.Barrier(2)

    @tool
    async def meet(name: str) -> str:
        """Meet the other."""
        await both_run.wait()
        return f"{name} met"

    script = [[call("meet", name="a"), call("meet", name="b")], "ok"]
    service, llm = make_service(storage, script, tools=[meet])
    await asyncio.wait_for(service.prompt(context, "go"), 60)
    step = context.completed_steps[0]
    assert [each.arguments["name"] for each in step.tool_calls] == ["a", "b"]
    assert step.observations == "a met\nb met"
    assert [message["content"] for message in llm.prompts[1][-2:]] == ["a met", "b met"]
    assert [result.text for result in step.tool_results] == ["a met", "b met"]
    assert all(result.duration_seconds >= 0 for result in step.tool_results)


async def test_two_calls_with_one_id_are_told_apart(context, storage):
    script = [[call("add", "x", a=1, b=1), call("add", "x", a=2, b=2)], "ok"]
    service, llm = make_service(storage, script)
    await service.prompt(context, "go")
    asked, first, second = llm.prompts[1][2:]
    ids = [each["id"] for each in asked["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(each["tool_call_id"], each["content"]) for each in (first, second)] == [(ids[0], "2"), (ids[1], "4")]


async def test_one_failing_call_leaves_its_neighbours_results(context, storage):
    service, _ = make_service(storage, [[call("fail"), call("add", a=1, b=1), call("nope")], "ok"])
    await service.prompt(context, "go")
    step = context.completed_steps[0]
    assert [result.is_error for result in step.tool_results] == [True, False, True]
    assert step.error.type == "ValueError"
    assert step.tool_results[1].text == "2"


async def test_what_the_model_said_beside_its_calls_is_kept(context, storage):
    service, llm = make_service(storage, [["Let me see. ", call("add", a=1, b=1)], "2"])
    await service.prompt(context, "go")
    assert context.completed_steps[0].model_output == "Let me see. "
    assert llm.prompts[1][2]["content"] == "Let me see. "
    assert without_ids(llm.prompts[1])[2:] == [("assistant", ["add"]), ("tool", "2")]


async def test_a_value_that_no_step_can_keep_is_read_by_the_model_all_the_same(context, storage):
    deep = "x"
    for _ in range(150):
        deep = [deep]
    service, llm = make_service(storage, [call("give"), "ok"], tools=[Tool(lambda: deep, name="give")])
    assert (await service.prompt(context, "go")).text == "ok"
    assert json.loads(llm.prompts[1][-1]["content"]) == deep
    step = (await context.load_memory()).steps[1]
    assert isinstance(step, ActionStep)
    assert step.action_output is None


async def test_a_sync_tool_runs_without_holding_up_the_others(context, storage):
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()

    def block() -> str:
        asyncio.run_coroutine_threadsafe(ready.wait(), loop).result(10)
        return "unblocked"

    @tool
    async def unblock() -> str:
        """Unblock the other."""
        ready.set()
        return "ok"

    service, _ = make_service(storage, [[call("block"), call("unblock")], "done"], tools=[Tool(block), unblock])
    await service.prompt(context, "go")
    assert context.completed_steps[0].observations == "unblocked\nok"
