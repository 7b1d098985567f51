"""What people notice while other programs send events in a burst: seconds until an answer, idle and meanwhile.

    python benchmarks/events_burst.py [--events 1000] [--do say | ask] [--chats 20] [--greetings 60] [--url postgresql://…]

A real `botservice serve` in a process of its own polls the Bot API stand-in of the tests; its model takes 50 ms. The
events come from one more process, over 20 connections, for chats in which nobody writes. Somebody else says hi, again
and again: before, until every event is said or answered, and after. The ratio says something on any machine.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from crash.served import ServedBot
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply

_FRIENDS = (42, 43, 44)
_PAUSE_SECONDS = 0.3
_FIRST = 1000
_SECRET = "a-secret-of-a-sender"
_PATIENCE_SECONDS = 600
_POST = """
import asyncio, sys, time
import httpx

async def post(url, events, chats):
    limits = httpx.Limits(max_connections=20)
    headers = {"authorization": "Bearer SECRET"}
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=600) as client:
        async def one(number):
            said = await client.post(f"/hooks/h{number % chats}", json={"number": number})
            assert said.status_code == 202, said.text
        await asyncio.gather(*map(one, range(events)))

began = time.monotonic()
asyncio.run(post(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
print(time.monotonic() - began)
""".replace("SECRET", _SECRET)


async def greet(api: BotApi, friend: int, is_over: Any) -> list[float]:
    """Return how long each greeting in a new chat waited for its answer, one after the other, until it is over."""
    api.add_private_chat(friend)
    waits: list[float] = []
    while not is_over(len(waits)):
        began = time.monotonic()
        api.person_says("hi", chat_id=friend)
        await api.messages(friend, len(waits) + 1, timeout=_PATIENCE_SECONDS)
        waits.append(time.monotonic() - began)
        await asyncio.sleep(_PAUSE_SECONDS)
    return waits


def p95(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=20)[-1]


async def run(options: argparse.Namespace) -> None:
    common = {"from": "bearer", "secret": _SECRET, "per_minute": 1_000_000, "do": options.do}
    done = {"template": "event {{ payload.number }}"} if options.do == "say" else {"task": "Say its number."}
    chats = [_FIRST + number for number in range(options.chats)]
    hooks = {f"h{number}": {**common, **done, "to": f"telegram:{chat}"} for number, chat in enumerate(chats)}
    with (
        tempfile.TemporaryDirectory() as folder,
        OpenAIApi.running(lambda _: Reply(text="hello", delay=0.05)) as model,
        BotApi.running() as api,
    ):
        (Path(folder) / "hooks.json").write_text(json.dumps({"hooks": hooks}))
        for chat in chats:
            api.add_private_chat(chat)
        settings = {"OPENAI_BASE_URL": model.base_url, "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
        settings |= {} if options.url is None else {"DATABASE_URL": options.url}
        with ServedBot(Path(folder), **settings) as bot:
            bot.start()
            for chat in chats:
                api.person_says("hi", chat_id=chat)
                await api.messages(chat, 1, timeout=_PATIENCE_SECONDS)
            idle = await greet(api, _FRIENDS[0], lambda count: count >= options.greetings)
            began = time.monotonic()
            arguments = [bot.url, str(options.events), str(options.chats)]
            poster = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _POST, *arguments, stdout=asyncio.subprocess.PIPE
            )

            def is_over(_: int) -> bool:
                if poster.returncode is None:
                    return False
                told = sum(len(api.visible_texts(chat)) - 1 for chat in chats)
                return options.do == "ask" or told >= options.events

            used = psutil.Process(bot.pid).cpu_times()
            reading = asyncio.create_task(poster.communicate())
            burst = await greet(api, _FRIENDS[1], is_over)
            took = time.monotonic() - began
            (printed, _) = await reading
            spent = psutil.Process(bot.pid).cpu_times()
            after = await greet(api, _FRIENDS[2], lambda count: count >= options.greetings)
    quiet = statistics.mean((p95(idle), p95(after)))
    print(f"{options.events} events were stored in {float(printed):.1f} s, and said within {took:.1f} s")
    cpu = spent.user + spent.system - used.user - used.system
    print(f"CPU of the service meanwhile: {cpu:.1f} s")
    print(f"hi, p95: {p95(idle):.3f} s before, {p95(burst):.3f} s meanwhile ({len(burst)}), {p95(after):.3f} s after")
    print(f"meanwhile / idle: {p95(burst) / quiet:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--do", choices=["say", "ask"], default="say")
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--greetings", type=int, default=60)
    parser.add_argument("--url")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
