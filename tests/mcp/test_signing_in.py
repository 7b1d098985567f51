"""People sign in to a server by OAuth: each for themselves, in private, and what they have is used for no others."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from sqlalchemy import select, update
from standins.mcp_oauth import Accounts, wiki

from botservice import AgentContext, Author, MCPServers, Storage, ToolCall
from botservice.agent.tool_executor import ToolOutcome, execute
from botservice.agent.toolbox import Toolbox
from botservice.mcp.failures import ServerDown
from botservice.mcp.oauth import Reach, _authorization
from botservice.mcp.sign_ins import SignIn, SignIns, TokenGrant, find_asker
from botservice.people.queries import ensure_identity, note_audience
from botservice.privacy.forgetting import forget_person
from botservice.storage.encryption import Cipher
from botservice.storage.tables.people import tool_sign_in_states, tool_sign_ins

KEY = "0123456789abcdef0123456789abcdef"
ALICE, BOB = Author("telegram", "1", "Alice"), Author("telegram", "2", "Bob")


@pytest.fixture
async def server() -> AsyncIterator[tuple[Accounts, str]]:
    async with wiki() as running:
        yield running


@pytest.fixture
async def make(server: tuple[Accounts, str]) -> AsyncIterator[Callable[..., MCPServers]]:
    made: list[MCPServers] = []

    def build(entry: dict[str, Any] | None = None, **options: Any) -> MCPServers:
        options = {"public_url": "http://127.0.0.1:9", "encryption_key": KEY, "wait_seconds": 60.0, **options}
        made.append(MCPServers({"wiki": {"url": server[1], **(entry or {})}}, **options))
        return made[-1]

    yield build
    await asyncio.gather(*(each.close() for each in made))


async def chat(storage: Storage, name: str, *people: Author, is_private: bool = True) -> AgentContext:
    """Return a chat in which some people were heard, the last of them just now."""
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": name})
    for each in people:

        def meet(connection, each=each):
            identity = ensure_identity(connection, each, storage.now())
            note_audience(connection, context.id, [(each, identity)], is_private=is_private)

        await storage.write(meet)
        await context.chat_history.append_user_message("What is in my notes?", author=each)
    return context


async def call(servers: MCPServers, context: AgentContext, name: str, **arguments: Any) -> ToolOutcome:
    """Call a tool as a turn does."""
    tools = await Toolbox([servers]).callable_tools({}, context)
    return await execute(tools, ToolCall("1", name, arguments), context)


async def follow(link: str) -> dict[str, str]:
    """Open a link as a browser does, and return with what the page sends people back to the service."""
    async with httpx.AsyncClient(verify=False) as browser:
        answer = await browser.get(link)
    assert answer.is_redirect, answer.text
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


async def come_back(servers: MCPServers, context: AgentContext, came: dict[str, str]) -> str | None:
    """Open the page that people come back to, and say in the chat what it shows; return to which server that is."""
    returned = await servers.finish_sign_in(context.storage, "wiki", came)
    if returned.server is not None:
        assert not (await call(servers, context, "wiki__sign_in", code=returned.code)).is_error
    return returned.server


async def sign_in(servers: MCPServers, context: AgentContext) -> str | None:
    outcome = await call(servers, context, "wiki__sign_in")
    return await come_back(servers, context, await follow(outcome.buttons[0].url))


async def names(servers: MCPServers, context: AgentContext) -> set[str]:
    return {each.name for each in await servers.tools_for(context)}


@pytest.mark.any_database
@pytest.mark.parametrize("entry", [{}, {"auth": "oauth"}], ids=["by what it says", "by the file"])
async def test_each_person_signs_in_for_themselves(storage, server, make, entry) -> None:
    servers, (accounts, _) = make(entry), server
    alice, bob = await chat(storage, "1", ALICE), await chat(storage, "2", BOB)
    assert await names(servers, alice) == {"wiki__sign_in"}
    asked = await call(servers, alice, "wiki__sign_in")
    assert asked.buttons[0].text == "Sign in to wiki"
    assert "http" not in asked.text, "the model does not see the link"
    assert await come_back(servers, alice, await follow(asked.buttons[0].url)) == "wiki"
    assert (await call(servers, alice, "wiki__whoami")).text == "alice"
    assert await names(servers, alice) == {"wiki__sign_out", "wiki__whoami", "wiki__write"}
    assert await names(servers, bob) == {"wiki__sign_in"}
    assert (await call(servers, bob, "wiki__whoami")).is_error
    accounts.who = "bob"
    await sign_in(servers, bob)
    both = await asyncio.gather(call(servers, alice, "wiki__whoami"), call(servers, bob, "wiki__whoami"))
    assert [each.text for each in both] == ["alice", "bob"]
    assert await servers.tools() == [], "nobody's tools are everybody's"


@pytest.mark.any_database
async def test_in_a_group_nobody_is_sent_a_link_and_nothing_of_anybody_is_used(storage, server, make) -> None:
    servers = make()
    await sign_in(servers, await chat(storage, "1", ALICE))
    group = await chat(storage, "-1", BOB, ALICE, is_private=False)
    assert await names(servers, group) == set()
    refused = await call(servers, group, "wiki__whoami")
    assert refused.text == ("Error: the person has not signed in to server wiki, which they do in private chats alone")
    assert not refused.buttons
    link = (await servers.tools_for(await chat(storage, "2", BOB)))[0]
    late = await execute({link.name: link}, ToolCall("1", link.name, {}), group)
    assert late.is_error, "a tool that was made for a private chat"
    assert not late.buttons


async def test_a_link_is_good_once_for_its_person_and_not_after_its_time(storage, server, make) -> None:
    servers = make()
    alice = await chat(storage, "1", ALICE)
    first = await follow((await call(servers, alice, "wiki__sign_in")).buttons[0].url)
    second = await follow((await call(servers, alice, "wiki__sign_in")).buttons[0].url)
    assert await come_back(servers, alice, first) is None, "a newer one takes its place"
    assert await come_back(servers, alice, {**second, "state": "x" * 43}) is None
    assert await come_back(servers, alice, second) == "wiki"
    assert await come_back(servers, alice, second) is None
    third = await follow((await call(make(), await chat(storage, "2", BOB), "wiki__sign_in")).buttons[0].url)
    late = update(tool_sign_in_states).values(expires_at=storage.now() - timedelta(seconds=1))
    await storage.write(lambda connection: connection.execute(late))
    assert await come_back(servers, alice, third) is None


@pytest.mark.any_database
async def test_who_does_not_agree_or_comes_back_from_elsewhere_is_not_signed_in(storage, server, make) -> None:
    servers, (accounts, _) = make(), server
    alice = await chat(storage, "1", ALICE)
    accounts.who = None
    assert await sign_in(servers, alice) is None
    accounts.who = "alice"
    came = await follow((await call(servers, alice, "wiki__sign_in")).buttons[0].url)
    assert await come_back(servers, alice, {**came, "iss": "https://evil.example"}) is None
    came = await follow((await call(servers, alice, "wiki__sign_in")).buttons[0].url)
    assert await come_back(servers, alice, {**came, "code": "guessed"}) is None
    assert await names(servers, alice) == {"wiki__sign_in"}


async def test_who_signs_in_by_a_link_that_somebody_sent_them_signs_in_nobody(storage, server, make) -> None:
    servers, (accounts, _) = make(), server
    mallory, alice = await chat(storage, "3", Author("telegram", "3", "Mallory")), await chat(storage, "1", ALICE)
    sent = (await call(servers, mallory, "wiki__sign_in")).buttons[0].url
    returned = await servers.finish_sign_in(storage, "wiki", await follow(sent))
    assert (returned.server, len(returned.code)) == ("wiki", 6)
    assert await names(servers, mallory) == {"wiki__sign_in"}, "alice has seen the code, and nobody else"
    assert (await call(servers, mallory, "wiki__whoami")).is_error
    assert (await call(servers, alice, "wiki__sign_in", code=returned.code)).is_error, "it is for mallory's chat"
    wrong = [f"{(int(returned.code) + each) % 10**6:06}" for each in range(1, 6)]
    for each in wrong:
        assert (await call(servers, mallory, "wiki__sign_in", code=each)).is_error
    assert (await call(servers, mallory, "wiki__sign_in", code=returned.code)).is_error, "after five guesses it is void"
    assert await names(servers, mallory) == {"wiki__sign_in"}
    assert accounts.calls == []


async def test_a_code_is_good_for_as_long_as_a_link_is(storage, server, make) -> None:
    servers, alice = make(), await chat(storage, "1", ALICE)
    came = await follow((await call(servers, alice, "wiki__sign_in")).buttons[0].url)
    returned = await servers.finish_sign_in(storage, "wiki", came)
    late = update(tool_sign_ins).values(created_at=storage.now() - timedelta(minutes=16))
    await storage.write(lambda connection: connection.execute(late) and None)
    assert (await call(servers, alice, "wiki__sign_in", code=returned.code)).is_error
    kept = await storage.read(lambda connection: connection.execute(select(tool_sign_ins.c.id)).all())
    assert kept == [], "what nobody said to be theirs is not kept"
    assert await sign_in(servers, alice) == "wiki"


@pytest.mark.any_database
async def test_guesses_that_are_made_at_once_are_counted_one_by_one(storage, server) -> None:
    asker, sign_ins = await find_asker(await chat(storage, "1", ALICE)), SignIns(Cipher(KEY))
    url = "https://wiki.example/mcp"
    await sign_ins.keep(storage, asker, SignIn(0, "wiki", TokenGrant(url, "", {}, {}), "token", code="000000"))
    seen = await asyncio.gather(*(sign_ins.find(storage, asker, "wiki", url) for _ in range(60)))
    wrong = asyncio.gather(*(sign_ins.confirm(storage, each, f"{n:06}") for n, each in enumerate(seen[:5], 1)))
    assert await wrong == [False] * 5
    assert await sign_ins.find(storage, asker, "wiki", url) is None
    assert not any(await asyncio.gather(*(sign_ins.confirm(storage, each, "000000") for each in seen)))


@pytest.mark.any_database
async def test_the_right_code_is_taken_within_five_tries(storage, server) -> None:
    asker, sign_ins = await find_asker(await chat(storage, "1", ALICE)), SignIns(Cipher(KEY))
    url = "https://wiki.example/mcp"
    await sign_ins.keep(storage, asker, SignIn(0, "wiki", TokenGrant(url, "", {}, {}), "token", code="000000"))
    seen = await sign_ins.find(storage, asker, "wiki", url)
    said = [await sign_ins.confirm(storage, seen, each) for each in ("1", "2", "3", "4", "000000")]
    assert said == [False] * 4 + [True]


async def test_processes_that_ask_or_take_in_at_once_do_not_hinder_each_other(postgres_url, postgres_storage) -> None:
    storage = postgres_storage
    asker, sign_ins = await find_asker(await chat(storage, "1", ALICE)), SignIns(Cipher(KEY))
    grant = TokenGrant("https://wiki.example/mcp", "", {}, {})
    async with Storage.open(postgres_url) as other:
        replicas = (storage, other) * 10
        states = await asyncio.gather(*(sign_ins.begin(each, asker, "wiki", grant) for each in replicas))
        taken = await asyncio.gather(*(sign_ins.take(storage, "wiki", each) for each in states))
        assert sum(each is not None for each in taken) == 1
        made = SignIn(0, "wiki", grant, "token")
        assert all(await asyncio.gather(*(sign_ins.keep(each, asker, made) for each in replicas)))
        kept = await sign_ins.find(storage, asker, "wiki", grant.url)
        assert kept is not None
        assert sum(await asyncio.gather(*(sign_ins.reserve(each, kept, 1.0) for each in replicas))) == 1


@pytest.mark.any_database
async def test_what_is_brought_to_the_address_of_another_server_is_not_taken(storage, server, make) -> None:
    servers, (accounts, _) = make(), server
    alice = await chat(storage, "1", ALICE)
    link = (await call(servers, alice, "wiki__sign_in")).buttons[0].url
    assert dict(parse_qsl(urlsplit(link).query))["redirect_uri"] == "http://127.0.0.1:9/mcp/callback/wiki"
    came = await follow(link)
    assert (await servers.finish_sign_in(storage, "evil", came)).server is None
    assert len(accounts.codes) == 1, "and its code was not sent to anybody"
    assert await come_back(servers, alice, came) == "wiki"


@pytest.mark.slow
async def test_tokens_are_renewed_also_after_a_restart(storage, server, make) -> None:
    servers, (accounts, _) = make(), server
    alice = await chat(storage, "1", ALICE)
    await sign_in(servers, alice)
    assert (await call(servers, alice, "wiki__whoami")).text == "alice"
    accounts.outdate()
    assert (await call(servers, alice, "wiki__whoami")).text == "alice"
    assert accounts.refreshed == 1
    accounts.outdate()
    again = make()
    assert (await call(again, alice, "wiki__whoami")).text == "alice"
    assert (await call(servers, alice, "wiki__whoami")).text == "alice", "another process has renewed it"
    assert accounts.refreshed == 2


@pytest.mark.any_database
@pytest.mark.parametrize("status", [429, 503])
async def test_who_cannot_be_given_new_tokens_for_a_while_stays_signed_in(storage, server, make, status) -> None:
    servers, (accounts, _) = make(), server
    alice = await chat(storage, "1", ALICE)
    await sign_in(servers, alice)
    assert (await call(servers, alice, "wiki__whoami")).text == "alice"
    accounts.outdate()
    accounts.failing_with = status
    outcome = await call(servers, alice, "wiki__whoami")
    assert outcome.is_error
    assert not outcome.buttons, "there is nothing that the person could do"
    accounts.failing_with = None
    assert (await call(make(), alice, "wiki__whoami")).text == "alice"


async def test_of_processes_that_renew_at_once_one_does_and_the_others_use_what_it_got(storage, server, make) -> None:
    replicas, (accounts, _) = [make() for _ in range(3)], server
    alice = await chat(storage, "1", ALICE)
    await sign_in(replicas[0], alice)
    for each in replicas:
        assert (await call(each, alice, "wiki__whoami")).text == "alice"
    accounts.outdate()
    said = await asyncio.gather(*(call(each, alice, "wiki__whoami") for each in replicas))
    assert [each.text for each in said] == ["alice"] * 3
    assert accounts.refreshed == 1, "a second use of one refresh token would have ended all"


@pytest.mark.parametrize("ahead", [-1.0, 1e9], ids=["its time is over", "the clock was set back"])
async def test_what_a_killed_process_was_about_to_renew_is_renewed_by_another(storage, server, make, ahead) -> None:
    servers, (accounts, url) = make(), server
    alice = await chat(storage, "1", ALICE)
    await sign_in(servers, alice)
    sign_ins, asker = SignIns(Cipher(KEY)), await find_asker(alice)
    found = await sign_ins.find(storage, asker, "wiki", url)
    assert await sign_ins.reserve(storage, found, time.time() + ahead)
    assert not await sign_ins.reserve(storage, found, time.time() + ahead), "only one that saw it last"
    accounts.outdate()
    assert (await call(servers, alice, "wiki__whoami")).text == "alice"
    assert accounts.refreshed == 1


async def test_who_was_signed_out_over_there_is_asked_again(storage, server, make) -> None:
    servers, (accounts, _) = make(), server
    alice = await chat(storage, "1", ALICE)
    await sign_in(servers, alice)
    assert (await call(servers, alice, "wiki__whoami")).text == "alice"
    tools = await servers.tools_for(alice)
    accounts.revoke()
    outcome = await execute({each.name: each for each in tools}, ToolCall("1", "wiki__whoami", {}), alice)
    assert "asked to sign in" in outcome.text
    assert len(outcome.buttons) == 1
    assert await names(servers, alice) == {"wiki__sign_in"}


async def test_a_time_that_no_token_lasts_does_no_harm(storage, server, make) -> None:
    servers, (accounts, _) = make(), server
    for number, seconds in enumerate((10**30, 10**400, -5)):
        accounts.said_seconds = seconds
        person = await chat(storage, f"{number}", Author("telegram", f"{number}", "Alice"))
        assert await sign_in(servers, person) == "wiki"
        assert (await call(servers, person, "wiki__whoami")).text == "alice"


@pytest.mark.any_database
async def test_whoever_is_let_go_of_is_not_connected_again(storage, server, make, caplog) -> None:
    caplog.set_level("INFO")
    alice = await chat(storage, "1", ALICE)
    assert await sign_in(make(), alice) == "wiki"
    caplog.clear()
    for steps in range(8):  # the client's package swallows a cancellation now and then
        servers = make()
        assert (await call(servers, alice, "wiki__whoami")).text == "alice"
        for _ in range(steps):
            await asyncio.sleep(0)
        await servers.close()
    assert [record.message for record in caplog.records].count("mcp.up") == 8


@pytest.mark.any_database
async def test_what_is_no_token_is_not_kept(storage, server, make) -> None:
    servers, (accounts, _) = make(), server
    alice = await chat(storage, "1", ALICE)
    accounts.pads = 1_000_000
    assert await sign_in(servers, alice) is None
    assert await names(servers, alice) == {"wiki__sign_in"}


async def test_signing_out_and_forgetting_delete_what_was_kept(storage, server, make) -> None:
    servers = make()
    alice, bob = await chat(storage, "1", ALICE), await chat(storage, "2", BOB)
    await sign_in(servers, alice)
    assert not (await call(servers, alice, "wiki__sign_out")).is_error
    assert await names(servers, alice) == {"wiki__sign_in"}
    await sign_in(servers, alice)
    await sign_in(servers, bob)
    await forget_person(storage, ALICE)
    kept = await storage.read(lambda connection: connection.execute(select(tool_sign_ins.c.id)).scalars().all())
    assert len(kept) == 1, "bob's"
    assert (await call(servers, bob, "wiki__whoami")).text == "alice", "he signed in with her account over there"


async def test_who_was_forgotten_while_signing_in_is_not_kept(storage, server, make) -> None:
    servers = make()
    alice = await chat(storage, "1", ALICE)
    came = await follow((await call(servers, alice, "wiki__sign_in")).buttons[0].url)
    await forget_person(storage, ALICE)
    assert await come_back(servers, alice, came) is None
    for table in (tool_sign_ins, tool_sign_in_states):
        rows = select(table)
        assert await storage.read(lambda connection, rows=rows: connection.execute(rows).all()) == []


async def test_no_token_is_readable_in_the_database_and_none_is_sent_to_another_address(storage, server, make) -> None:
    servers, (accounts, url) = make(), server
    alice = await chat(storage, "1", ALICE)
    await sign_in(servers, alice)
    row = await storage.read(lambda connection: connection.execute(select(tool_sign_ins.c.data)).scalar_one())
    assert not any(each.encode() in row for each in (*accounts.access, *accounts.refresh))
    other = make({"url": url.replace("127.0.0.1", "localhost")})
    assert "wiki__whoami" not in await names(other, alice)
    assert "wiki__whoami" not in await names(make(encryption_key="f" * 32), alice)


@pytest.mark.any_database
async def test_without_a_key_or_an_address_nobody_can_sign_in_and_the_log_says_why(storage, server, make) -> None:
    servers = make(encryption_key=None)
    alice = await chat(storage, "1", ALICE)
    assert await names(servers, alice) == set()
    assert servers.problems() == {
        "wiki": "it wants each person to sign in: PUBLIC_URL and ENCRYPTION_KEY let people do that by OAuth"
    }
    fine = make()
    await fine.tools()
    assert (fine.problems(), fine.sign_in_names()) == ({"wiki": None}, ["wiki"])


async def test_a_server_of_the_internet_leads_nobody_into_this_network() -> None:
    async with _authorization(Reach("https://1.1.1.1/mcp"), None) as client:
        for inside in ("https://127.0.0.1/token", "http://169.254.169.254/", "http://9.9.9.9/", "https://[::1]/"):
            with pytest.raises(ServerDown, match="at an address that is not asked"):
                await client.get(inside)
