"""Tools that want a role: offered and run only for people who have it, judged by who sent the words, when it runs."""

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select

from botservice import (
    AgentContext,
    ApprovalPending,
    Author,
    FunctionsBasedAgent,
    InvalidTool,
    ScriptedChatLLM,
    Storage,
    Toolset,
    tool,
)
from botservice.agent.reminding import Reminders
from botservice.devtools.replaying import ask_again
from botservice.people.access import Access
from botservice.people.queries import ensure_identity, find_identity, join_identities, part_identity
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import messages
from botservice.storage.tables.people import person_roles
from botservice.texts import in_language
from botservice.turns.event_queries import MAX_OWN_TURNS
from tests.turns.bots import call, make_service
from tests.turns.messenger import SetClock
from tests.turns.ranks import OWNERS, keys, obeying, person, rank_tools, team

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
REFUSED = "got: Error: not allowed: "


def role(name, *roles):
    return f"/role messenger:{name} {' '.join(roles)}"


@pytest.mark.any_database
async def test_a_tool_is_offered_and_run_for_people_with_its_role_alone(storage):
    async with team(storage) as bot:
        assert (await bot.ask("anna", "use deploy 1")).startswith(f"{REFUSED}deploy runs only for people with the role")
        assert bot.offered == {"look"}
        assert (await bot.ask("olga", role("anna", "deployer"))) == "messenger:anna now has this role: deployer"
        assert await bot.ask("anna", "use deploy 2") == "got: deployed"
        assert bot.offered == {"look", "read", "deploy"}, "everybody with a role is a member as well"
        assert (await bot.ask("bob", "use deploy 3")).startswith(REFUSED)
        assert await bot.ask("olga", "use deploy 4") == "got: deployed"
        assert bot.offered == {"look", "read", "deploy", "wipe"}, "an owner may use every tool"
        await bot.ask("olga", role("anna", "guest"))
        assert (await bot.ask("anna", "use deploy 5")).startswith(REFUSED)
        assert bot.ran == [("deploy", 2), ("deploy", 4)]


async def test_a_tool_that_may_not_run_is_not_named_where_another_is_not_there(storage):
    async with team(storage) as bot:
        assert await bot.ask("anna", "use nothing 1") == "got: Error: there is no tool 'nothing'; there are: look"


FORWARDED = [("forward", "olga", "use wipe 1 and use deploy 1")]
REPLIED = [("reply", "olga", "use deploy 1")]


@pytest.mark.any_database
@pytest.mark.parametrize("held", [FORWARDED, REPLIED], ids=["forwarded", "quoted"])
async def test_who_sends_a_message_counts_and_not_who_is_quoted(storage, held):
    async with team(storage) as bot:
        assert (await bot.ask("anna", "do that", *held)).startswith(REFUSED)
        of_a_guest = [(kind, "anna", text) for kind, _, text in held]
        assert await bot.ask("olga", "do that", *of_a_guest) == "got: deployed"
        assert bot.ran == [("deploy", 1)]


async def say_in_one_turn(bot, *said):
    """Have several messages share a turn: the last of as many as may wait each in a turn of its own."""
    for _ in range(MAX_OWN_TURNS - 1):
        await bot.say("olga", "hello")
    for who, text in said:
        await bot.say(who, text)
    await bot.office.worker.start()
    return await bot.next(MAX_OWN_TURNS - 1)


@pytest.mark.any_database
@pytest.mark.parametrize("said", [[("bob", "hm"), ("olga", "use deploy 1")], [("olga", "ok"), ("bob", "use deploy 1")]])
async def test_of_several_people_in_one_turn_each_must_have_the_role(storage, said):
    async with team(storage, is_started=False) as bot:
        assert (await say_in_one_turn(bot, *said)).startswith(REFUSED)
        await bot.ask("olga", role("bob", "deployer"))
        assert await bot.ask("bob", "use deploy 2") == "got: deployed"
        assert bot.ran == [("deploy", 2)]


async def test_several_people_who_have_the_right_by_different_roles_have_it_together(storage):
    async with team(storage, is_started=False) as bot:
        await storage.write(
            lambda connection: OWNERS.set_roles(connection, "messenger:bob", ["deployer"], "", storage.now())
        )
        assert await say_in_one_turn(bot, ("olga", "please"), ("bob", "use deploy 1")) == "got: deployed"


