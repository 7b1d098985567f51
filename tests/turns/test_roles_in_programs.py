"""Roles where a program asks: by the author that it names; in sub-agents, in found tools, and in replays."""

import pytest

from botservice import ApprovalPending, Author, FunctionsBasedAgent, InvalidTool, ScriptedChatLLM, Toolset, tool
from botservice.devtools.replaying import ask_again
from botservice.people.access import Access
from tests.turns.bots import call, make_service
from tests.turns.ranks import rank_tools

ANNA = Author("test", "1", "Anna")


def deploying(ran):
    return next(each for each in rank_tools(ran) if each.name == "deploy")


def obeyed(prompt):
    if prompt[-1]["role"] == "tool":
        return "refused" if "not allowed" in prompt[-1]["content"] else "done"
    return call("deploy", number=int(prompt[-1]["content"].split()[-1]))


@pytest.mark.any_database
async def test_a_program_asks_for_the_author_that_it_names_and_else_as_a_guest(context, storage):
    ran = []
    service, llm = make_service(storage, obeyed, tools=[deploying(ran)])
    assert (await service.prompt(context, "deploy 1")).text == "refused"
    assert (await service.prompt(context, "deploy 2", author=ANNA)).text == "refused"
    assert (await service.prompt(context, "deploy 3", author="Anna")).text == "refused"
    await storage.write(lambda connection: Access().set_roles(connection, "test:1", ["deployer"], "", storage.now()))
    assert (await service.prompt(context, "deploy 4", author=ANNA)).text == "done"
    assert (await service.prompt(context, "deploy 5", author="Anna")).text == "refused"
    assert ran == [("deploy", 4)]
    assert [len(each) for each in llm.tools][-4:] == [1, 1, 0, 0]


async def test_a_turn_that_failed_is_not_asked_by_who_wrote_since(context, storage):
    ran = []
    service, llm = make_service(storage, [RuntimeError("away")] * 3 + ["hello", call("deploy", number=1), "no"])
    service.agent.tools = {"deploy": deploying(ran)}
    with pytest.raises(Exception, match="RuntimeError"):
        await service.prompt(context, "use deploy 1", author=Author("test", "2", "Bob"))
    await storage.write(lambda connection: Access().set_roles(connection, "test:1", ["deployer"], "", storage.now()))
    await context.chat_history.append_user_message("hello", author=ANNA)
    run = await service.resume(context)
    llm._script = iter([call("deploy", number=1), "no"])
    await run.finish()
    assert ran == []


async def test_a_sub_agent_has_the_right_of_who_asked(context, storage):
    ran = []
    below = FunctionsBasedAgent(
        tools=[deploying(ran)], llm=ScriptedChatLLM(obeyed), name="helper", description="Helps.", prompt="", search_k=0
    )
    script = [call("helper", task="deploy 7"), "done"] * 2
    service, _ = make_service(storage, script, tools=[below])
    await service.prompt(context, "deploy", author=ANNA)
    assert ran == []
    await storage.write(lambda connection: Access().set_roles(connection, "test:1", ["deployer"], "", storage.now()))
    await service.prompt(context, "deploy", author=ANNA)
    assert ran == [("deploy", 7)]


async def test_an_agent_as_a_tool_may_want_a_role(context, storage):
    below = FunctionsBasedAgent(llm=ScriptedChatLLM(["worked"]), prompt="", search_k=0)
    helper = below.as_tool("helper", "Helps.", roles=["deployer"])
    service, llm = make_service(storage, [call("helper", task="x"), "no"], tools=[helper])
    await service.prompt(context, "help", author=ANNA)
    assert (llm.tools[0], below.llm.prompts) == ([], [])


class Many(Toolset):
    """More tools than are offered at once."""

    def __init__(self, ran):
        self._tools = [named(f"tool_{number}", None) for number in range(60)] + [deploying(ran)]

    async def tools(self):
        return self._tools


def named(name, roles):
    async def function() -> str:
        """Do something."""
        return "done"

    return tool(name=name, roles=roles)(function)


async def test_find_tool_finds_no_tool_that_wants_another_role(context, storage):
    ran = []
    script = [call("find_tool", query="deploy"), call("deploy", number=1), "done"] * 2
    service, llm = make_service(storage, script, tools=[], toolsets=[Many(ran)])
    await service.prompt(context, "deploy", author=ANNA)
    assert "No tool was found" in str(llm.prompts[1])
    assert ran == []
    await storage.write(lambda connection: Access().set_roles(connection, "test:1", ["deployer"], "", storage.now()))
    await service.prompt(context, "deploy", author=ANNA)
    assert ran == [("deploy", 1)]


async def test_a_past_question_is_replayed_with_the_tools_of_who_asked(context, storage):
    service, llm = make_service(storage, ["a", "b", "c", "d"], tools=[deploying([])])
    await service.prompt(context, "deploy", author=ANNA)
    await ask_again(service, context, context.turn_id)
    assert llm.tools[-1] == []
    await storage.write(lambda connection: Access().set_roles(connection, "test:1", ["deployer"], "", storage.now()))
    await ask_again(service, context, context.turn_id)
    assert len(llm.tools[-1]) == 1


@pytest.mark.parametrize("roles", ["owner", [], ["Owner"], ["blocked"], [1], 5, ["a b"], ["x" * 33]])
def test_roles_of_a_tool_are_a_list_of_names(roles):
    with pytest.raises(InvalidTool, match="roles of look must be a list of names"):

        @tool(roles=roles)
        async def look() -> str:
            """Look."""
            return ""


async def test_a_program_that_decides_lends_no_role_either(context, storage):
    ran = []
    wipe = next(each for each in rank_tools(ran) if each.name == "wipe")
    service, _ = make_service(storage, [call("wipe", number=1), "done"], tools=[wipe])
    await storage.write(lambda connection: Access().set_roles(connection, "test:1", ["oncall"], "", storage.now()))
    with pytest.raises(ApprovalPending) as pending:
        await service.prompt(context, "wipe", author=ANNA)
    await storage.write(lambda connection: Access().set_roles(connection, "test:1", ["guest"], "", storage.now()))
    await service.decide(context, pending.value.calls[0].id)
    await (await service.resume(context)).finish()
    assert ran == []
