"""What others notice while strangers send what is made to stop a bot: seconds until an answer, and memory.

    python benchmarks/hostile.py [--files 40] [--answers 10] [--greetings 10]

A real `botservice serve` in a process of its own, on SQLite, polls the Bot API stand-in of the tests. So many send
a hostile PDF each, so many get an answer of a shape that is hard to format. Meanwhile another person says hi, again
and again, and /healthz is asked. Memory is what the service and its children hold, sampled all the time.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from attacks.hostile_files import endless_memory, endless_work, pdf
from attacks.shapes import shapes
from crash.served import ServedBot
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi

_FRIEND = 42
_PAUSE_SECONDS = 0.05
_PATIENCE_SECONDS = 600


def answer(body: dict[str, Any]) -> str:
    said = str(body["messages"][-1]["content"])
    return dict(shapes()).get(said, "hello" if said == "hi" else "…")


async def watch_memory(pid: int, most: list[float]) -> None:
    service = psutil.Process(pid)
    while True:
        held = 0
        for process in [service, *service.children(recursive=True)]:
            try:
                held += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        most.append(held / 1024**2)
        await asyncio.sleep(_PAUSE_SECONDS)


async def watch_health(url: str, waits: list[float]) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        while True:
            began = time.monotonic()
            (await client.get(f"{url}/healthz")).raise_for_status()
            waits.append(time.monotonic() - began)
            await asyncio.sleep(_PAUSE_SECONDS)


async def greet(api: BotApi, count: int, after: int = 0) -> list[float]:
    """Return how long each of so many greetings waited for its answer, after some that had theirs."""
    waits = []
    for number in range(after + 1, after + count + 1):
        began = time.monotonic()
        api.person_says("hi", chat_id=_FRIEND)
        await api.messages(_FRIEND, number, timeout=_PATIENCE_SECONDS)
        waits.append(time.monotonic() - began)
    return waits


async def attack(api: BotApi, files: int, answers: int) -> None:
    hostile = [endless_work(), pdf(b" " * (64 * 1024**2)), endless_memory()]
    for number in range(files):
        api.person_sends_document(hostile[number % len(hostile)], chat_id=100 + number, name="a.pdf")
    for number, shape in zip(range(answers), dict(shapes()), strict=False):
        api.person_says(shape, chat_id=1000 + number)


async def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, OpenAIApi.running(answer) as model, BotApi.running() as api:
        for chat_id in (_FRIEND, *range(100, 100 + options.files), *range(1000, 1000 + options.answers)):
            api.add_private_chat(chat_id)
        settings = {"OPENAI_BASE_URL": model.base_url, "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
        with ServedBot(Path(folder), **settings) as bot:
            bot.start()
            quiet = await greet(api, 1)
            held: list[float] = []
            health: list[float] = []
            watching = [
                asyncio.create_task(watch_memory(bot.pid, held)),
                asyncio.create_task(watch_health(bot.url, health)),
            ]
            await asyncio.sleep(1)
            before = held[-1]
            await attack(api, options.files, options.answers)
            waits = await greet(api, options.greetings, after=1)
            told = [await api.messages(100 + each, 1, timeout=_PATIENCE_SECONDS) for each in range(options.files)]
            for task in watching:
                task.cancel()
            await asyncio.wait(watching)
    told_so = sum("did not read" in each[0].text for each in told)
    print(f"hi: {quiet[0]:.2f} s before; meanwhile {statistics.median(waits):.2f} s, at most {max(waits):.2f} s")
    print(f"/healthz: {statistics.median(health):.3f} s, at most {max(health):.3f} s")
    print(f"memory of the service and its children: {before:.0f} MiB before, at most {max(held):.0f} MiB")
    print(f"told that their file was not read: {told_so} of {options.files}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--answers", type=int, default=10)
    parser.add_argument("--greetings", type=int, default=10)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
