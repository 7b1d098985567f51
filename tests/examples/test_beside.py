"""Handlers of python-telegram-bot and of Bolt go on working next to the agent."""

import asyncio
import contextlib
import socket
import sys
from pathlib import Path

import pytest
import uvicorn
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.web.async_client import AsyncWebClient
from standins.bot_api import BotApi
from standins.bot_api.journal import MessageShown
from standins.models import echo
from standins.slack_api import SlackApi
from standins.web_server import WebServer, web_server
from telegram.ext import Application

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM
from botservice.app import running
from botservice.config.settings import Settings
from transports.telegram.plugin import build_telegram

FOLDER = Path(__file__).parents[2] / "examples" / "beside"
SECRET = "secret-of-the-webhook"


@pytest.fixture(autouse=True)
def _folder(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN", raising=False)
    yield
    for name in ("telegram_handlers", "slack_handlers", "in_front"):
        sys.modules.pop(name, None)


async def shown(api, text):
    await asyncio.to_thread(api.journal.wait_for, MessageShown, lambda each: each.from_bot and each.text == text)


async def test_a_telegram_handler_answers_its_command_and_the_agent_the_rest(sqlite_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", sqlite_url)
    import telegram_handlers

    with BotApi.running() as api:
        builder = Application.builder().token(api.token).base_url(api.base_url)
        application = telegram_handlers.build(builder)
        async with application:
            await telegram_handlers.open_service(application)
            application.bot_data["service"].agent.llm = ScriptedChatLLM(echo)
            await application.start()
            await application.updater.start_polling()
            api.person_says("/hours", chat_id=1000)
            await shown(api, "Monday to Friday, 9 to 18")
            api.person_says("Hello", chat_id=1000)
            await shown(api, "You said: Hello")
            await application.updater.stop()
            await application.stop()
            await telegram_handlers.close_service(application)


@pytest.mark.any_database
async def test_slack_handlers_answer_their_command_and_the_agent_mentions(storage):
    import slack_handlers

    service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM(["Good day."])), storage)
    with SlackApi.running() as api:
        client = AsyncWebClient(token=api.bot_token, base_url=api.url)

        async def authorize(**_):
            return AuthorizeResult(enterprise_id=None, team_id="T1", bot_token=api.bot_token)

        app = AsyncApp(client=client, authorize=authorize, request_verification_enabled=False)
        slack_handlers.add_handlers(app, service)
        command = {"command": "/hours", "text": "", "user_id": "U0ALICE", "team_id": "T1", "channel_id": "C1"}
        answered = await app.async_dispatch(AsyncBoltRequest(body=command, mode="socket_mode"))
        assert "9 to 18" in str(answered.body)
        channel = "C0GENERAL"
        ts = api.person_says("Hello", channel=channel, deliver=False)
        event = {"type": "app_mention", "user": "U0ALICE", "text": "Hello", "ts": ts, "channel": channel}
        body = {"type": "event_callback", "team_id": "T1", "event": event}
        await app.async_dispatch(AsyncBoltRequest(body=body, mode="socket_mode"))
        await asyncio.to_thread(api.wait, lambda: api.calls("chat.postMessage"))
    keys = {"transport": "slack", "team_id": "T1", "channel_id": channel, "thread_ts": ts}
    context = await AgentContext.get_or_create(storage, keys)
    assert [each.text for each in await context.chat_history.messages()] == ["Hello", "Good day."]


@contextlib.asynccontextmanager
async def served(app, listener):
    async with WebServer(uvicorn.Config(app, log_config=None, ws="none")).serving(listener):
        yield


async def test_a_front_keeps_its_commands_and_hands_everything_else_on(storage_url):
    import in_front

    with BotApi.running() as api, contextlib.ExitStack() as sockets:
        front = sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        behind = sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        urls = [f"http://127.0.0.1:{each.getsockname()[1]}" for each in (front, behind)]
        chosen = Settings(
            _env_file=None,
            openai_api_key=None,
            openai_base_url=None,
            database_url=storage_url,
            telegram_bot_token=api.token,
            telegram_api_url=api.url,
            telegram_webhook_secret=SECRET,
            public_url=urls[0],
        )
        service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM(echo), search_k=0))
        transport = build_telegram(chosen)
        app = in_front.build_app(in_front.build_application(api.token, api.url), behind=urls[1], secret=SECRET)
        async with served(app, front), web_server(transport.routes, behind), running(chosen, service, [transport]):
            api.person_says("/hours", chat_id=1000)
            await shown(api, "Monday to Friday, 9 to 18")
            api.person_says("Hello", chat_id=1000)
            await shown(api, "You said: Hello")
    assert len([each for each in api.journal.entries(MessageShown) if each.from_bot]) == 2
