"""Telegram and Slack on loopback, in a process of their own, and a service that answers there.

The stand-ins of the tests play the platforms, as strict as those are. A person writes the next message when the answer
to the one before is visible.
"""

import asyncio
import contextlib
import multiprocessing
import socket
import sys
from pathlib import Path

from botservice.turns.inbox import Inbox
from botservice.turns.worker import Worker
from costs.chats import question

ROOT = Path(__file__).parents[2]
PUBLIC = "https://bot.example"
CHAT = 42
SECONDS = 60


def play_telegram(pipe):
    """Play Telegram: have a person write so many messages as the pipe says, and answer it when all are answered."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from standins.bot_api import BotApi

    with BotApi.running() as api:
        pipe.send((api.url, api.token))
        api.reach_webhooks_at(pipe.recv())
        while (numbers := pipe.recv()) is not None:
            for number in numbers:
                shown = len(api.visible_texts(CHAT))
                api.person_says(question(number), chat_id=CHAT)
                api.wait_until(lambda shown=shown: len(api.visible_texts(CHAT)) > shown, timeout=SECONDS)
            pipe.send(None)


def play_slack(pipe):
    """Play Slack in the same way."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from standins.slack_api import SlackApi

    with SlackApi.running() as api:
        pipe.send((api.url, api.bot_token, api.signing_secret))
        api.events.http_url = f"{pipe.recv()}/slack/events"
        while (numbers := pipe.recv()) is not None:
            for number in numbers:
                said = len(api.said())
                api.person_says(question(number))
                api.wait(lambda said=said: len(api.said()) > said and not api.events.under_way, timeout=SECONDS)
            pipe.send(None)


@contextlib.asynccontextmanager
async def answering(platform, service, storage):
    """Yield what has a person write messages of given numbers on a platform, and returns when all are answered."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from standins.clocks import fast_pace
    from standins.web_server import web_server

    spawning = multiprocessing.get_context("spawn")
    pipe, theirs = spawning.Pipe()
    player = spawning.Process(target={"telegram": play_telegram, "slack": play_slack}[platform], args=(theirs,))
    player.start()
    try:
        async with contextlib.AsyncExitStack() as stack:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            transport = make_transport(platform, await asyncio.to_thread(pipe.recv), fast_pace())
            stack.push_async_callback(transport.close)
            await stack.enter_async_context(web_server(transport.routes, listener))
            pipe.send(f"http://127.0.0.1:{listener.getsockname()[1]}")
            worker = Worker(storage, service.options, [transport], commands=service.commands)
            await worker.start()
            stack.push_async_callback(worker.stop, grace_seconds=5)
            await transport.start(Inbox(storage, worker.wake), storage)
            stack.push_async_callback(transport.stop)

            async def write(numbers):
                pipe.send(list(numbers))
                await asyncio.to_thread(pipe.recv)

            yield write
            pipe.send(None)
    finally:
        player.join(SECONDS)
        player.terminate()


def make_transport(platform, about, pace):
    """Return the transport for a platform that said where it is and how it signs."""
    if platform == "telegram":
        from transports.telegram.app import TelegramTransport

        url, token = about
        return TelegramTransport(token=token, api_url=url, public_url=PUBLIC, pace=pace)
    from transports.slack.app import SlackTransport

    url, token, secret = about
    return SlackTransport(token=token, signing_secret=secret, api_url=url, pace=pace)