async def test_who_overheard_a_shared_turn_counts_as_well(storage):
    async with team(storage, is_started=False) as bot:
        assert (await say_in_one_turn(bot, ("olga", "use deploy 1"), ("bob", "~use deploy 1"))).startswith(REFUSED)


@pytest.mark.any_database
async def test_what_is_asked_again_needs_the_right_of_both(storage):
    async with team(storage) as bot:
        assert await bot.ask("olga", "use deploy 1") == "got: deployed"
        assert (await bot.ask("bob", "/retry")).startswith(REFUSED), "bob presses, with olga's words"
        assert await bot.ask("olga", "/retry") == "got: deployed", "they are still hers"
        assert (await bot.ask("bob", "use deploy 2")).startswith(REFUSED)
        assert (await bot.ask("olga", "/retry")).startswith(REFUSED), "olga presses, with bob's words"
        assert bot.ran == [("deploy", 1), ("deploy", 1)]


async def test_words_of_others_in_a_shared_turn_stay_theirs_when_it_is_asked_again(storage):
    async with team(storage, is_started=False) as bot:
        await say_in_one_turn(bot, ("bob", "use deploy 1"), ("olga", "hm"))
        await bot.ask("olga", "/retry")
        context = await AgentContext.get_or_create(storage, keys("1"))
        last = context.chat_history.last_user_message
        assert (last.author.id, last.text) == ("olga", "hm")
        assert [(each.author.id, each.text) for each in last.references] == [("bob", "use deploy 1")]


async def test_an_edit_before_the_answer_counts_as_who_edits(storage):
    async with team(storage, is_started=False) as bot:
        number = await bot.say("olga", "use deploy 1")
        await bot.say("bob", "use deploy 2", of=number)
        await bot.office.worker.start()
        assert (await bot.next(0)).startswith(REFUSED)
        assert bot.ran == []


@pytest.mark.any_database
async def test_the_role_is_judged_when_the_call_runs_and_an_approver_lends_none(storage):
    async with team(storage) as bot:
        await bot.ask("olga", role("anna", "oncall"))
        assert (await bot.ask("anna", "use wipe 1")).startswith("May I")
        allow = bot.asked()[0]
        await bot.ask("olga", role("anna", "member"))
        count = len(bot.shown())
        assert await bot.press("olga", allow)
        assert (await bot.next(count)).startswith(f"{REFUSED}wipe runs only for people with the role oncall or owner")
        assert (await bot.ask("anna", "use wipe 2")).startswith(REFUSED), "nobody is asked about what may not run"
        await bot.ask("olga", role("anna", "oncall", "deployer"))
        await bot.ask("anna", "use wipe 3")
        count = len(bot.shown())
        assert await bot.press("anna", bot.asked()[0])
        assert await bot.next(count) == "got: wiped"
        assert bot.ran == [("wipe", 3)]


async def test_always_is_not_a_right(storage):
    async with team(storage) as bot:
        await bot.ask("olga", role("anna", "oncall"))
        await bot.ask("anna", "use wipe 1")
        count = len(bot.shown())
        assert await bot.press("anna", bot.asked()[2])
        await bot.next(count)
        assert await bot.ask("anna", "use wipe 2") == "got: wiped"
        await bot.ask("olga", role("anna", "guest"))
        assert (await bot.ask("anna", "use wipe 3")).startswith(REFUSED)


@pytest.mark.any_database
@pytest.mark.parametrize("taken", [role("anna", "guest"), "/revoke messenger:anna"])
async def test_always_ends_with_the_right_and_does_not_come_back_with_it(storage, taken):
    async with team(storage) as bot:
        await bot.ask("olga", role("anna", "oncall"))
        await bot.ask("anna", "use wipe 1")
        count = len(bot.shown())
        assert await bot.press("anna", bot.asked()[2])
        await bot.next(count)
        for given in (taken, "/approve messenger:anna", role("anna", "oncall")):
            await bot.ask("olga", given)
        assert (await bot.ask("anna", "use wipe 2")).startswith("May I")
        assert bot.ran == [("wipe", 1)]


