"""What people notice while other programs send events in a burst: seconds until an answer, idle and meanwhile.

    python benchmarks/events_burst.py [--events 1000] [--do say | ask] [--rounds 3] [--url postgresql://…]

A real `botservice serve` in a process of its own polls the Bot API stand-in of the tests; its model takes 50 ms. The
events come from one more process, over 20 connections, for chats in which nobody writes. Another person says hi, again
and again: before, until every event is said or stored, and after. The median ratio of several rounds says something on
any machine, also where others use it.
"""

import argparse
import asyncio
import itertools
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

_FRIENDS = 42
_PAUSE_SECONDS = 0.15
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
            said = await client.post(f"/hooks/h{number % chats}", json={"number": number, "round": sys.argv[4]})
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
            friends = itertools.count(_FRIENDS)

            async def be_idle() -> float:
                return p95(await greet(api, next(friends), lambda count: count >= options.greetings))

            ratios, idle = list[float](), await be_idle()
            for number in range(options.rounds):
                burst = await send_burst(options, bot, api, chats, number, next(friends))
                after = await be_idle()
                ratios.append(burst / statistics.mean((idle, after)))
                print(f"hi, p95: {idle:.3f} s before, {burst:.3f} s meanwhile, {after:.3f} s after", flush=True)
                idle = after
    print(f"meanwhile / idle: {statistics.median(ratios):.2f} ({', '.join(f'{each:.2f}' for each in sorted(ratios))})")


async def send_burst(
    options: argparse.Namespace, bot: ServedBot, api: BotApi, chats: list[int], round_number: int, friend: int
) -> float:
    """Return the p95 of a person's waits while the events of one round come."""
    began = time.monotonic()
    arguments = [bot.url, str(options.events), str(options.chats), str(round_number)]
    poster = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _POST, *arguments, stdout=asyncio.subprocess.PIPE
    )

    def is_over(_: int) -> bool:
        if poster.returncode is None:
            return False
        told = sum(len(api.visible_texts(chat)) - 1 for chat in chats)
        return options.do == "ask" or told >= options.events * (round_number + 1)

    used = psutil.Process(bot.pid).cpu_times()
    reading = asyncio.create_task(poster.communicate())
    waits = await greet(api, friend, is_over)
    took = time.monotonic() - began
    (printed, _) = await reading
    spent = psutil.Process(bot.pid).cpu_times()
    cpu = spent.user + spent.system - used.user - used.system
    print(f"{options.events} events: stored in {float(printed):.1f} s, over in {took:.1f} s, {cpu:.1f} s of CPU")
    return p95(waits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--do", choices=["say", "ask"], default="say")
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--greetings", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
