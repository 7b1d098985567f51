"""Roles belong to a person: they hold for linked accounts, go with what is forgotten, and are given one at a time."""

import asyncio
import contextlib

import pytest
from sqlalchemy import select

from botservice import Author, Storage
from botservice.people.access import Access
from botservice.people.queries import ensure_identity, find_identity, join_identities, part_identity
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.people import person_roles
from botservice.texts import in_language
from tests.turns.ranks import person, role, team


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
