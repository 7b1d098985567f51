"""A served bot: what it answers about itself, what it refuses, and how it ends."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from crash.served import ROOT
from history.tiny_model import make_tiny_model
from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool
from standins.bot_api import BotApi
from standins.bot_api.journal import CallReceived, MessageShown
from standins.mcp_servers import script
from standins.openai_api import OpenAIApi
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from botservice import (
    AgentContext,
    AgentService,
    Command,
    CommandRequest,
    FunctionsBasedAgent,
    ScriptedChatLLM,
    SettingsError,
    Storage,
    StorageUnavailable,
)
from botservice.app import Application, running
from botservice.config.settings import Settings
from botservice.core.errors import StorageError
from botservice.factories import build_service
from botservice.server.serving import listen
from botservice.server.start_summary import describe
from botservice.server.web_app import BodyLimit, build_web_app
from botservice.transport_plugins import build_transports


def settings(**values: Any) -> Settings:
    return Settings(**{"_env_file": None, "openai_api_key": None, "openai_base_url": None, **values})


@contextlib.asynccontextmanager
async def served(**values: Any) -> AsyncIterator[Application]:
    chosen = settings(**values)
    async with running(chosen, build_service(chosen), build_transports(chosen)) as application:
        yield application


def client(application: Application) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(build_web_app(application), client=("127.0.0.1", 1))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")


async def test_it_says_that_it_lives_and_that_it_is_ready(storage_url: str) -> None:
    async with served(database_url=storage_url) as application, client(application) as http:
        alive, ready = await http.get("/healthz"), await http.get("/readyz")
        assert (alive.status_code, alive.text) == (200, "ok\n")
        assert (ready.status_code, ready.json()) == (200, {"ready": True, "reason": None})
        assert (await http.head("/healthz")).status_code == 200
        assert (await http.post("/healthz")).status_code == 405
        assert (await http.get("/nothing/here")).status_code == 404
        assert (await http.post("/telegram/webhook")).status_code == 404


async def test_menus_of_telegram_list_the_commands_that_a_service_brings(sqlite_url: str) -> None:
    async def hours(_: CommandRequest) -> str:
        return "9 to 18"

    with BotApi.running() as api:
        chosen = settings(database_url=sqlite_url, telegram_bot_token=api.token, telegram_api_url=api.url)
        agent = FunctionsBasedAgent(llm=ScriptedChatLLM([]))
        service = AgentService(agent, commands=[Command("hours", hours, menu="When we are open")])
        async with running(chosen, service, build_transports(chosen, service)):
            menu = await asyncio.to_thread(
                api.journal.wait_for, CallReceived, lambda call: call.method == "setMyCommands"
            )
            api.person_says("/hours", chat_id=1000)
            await asyncio.to_thread(api.journal.wait_for, MessageShown, lambda shown: shown.text == "9 to 18")
    assert "When we are open" in str(menu.params["commands"])


async def test_two_ways_in_of_one_name_are_refused(sqlite_url: str) -> None:
    chosen = settings(database_url=sqlite_url)
    service = build_service(chosen)
    service.transports = tuple(build_transports(chosen))
    with pytest.raises(SettingsError, match="two transports are called web"):
        build_transports(chosen, service)


@pytest.mark.slow
async def test_a_local_model_gives_messages_their_meaning(sqlite_url: str, tmp_path: Path) -> None:
    folder = str(make_tiny_model(tmp_path))
    async with served(database_url=sqlite_url, local_embedding_model=folder) as application:
        context = await AgentContext.get_or_create(application.storage, {"chat_id": "1"})
        await context.chat_history.append_user_message("hound")
        await context.chat_history.append_user_message("rent")
        async with asyncio.timeout(60):
            hits = await context.chat_history.search("dog")
            while not hits:  # only the database tells
                await asyncio.sleep(0.01)
                hits = await context.chat_history.search("dog")
        assert hits[0].message.text == "hound"


async def test_servers_of_tools_are_there_while_it_runs_and_end_with_it(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("ECHO_TOKEN=token-of-the-echo-server\n")
    entry = script("plain", tmp_path, env={"KEY": "${ECHO_TOKEN}"})
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry, "gone": {"command": "no-such-command"}}}))
    with OpenAIApi.running() as api:
        async with served(database_url=sqlite_url, openai_base_url=api.base_url) as application:
            async with asyncio.timeout(60):
                while not {"a__echo", "recall"} <= set(await application.service.agent.tools_now()):  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0.01)
            assert "  mcp        tools of a, gone" in describe(application)
            number = int((tmp_path / "calls.txt").read_text().split()[1])
            os.kill(number, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_file_of_servers_that_is_wrong_is_said_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    with pytest.raises(SettingsError, match="it is not there; MCP_CONFIG names the file, or says none"):
        build_service(settings(openai_api_key="sk-test-key", mcp_config=str(path)))
    path.write_text('{"mcpServers": {"a": {"url": "ftp://x"}}}')
    with pytest.raises(SettingsError, match="server 'a', url: it must be an address"):
        build_service(settings(openai_api_key="sk-test-key", mcp_config=str(path)))


async def test_it_is_not_ready_while_its_worker_does_not_run(sqlite_url: str) -> None:
    async with served(database_url=sqlite_url) as application, client(application) as http:
        await application.worker.stop()
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["reason"]) == (503, "the worker does not run")
        assert (await http.get("/healthz")).status_code == 200


@pytest.mark.slow
async def test_it_is_not_ready_while_the_disk_is_full_and_ready_again_when_there_is_room(sqlite_url: str) -> None:
    async with served(database_url=sqlite_url) as application, client(application) as http:
        assert (await http.get("/readyz")).status_code == 200
        await allow_pages(application.storage, 1)  # as many as there are: the file does not grow
        context = await AgentContext.get_or_create(application.storage, {"chat_id": "1"})
        with pytest.raises(StorageUnavailable, match="full"):
            await context.chat_history.append_user_message("x" * 1_000_000)
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["reason"]) == (
            503,
            "the database refuses writes: database or disk is full: its disk is full, or fails",
        )
        await allow_pages(application.storage, 2**30)
        async with asyncio.timeout(60):
            while (await http.get("/readyz")).status_code != 200:
                pass


@pytest.mark.parametrize("is_before", [True, False])
async def test_it_is_not_ready_while_it_may_not_write_to_a_table_and_says_which(
    own_postgres_url: str, monkeypatch: pytest.MonkeyPatch, *, is_before: bool
) -> None:
    monkeypatch.setattr("botservice.storage.database._REFUSED_SECONDS", 0.0)
    async with Storage.open(own_postgres_url, migrate=True):
        pass
    url = make_url(own_postgres_url).set(drivername="postgresql+psycopg")
    admin = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        for statement in (
            "CREATE ROLE bot_role LOGIN",
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO bot_role",
            "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO bot_role",
        ):
            connection.exec_driver_sql(statement)
        as_role = make_url(own_postgres_url).set(username="bot_role").render_as_string(hide_password=False)
        try:
            if is_before:
                connection.exec_driver_sql("REVOKE INSERT ON messages FROM bot_role")
            async with served(database_url=as_role) as application, client(application) as http:
                if not is_before:
                    assert (await http.get("/readyz")).status_code == 200
                    context = await AgentContext.get_or_create(application.storage, {"chat_id": "1"})
                    connection.exec_driver_sql("REVOKE INSERT ON messages FROM bot_role")
                    with pytest.raises(StorageError, match="permission denied"):
                        await context.chat_history.append_user_message("hello")
                ready = await http.get("/readyz")
                reason = "the database refuses writes: permission denied for table messages"
                assert (ready.status_code, ready.json()["reason"]) == (503, reason)
                connection.exec_driver_sql("GRANT INSERT ON messages TO bot_role")
                assert (await http.get("/readyz")).status_code == 200
        finally:
            connection.exec_driver_sql("DROP OWNED BY bot_role")
            connection.exec_driver_sql("DROP ROLE bot_role")


async def test_a_service_that_starts_on_a_full_disk_is_not_ready(sqlite_url: str) -> None:
    async with served(database_url=sqlite_url) as application, client(application) as http:
        await allow_pages(application.storage, 1)
        assert (await http.get("/readyz")).status_code == 503


async def test_asking_whether_it_is_ready_writes_nothing_but_at_first(sqlite_url: str) -> None:
    async with served(database_url=sqlite_url) as application, client(application) as http:
        assert (await http.get("/readyz")).status_code == 200
        changes = await count_changes(application.storage)
        for _ in range(3):
            assert (await http.get("/readyz")).status_code == 200
        assert await count_changes(application.storage) == changes


async def allow_pages(storage: Storage, pages: int) -> None:
    statement = f"PRAGMA max_page_count={pages}"
    await storage.write(lambda connection: connection.exec_driver_sql(statement).fetchall())


async def count_changes(storage: Storage) -> int:
    return await storage.write(lambda connection: connection.exec_driver_sql("SELECT total_changes()").scalar_one())


async def test_it_lives_through_an_outage_of_its_database(own_postgres_url: str, postgres_uri: str) -> None:
    from botservice.storage.database import Storage

    async with Storage.open(own_postgres_url, migrate=True):
        pass
    name = make_url(own_postgres_url).database
    async with served(database_url=own_postgres_url) as application, client(application) as http:
        assert (await http.get("/readyz")).status_code == 200
        await asyncio.to_thread(_close_database, postgres_uri, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false", name)
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["reason"]) == (503, "the database does not answer")
        assert (await http.get("/healthz")).status_code == 200
        await asyncio.to_thread(_close_database, postgres_uri, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true", "")
        async with asyncio.timeout(60):
            while (await http.get("/readyz")).status_code != 200:
                pass


def _close_database(uri: str, statement: str, name: str | None) -> None:
    engine = create_engine(make_url(uri).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
        connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    engine.dispose()


async def test_a_body_that_is_too_large_is_refused_before_and_while_it_arrives() -> None:
    async def size(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    app = Starlette(routes=[Route("/", size, methods=["POST"])], middleware=[Middleware(BodyLimit, max_bytes=10)])

    async def in_pieces(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"12345"

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as http:
        assert (await http.post("/", content=b"1234567890")).text == "10"
        assert (await http.post("/", content=b"12345678901")).status_code == 413
        assert (await http.post("/", content=in_pieces(2))).text == "10"
        assert (await http.post("/", content=in_pieces(3))).status_code == 413
        assert (await http.post("/", headers={"content-length": "nonsense"})).status_code == 200


@pytest.mark.slow
async def test_a_second_worker_on_one_file_is_refused_and_the_first_goes_on(sqlite_url: str, tmp_path: Path) -> None:
    async with served(database_url=sqlite_url) as first:
        (tmp_path / "lending.py").write_text(
            "from botservice import AgentService, FunctionsBasedAgent, default_llm\n"
            "service = AgentService(FunctionsBasedAgent(llm=default_llm()))\n"
        )
        arguments = [sys.executable, "-m", "botservice", "chat", "--app", "lending:service"]
        environment = {**os.environ, "DATABASE_URL": sqlite_url, "PYTHONPATH": str(ROOT)}
        second = await asyncio.to_thread(
            subprocess.run,
            arguments,
            env=environment,
            cwd=tmp_path,
            input="hi",
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 1
        assert "another process works on" in second.stderr
        assert "DATABASE_URL=sqlite:///chat.db botservice chat --app lending:service" in second.stderr
        assert await first.is_ready() is None


def test_a_port_that_is_taken_is_said() -> None:
    says = r"cannot listen on 127\.0\.0\.1:\d+: .* set PORT, or HOST"
    with listen(settings(port=0)) as taken, pytest.raises(SettingsError, match=says):
        listen(settings(port=taken.getsockname()[1]))
    with pytest.raises(SettingsError, match="cannot listen on 203"):
        listen(settings(host="203.0.113.7", port=0))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]"])
def test_it_listens_on_every_spelling_of_this_machine(host: str) -> None:
    try:
        listen(settings(host=host, port=0)).close()
    except SettingsError as error:
        if ":" not in host or "Cannot assign" not in str(error):
            raise
        pytest.skip("this machine has no IPv6")


async def test_an_answer_in_two_parts_does_not_wait_until_the_first_is_acknowledged() -> None:
    accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        accepted.set_result(bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
        writer.close()

    listener = listen(settings(port=0))
    async with await asyncio.start_server(accept, sock=listener):
        with socket.create_connection(listener.getsockname()):
            assert await accepted


async def test_it_says_what_is_on_and_what_turns_the_rest_on(sqlite_url: str) -> None:
    async with served(database_url=sqlite_url, port=8123) as application:
        lines = describe(application)
        assert lines[0] == "botservice is running. Ctrl+C stops it."
        assert [line.split()[0] for line in lines[1:]] == [
            "browser",
            "telegram",
            "slack",
            "model",
            "database",
            "listening",
        ]
        said = "\n".join(lines)
        assert "http://127.0.0.1:8123/" in said
        assert "TELEGRAM_BOT_TOKEN turns it on" in said
        assert "OPENAI_API_KEY" in said


@pytest.mark.parametrize("name", ["DYNO", "RENDER", "RAILWAY_ENVIRONMENT", "FLY_APP_NAME", "KUBERNETES_SERVICE_HOST"])
async def test_it_warns_of_a_disk_that_may_not_last_where_a_platform_says_which_it_is(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "web.1")
    async with served(database_url=sqlite_url) as application:
        (warning,) = [line for line in describe(application) if line.split()[0] == "warning"]
    assert f"{name} is set: the disk here may not last; set DATABASE_URL to a Postgres" in warning


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
async def test_it_says_that_a_database_in_memory_ends_with_it(url: str) -> None:
    async with served(database_url=url) as application:
        (warning,) = [line for line in describe(application) if line.split()[0] == "warning"]
        assert "in memory: all is gone when this ends; DATABASE_URL=sqlite:///bot.db keeps it" in warning


async def test_it_names_the_model_and_the_bot_but_no_secret(sqlite_url: str) -> None:
    with OpenAIApi.running() as model, BotApi.running() as api:
        async with served(
            database_url=sqlite_url,
            openai_base_url=model.base_url.replace("://", "://me:hidden-as-well@"),
            openai_api_key="sk-hidden-key",
            openai_model="llama",
            openai_fallback_models="tiny, smaller",
            telegram_bot_token=api.token,
            telegram_api_url=api.url,
        ) as application:
            said = "\n".join(describe(application))
    assert f"llama, then tiny, then smaller at {model.base_url}" in said
    assert "@stand_in_bot" in said
    assert "hidden" not in said
    assert api.token not in said


async def test_the_model_s_connections_are_closed_with_the_service(sqlite_url: str) -> None:
    with OpenAIApi.running() as model:
        chosen = settings(database_url=sqlite_url, openai_base_url=model.base_url, openai_model="gpt-5.5")
        service = build_service(chosen)
        async with running(chosen, service, []):
            await service.agent.llm.chat([{"role": "user", "content": "hi"}])  # type: ignore[attr-defined]
            assert service.agent.llm._clients  # type: ignore[attr-defined]
        assert not service.agent.llm._clients  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("chat", "says"),
    [
        ("telegram:-100123", "ALERTS_TO names a chat on telegram, which is not set up: set its token"),
        ("transport=discord,channel_id=7", "ALERTS_TO names a chat on discord, which is not set up: set its token"),
        ("99", "ALERTS_TO: there is no context 99: `botservice contexts` lists them"),
        ("1", "ALERTS_TO names a context on no platform"),
    ],
)
async def test_a_chat_that_could_be_told_nothing_is_refused_at_the_start(sqlite_url: str, chat: str, says: str) -> None:
    async with Storage.open(sqlite_url) as storage:
        await AgentContext.get_or_create(storage, {"user": "ada"})
    with pytest.raises(SettingsError, match=says):
        async with served(database_url=sqlite_url, alerts_to=chat):
            pass