async def test_a_blocked_person_has_no_role_and_gets_none_back_with_access(storage):
    async with team(storage) as bot:
        await bot.ask("olga", role("anna", "deployer"))
        await bot.ask("olga", "/revoke messenger:anna")
        await bot.ask("olga", "/approve messenger:anna")
        assert (await bot.ask("anna", "use deploy 1")).startswith(REFUSED)
        assert bot.offered == {"look", "read"}


@pytest.mark.any_database
async def test_why_names_what_a_role_refused_and_what_was_not_offered(storage):
    async with team(storage) as bot:
        await bot.ask("anna", "use deploy 1")
        said = await bot.ask("anna", "/why")
        assert f"deploy: {in_language('why.no_role', 'en')}" in said
        assert in_language("why.withheld", "en") in said
        assert "wipe (oncall, owner)" in said


async def test_a_turn_that_goes_on_in_another_process_is_asked_by_the_same_person(storage):
    waits, ran = asyncio.Event(), []

    async def forever(prompt):
        waits.set()
        await asyncio.Event().wait()

    async with team(storage, script=forever) as bot:
        await bot.say("bob", "use deploy 1")
        await waits.wait()
        await bot.office.worker.stop(grace_seconds=0)
        platform = bot.platform
    async with team(storage, ran=ran, messenger=platform) as bot:
        assert (await bot.next(0)).startswith(REFUSED)
    assert ran == []


async def test_a_message_that_was_deleted_since_is_of_nobody(storage):
    waits, ran = asyncio.Event(), []

    async def forever(prompt):
        if "use deploy" in prompt[-1]["content"]:
            waits.set()
            await asyncio.Event().wait()
        return "hm"

    async with team(storage, script=forever, is_started=False) as bot:
        for _ in range(MAX_OWN_TURNS - 1):
            await bot.say("olga", "hello")
        await bot.say("bob", "hm")
        await bot.say("olga", "use deploy 1")
        await bot.office.worker.start()
        await waits.wait()
        await bot.office.worker.stop(grace_seconds=0)
        await storage.write(lambda connection: connection.execute(delete(messages).where(messages.c.text == "hm")))
        platform = bot.platform
    async with team(storage, ran=ran, messenger=platform) as bot:
        assert (await bot.next(MAX_OWN_TURNS - 1)).startswith(REFUSED)
    assert ran == []


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


# Commands


async def test_only_owners_give_roles_and_only_to_people(storage):
    async with team(storage) as bot:
        assert await bot.ask("anna", role("anna", "owner")) == in_language("access.for_owners", "en")
        how = in_language("role.how", "en")
        for wrong in (
            "/role",
            "/role messenger:anna",
            "/role anna deployer",
            role("anna", "blocked"),
            role("anna", "A!"),
        ):
            assert (await bot.ask("olga", wrong)).replace("`", "") == how.replace("`", "")
        assert await bot.ask("olga", "/role telegram:-100 deployer") == how.replace("`", "")
        assert "OWNERS" in await bot.ask("olga", role("olga", "deployer"))
        assert await bot.ask("olga", "/role deployer", ("reply", "anna", "hello")) == (
            "messenger:anna now has this role: deployer"
        )
        assert await bot.ask("anna", "use deploy 1") == "got: deployed"


@pytest.mark.any_database
async def test_roles_lists_all_for_owners_in_private_and_ones_own_elsewhere(storage):
    async with team(storage) as bot:
        await bot.ask("olga", role("anna", "deployer", "oncall"))
        assert await bot.ask("anna", "/roles") == "Your roles: deployer, guest, member, oncall"
        assert await bot.ask("bob", "/roles") == "Your roles: guest"
        assert await bot.ask("olga", "/roles") == "Your roles: guest, member, owner"
        said = await bot.ask("olga", "/roles", chat="private")
        assert said == "- messenger:olga: owner\n- messenger:anna: deployer, member, oncall"


async def test_a_new_role_takes_the_place_of_the_earlier_ones(storage):
    async with team(storage) as bot:
        await bot.ask("olga", role("anna", "owner"))
        await bot.ask("anna", role("bob", "deployer"))
        await bot.ask("olga", role("anna", "member"))
        assert await bot.ask("anna", role("bob", "owner")) == in_language("access.for_owners", "en")
        assert await bot.ask("anna", "/roles") == "Your roles: guest, member"
        assert await bot.ask("bob", "/roles") == "Your roles: deployer, guest, member"


