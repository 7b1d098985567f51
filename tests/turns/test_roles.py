"""Tools that want a role: offered and run only for people who have it when the call runs."""

import pytest

from botservice.texts import in_language
from tests.turns.ranks import REFUSED, role, team


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
