"""What programs keep in a conversation's metadata."""

import pytest
from turns.bots import call, make_service

from botservice import AgentContext, InvalidField, LLMError, tool
from botservice.core.personas import TITLE

pytestmark = pytest.mark.any_database


async def kept(context):
    return (await AgentContext.load(context.storage, context.id)).metadata


@pytest.mark.parametrize("script", [["ok"], [call("add", a=1, b=1), "2"]])
async def test_what_is_set_before_a_prompt_or_between_two_is_stored(context, storage, script):
    service, _ = make_service(storage, [*script, *script, *script])
    context.metadata["before"] = 1
    await service.prompt(context, "go")
    assert context.metadata == await kept(context) == {"before": 1}
    context.metadata["between"] = {"tables": [1, 2]}
    await service.prompt(context, "go on")
    context.metadata["between"]["tables"].append(3)
    del context.metadata["before"]
    await service.prompt(context, "go on")
    assert context.metadata == await kept(context) == {"between": {"tables": [1, 2, 3]}}


async def test_it_is_stored_as_soon_as_the_turn_has_begun(context, storage):
    service, _ = make_service(storage, [LLMError("down", is_transient=False), "ok"])
    context.metadata["before"] = 1
    async with await service.start(context, "go"):
        assert await kept(context) == {"before": 1}


async def test_a_tool_finds_what_was_set_before_the_prompt_and_adds_to_it(context, storage):
    @tool
    async def count(where: AgentContext) -> str:
        """Count."""
        where.metadata["count"] += 1
        return "counted"

    service, _ = make_service(storage, [call("count"), "ok"], tools=[count])
    context.metadata["count"] = 1
    await service.prompt(context, "go")
    assert context.metadata == await kept(context) == {"count": 2}


async def test_a_prompt_that_is_set_so_stands_in_the_next_request(context, storage):
    service, llm = make_service(storage, ["ok"])
    context.metadata["prompt"] = "You are Y"
    await service.prompt(context, "go")
    assert llm.prompts[0][0]["content"] == "You are Y"


async def test_of_two_objects_the_later_one_wins_and_only_with_what_it_changed(context, storage):
    service, _ = make_service(storage, ["one", "two", "three"])
    context.metadata |= {"table": 1, "guests": 2}
    await context.save_metadata()
    other = await AgentContext.get_or_create(storage, context.context_keys)
    other.metadata |= {"table": 5, "wine": "red"}
    del other.metadata["guests"]
    context.metadata["table"] = 7
    await service.prompt(other, "go")
    assert await kept(context) == {"table": 5, "wine": "red"}
    await service.prompt(context, "go")
    assert context.metadata == await kept(context) == {"table": 7, "wine": "red"}
    await service.prompt(other, "go")
    assert other.metadata == {"table": 7, "wine": "red"}


async def test_saving_changes_no_key_of_others(context, storage):
    other = await AgentContext.get_or_create(storage, context.context_keys)
    other.metadata["wine"] = "red"
    await other.save_metadata()
    await context.set_prompt("You are Y")
    context.metadata |= {"table": 1, TITLE: "Dinner"}
    await context.save_metadata()
    await context.save_metadata()
    assert await kept(context) == {"wine": "red", "prompt": "You are Y", "table": 1}


@pytest.mark.parametrize("value", [object(), {"at": {1, 2}}, {(1, 2): 3}])
async def test_what_is_no_json_is_refused_by_its_key(context, storage, value):
    service, llm = make_service(storage, ["ok"])
    context.metadata |= {"fine": 1, "odd": value}
    with pytest.raises(InvalidField, match=r"metadata\['odd'\]"):
        await context.save_metadata()
    assert context.metadata == {"fine": 1}, "it stands in nobody's way"
    context.metadata["odd"] = value
    with pytest.raises(InvalidField, match=r"metadata\['odd'\]"):
        await service.prompt(context, "go")
    assert llm.prompts == []
    assert (await service.prompt(context, "go")).text == "ok"
    assert await kept(context) == {"fine": 1}
    assert len(await context.chat_history.messages()) == 2