# Persons


@pytest.mark.any_database
async def test_a_role_goes_with_the_person_when_accounts_are_linked_and_stays_with_its_account_after(storage):
    now, other = storage.now(), Author("slack", "T1:U1", "Anna")
    access = Access()

    def link(connection):
        access.set_roles(connection, "messenger:anna", ["deployer"], "", now)
        ensure_identity(connection, other, now)
        join_identities(connection, find_identity(connection, person("anna")), find_identity(connection, other))
        linked = access.tool_roles(connection, other)
        part_identity(connection, find_identity(connection, other), now)
        return linked, access.tool_roles(connection, other), access.tool_roles(connection, person("anna"))

    linked, parted, own = await storage.write(link)
    assert linked == own == {"guest", "member", "deployer"}
    assert parted == {"guest"}


@pytest.mark.any_database
async def test_an_owner_by_the_settings_is_not_blocked_by_a_linked_account_either(storage):
    other = Author("slack", "T1:U1", "Olga")

    def link(connection):
        for each in (person("olga"), other):
            ensure_identity(connection, each, storage.now())
        join_identities(connection, find_identity(connection, person("olga")), find_identity(connection, other))

    await storage.write(link)
    async with team(storage) as bot:
        await bot.ask("olga", role("anna", "owner"))
        said = await bot.ask("anna", "/revoke slack:T1:U1")
        assert said == in_language("revoke.by_setting", "en", name="slack:T1:U1")


@pytest.mark.any_database
async def test_a_new_role_takes_those_of_linked_accounts_as_well(storage):
    now, other, access = storage.now(), Author("slack", "T1:U1", "Anna"), Access()

    def change(connection):
        access.set_roles(connection, "messenger:anna", ["owner"], "", now)
        access.set_roles(connection, "slack:T1:U1", ["deployer"], "", now)
        join_identities(connection, find_identity(connection, person("anna")), find_identity(connection, other))
        access.set_roles(connection, "slack:T1:U1", ["member"], "", now)
        return access.tool_roles(connection, person("anna")), access.tool_roles(connection, other)

    assert await storage.write(change) == ({"guest", "member"}, {"guest", "member"})


@pytest.mark.any_database
async def test_a_role_is_exported_and_goes_when_its_person_is_forgotten(storage):
    async with team(storage) as bot:
        await bot.ask("olga", role("anna", "deployer"))
        await bot.ask("anna", "hello")
        await bot.office.worker.stop()
        told = as_values(await read_person(storage, person("anna")))
        assert [each["role"] for each in told["roles"]] == ["deployer"]
        await forget_person(storage, person("anna"))
    assert await storage.read(lambda connection: connection.execute(select(person_roles)).all()) == []


# Programs

ANNA = Author("test", "1", "Anna")


def deploying(ran):
    return next(each for each in rank_tools(ran) if each.name == "deploy")


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


def obeyed(prompt):
    if prompt[-1]["role"] == "tool":
        return "refused" if "not allowed" in prompt[-1]["content"] else "done"
    return call("deploy", number=int(prompt[-1]["content"].split()[-1]))


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


@pytest.mark.any_database
async def test_two_owners_at_once_give_the_roles_of_one_of_them(storage, storage_url):
    access, sets = Access(), [{"deployer"}, {"oncall"}, {"member"}, {"owner", "billing"}]

    async def give(where, roles):
        await where.write(lambda connection: access.set_roles(connection, "messenger:anna", roles, "", storage.now()))

    async with contextlib.AsyncExitStack() as stack:
        others = [storage]
        if storage_url.startswith("postgres"):
            others += [await stack.enter_async_context(Storage.open(storage_url)) for _ in range(3)]
        for _ in range(8):
            await asyncio.gather(*(give(others[at % len(others)], roles) for at, roles in enumerate(sets)))
            held = await storage.read(lambda connection: access.tool_roles(connection, person("anna")))
            assert held - {"guest", "member"} in [roles - {"member"} for roles in sets]
