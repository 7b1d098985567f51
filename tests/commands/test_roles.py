"""/role and /roles: who gives roles to whom, and what people see of them."""

import pytest

from botservice.texts import in_language
from tests.turns.ranks import role, team


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
