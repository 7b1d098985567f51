"""An authorization that means harm: nobody is led astray, nothing is sent elsewhere, and turns go on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from sqlalchemy import select
from standins.mcp_bad_oauth import BadAuthorization, bad_authorization
from starlette.responses import Response, StreamingResponse

from botservice import AgentContext, Author, MCPServers, Storage, ToolCall
from botservice.agent.tool_executor import ToolOutcome, execute
from botservice.agent.toolbox import Toolbox
from botservice.mcp.failures import ServerDown
from botservice.mcp.oauth import Reach, _check_link
from botservice.mcp.sign_ins import TokenGrant
from botservice.people.queries import ensure_identity, note_audience
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.people import tool_sign_in_states, tool_sign_ins

KEY = "0123456789abcdef0123456789abcdef"
ALICE = Author("telegram", "1", "Alice")
PATHS = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/register"]


@pytest.fixture
async def bad() -> AsyncIterator[BadAuthorization]:
    async with bad_authorization() as running:
        yield running


@pytest.fixture
async def servers(bad: BadAuthorization) -> AsyncIterator[MCPServers]:
    made = MCPServers(
        {"wiki": {"url": bad.url}}, public_url="http://127.0.0.1:9", encryption_key=KEY, wait_seconds=60.0
    )
    yield made
    await made.close()


@pytest.fixture
async def alice(storage: Storage) -> AgentContext:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "1"})

    def meet(connection: Any) -> None:
        identity = ensure_identity(connection, ALICE, storage.now())
        note_audience(connection, context.id, [(ALICE, identity)], is_private=True)

    await storage.write(meet)
    await context.chat_history.append_user_message("What is in my notes?", author=ALICE)
    return context


async def call(servers: MCPServers, context: AgentContext, **arguments: Any) -> ToolOutcome:
    tools = await Toolbox([servers]).callable_tools({}, context)
    return await execute(tools, ToolCall("1", "wiki__sign_in", arguments), context)


async def come_back(servers: MCPServers, context: AgentContext, came: dict[str, str]) -> str | None:
    """Open the page that people come back to, and say in the chat what it shows; return to which server that is."""
    returned = await servers.finish_sign_in(context.storage, "wiki", came)
    if returned.server is not None:
        assert not (await call(servers, context, code=returned.code)).is_error
    return returned.server


async def begin(servers: MCPServers, context: AgentContext) -> dict[str, str]:
    """Return what stands in the link of a sign-in that begins."""
    outcome = await call(servers, context)
    assert outcome.buttons, outcome.text
    return {name: values[-1] for name, values in parse_qs(urlsplit(outcome.buttons[0].url).query).items()}


async def finish(servers: MCPServers, context: AgentContext) -> str | None:
    asked = await begin(servers, context)
    return await come_back(servers, context, {"state": asked["state"], "code": "code"})


def endless(sent: list[int]) -> Callable[[Any], StreamingResponse]:
    """Return what never ends, as a stream of events, and counts what it sends."""

    async def body() -> AsyncIterator[bytes]:
        while sum(sent) < 200 * 1024 * 1024:
            sent.append(1024 * 1024)
            yield b" " * sent[-1]

    return lambda _: StreamingResponse(body(), media_type="text/event-stream")


@pytest.mark.any_database
@pytest.mark.parametrize("path", PATHS)
async def test_an_authorization_that_says_of_itself_without_end_is_not_read_to_it(bad, servers, alice, path) -> None:
    sent: list[int] = []
    bad.says[path] = endless(sent)
    outcome = await call(servers, alice)
    assert outcome.is_error
    assert sum(sent) < 64 * 1024 * 1024


@pytest.mark.any_database
async def test_tokens_without_end_are_not_read_to_it(bad, servers, alice) -> None:
    sent: list[int] = []
    bad.says["/token"] = endless(sent)
    assert await finish(servers, alice) is None
    assert sum(sent) < 64 * 1024 * 1024


@pytest.mark.any_database
async def test_what_cannot_stand_in_a_header_is_no_token(bad, servers, alice) -> None:
    for token in ("", "a b", "a\r\nX-Evil: 1", "é", "a\n", "\u2028", "\x00"):
        bad.token = {"access_token": token, "token_type": "Bearer"}
        assert await finish(servers, alice) is None, token
    assert {each.name for each in await servers.tools_for(alice)} == {"wiki__sign_in"}


@pytest.mark.any_database
async def test_nobody_is_sent_to_a_page_that_is_not_safe(bad, servers, alice) -> None:
    for page in (
        "http://evil.example/authorize",
        "https://a:b@evil.example/authorize",
        f"https://evil.example/{'a' * 2_500}",
        "javascript:alert(1)",
    ):
        bad.metadata["authorization_endpoint"] = page
        assert (await call(servers, alice)).is_error, page


@pytest.mark.parametrize(("own", "is_sent"), [("http://127.0.0.1:8000/mcp", True), ("https://evil.example/mcp", False)])
def test_a_server_from_elsewhere_sends_nobody_to_their_own_machine(own: str, is_sent: bool) -> None:
    expected = contextlib.nullcontext() if is_sent else pytest.raises(ServerDown, match="nobody can be sent to")
    with expected:
        _check_link("http://127.0.0.1:8080/authorize?state=1", TokenGrant(own, "", {}, {}))


@pytest.mark.parametrize("numbers", [["10.0.0.1"], ["127.0.0.1", "1.1.1.1"], ["1.1.1.1", "10.0.0.1"], []])
@pytest.mark.parametrize("peer", ["1.1.1.1", "10.0.0.1"])
async def test_what_a_name_leads_to_does_not_open_this_network(numbers: list[str], peer: str) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return numbers

    class Stream:
        def get_extra_info(self, name: str) -> tuple[str, int] | None:
            return (peer, 443) if name == "server_addr" else None

    reach = Reach("https://evil.example/mcp", resolve=resolve)
    asked = httpx2.Request("POST", "https://evil.example/mcp")
    await reach.look(asked)
    await reach.note(httpx2.Response(401, request=asked, extensions={"network_stream": Stream()}))
    is_near = peer == "10.0.0.1" and bool(numbers) and all(each.startswith(("10.", "127.")) for each in numbers)
    assert reach.is_inside == is_near
    if not is_near:
        with pytest.raises(ServerDown, match="not asked"):
            await reach.look(httpx2.Request("GET", "http://169.254.169.254/latest/meta-data/"))


async def test_where_a_server_stands_is_known_when_its_person_returns(bad, servers, alice) -> None:
    bad.metadata["token_endpoint"] = f"{bad.origin.replace('127.0.0.1', 'localhost')}/token"
    assert await finish(servers, alice) == "wiki"
    assert bad.asked[0]["code"] == "code"


@pytest.mark.any_database
async def test_a_page_with_a_query_of_its_own_keeps_it(bad, servers, alice) -> None:
    bad.metadata["authorization_endpoint"] = f"{bad.origin}/authorize?tenant=one&state=theirs&response_type=token"
    asked = await begin(servers, alice)
    assert asked["tenant"] == "one"
    assert asked["response_type"] == "code"
    assert asked["client_id"] == "botservice"
    came = {"state": asked["state"], "code": "code"}
    assert await come_back(servers, alice, came) == "wiki"


@pytest.mark.any_database
async def test_metadata_of_another_issuer_is_refused(bad, servers, alice) -> None:
    bad.metadata["issuer"] = "https://honest.example"
    assert (await call(servers, alice)).is_error


NONSENSE = [b"", b"null", b"[]", b"{}", b"<html>", b"\xff\xfe", b"[" * 100_000, b'{"access_token": ' * 10_000]
NO_TOKENS = [
    b'{"access_token": null}',
    b'{"access_token": {"a": 1}}',
    b'{"access_token": "a", "token_type": "mac"}',
    b'{"access_token": "a", "expires_in": "soon"}',
    b'{"access_token": "\\ud800"}',
    b'{"access_token": "a", "expires_in": NaN}',
]


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("path", "status", "bodies"),
    [
        *((path, 200, NONSENSE) for path in PATHS),
        ("/token", 200, [*NONSENSE, *NO_TOKENS]),
        *((path, 302, NONSENSE[3:5]) for path in [*PATHS, "/token"]),
    ],
)
@pytest.mark.slow
async def test_nonsense_in_the_place_of_an_answer_signs_nobody_in(bad, servers, alice, path, status, bodies) -> None:
    headers = {"location": "http://169.254.169.254/", "content-type": "application/json"}
    for said in bodies:
        bad.says.clear()
        outcome = await call(servers, alice)
        assert len(outcome.buttons) == 1
        bad.says[path] = lambda _, said=said: Response(said, status, headers)
        state = parse_qs(urlsplit(outcome.buttons[0].url).query)["state"][0]
        came = {"state": state, "code": "code"}
        name = await come_back(servers, alice, came)
        assert (name is None) == (path == "/token")
        if name is not None:
            again = [each for each in await servers.tools_for(alice) if each.name.endswith("sign_in")]
            assert len(again) == 1, "its token is not taken"
        outcome = await call(servers, alice)
        assert outcome.text.startswith(("The person is asked", "Error: nobody can sign in to server wiki"))


async def test_who_is_forgotten_while_the_link_is_made_leaves_nothing(bad, servers, alice, storage) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()
    path = PATHS[1]

    async def wait(request: Any) -> Any:
        asked.set()
        await go_on.wait()
        del bad.says[path]
        return await bad.answer(request)

    bad.says[path] = wait
    calling = asyncio.create_task(call(servers, alice))
    await asked.wait()
    await forget_person(storage, ALICE)
    go_on.set()
    with contextlib.suppress(Exception):
        outcome = await calling
        assert not outcome.buttons
    for table in (tool_sign_ins, tool_sign_in_states):
        rows = select(table)
        assert await storage.read(lambda connection, rows=rows: connection.execute(rows).all()) == []
