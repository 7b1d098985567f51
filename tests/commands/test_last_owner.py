"""The last owner: a bot is not left without anybody in charge by a command in a chat."""

import asyncio
import contextlib

import pytest

from botservice import Author, Storage
from botservice.people.access import Access
from botservice.people.access_queries import grant, list_owners
from botservice.people.access_values import AccessRole, Subject
from botservice.people.queries import ensure_identity, join_identities
from botservice.texts import in_language
from tests.turns.ranks import OWNERS, person, team

pytestmark = pytest.mark.any_database


def refused(name: str = "olga") -> str:
    return in_language("access.last_owner", "en", name=f"messenger:{name}").replace("`", "")


@contextlib.asynccontextmanager
async def owned_by(storage: Storage, *names: str):
    """Run a bot whose owners were made so by a command, and stand in no setting."""
    for each in names:
        subject = Subject.of(f"messenger:{each}")
        await storage.write(lambda c, subject=subject: grant(c, subject, AccessRole.OWNER, "", storage.now()))
    async with team(storage, access=Access()) as bot:
        yield bot


@pytest.mark.parametrize(
    "command", ["/role messenger:olga member", "/role messenger:olga guest deployer", "/revoke messenger:olga"]
)
async def test_the_last_owner_does_not_take_their_own_right_away(storage: Storage, command: str):
    async with owned_by(storage, "olga") as bot:
        assert (await bot.ask("olga", command)).replace("`", "") == refused()
        await bot.ask("olga", "/role messenger:anna owner")
        assert (await bot.ask("olga", command)).replace("`", "") != refused()
        assert (await bot.ask("anna", "/revoke messenger:anna")).replace("`", "") == refused("anna")


async def test_who_has_access_granted_again_stays_an_owner(storage: Storage):
    async with owned_by(storage, "olga", "anna") as bot:
        await bot.ask("olga", "/approve messenger:anna")
        await bot.ask("olga", "/approve messenger:olga")
    assert sorted(await storage.read(list_owners)) == ["messenger:anna", "messenger:olga"]


async def test_an_owner_who_was_blocked_by_another_account_is_none_who_is_left(storage: Storage):
    async with owned_by(storage, "olga", "anna") as bot:
        now, blocked = storage.now(), Subject.of("slack:T1:U1")

        def link(connection):
            accounts = [ensure_identity(connection, each, now) for each in (person("anna"), Author("slack", "T1:U1"))]
            join_identities(connection, *accounts)
            grant(connection, blocked, AccessRole.BLOCKED, "", now)

        await storage.write(link)
        assert (await bot.ask("olga", "/role messenger:olga member")).replace("`", "") == refused()


async def test_where_the_settings_name_owners_others_may_go(storage: Storage):
    async with team(storage, access=OWNERS) as bot:
        await bot.ask("olga", "/role messenger:anna owner")
        assert "member" in await bot.ask("anna", "/role messenger:anna member")


async def test_two_owners_who_take_each_others_right_at_once_leave_one(storage: Storage, storage_url: str):
    access, ann, ben = Access(), "messenger:ann", "messenger:ben"

    async def take(where: Storage, name: str) -> bool:
        def change(connection):
            if access.is_last_owner(connection, name, is_locking=True):
                return False
            access.set_roles(connection, name, ["member"], "", storage.now())
            return True

        return await where.write(change)

    async with contextlib.AsyncExitStack() as stack:
        is_shared = storage_url.startswith("postgres")
        other = await stack.enter_async_context(Storage.open(storage_url)) if is_shared else storage
        for _ in range(8):
            for each in (ann, ben):
                subject = Subject.of(each)
                await storage.write(lambda c, subject=subject: grant(c, subject, AccessRole.OWNER, "", storage.now()))
            assert sorted(await asyncio.gather(take(storage, ann), take(other, ben))) == [False, True]
            assert len(await storage.read(list_owners)) == 1
