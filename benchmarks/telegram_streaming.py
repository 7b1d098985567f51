"""What a streamed answer costs in Telegram: calls of the Bot API, and seconds until the first sign of life.

    python benchmarks/telegram_streaming.py [--answers 3] [--characters 3000] [--think 5] [--per-second 60]

A bot answers over real HTTP against the Bot API stand-in of the tests, which refuses what Telegram's published limits
do not allow. The model thinks for some seconds, and then writes so many characters a second. Private chats see drafts
grow, groups a message that is edited.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from standins.bot_api import BotApi, RateLimits, UpdateMade
from standins.bot_api.entities import Strictness

from botservice import AgentService, FunctionsBasedAgent, Storage
from botservice.llm.chat import ChatResponse
from botservice.turns.inbox import Inbox
from botservice.turns.worker import Worker
from transports.telegram.app import TelegramTransport

GROUP = -1001000000001
WORDS = "Here is one more sentence of the answer, which goes on and on for a while. "
SIGNS = ("sendChatAction", "sendMessageDraft", "sendMessage")


class Writer:
    model = "writer"

    def __init__(self, think, characters, per_second):
        self.think, self.text, self.per_second = (
            think,
            (WORDS * (characters // len(WORDS) + 1))[:characters],
            per_second,
        )

    async def chat(self, messages, tools=(), *, on_text=None):
        await asyncio.sleep(self.think)
        for begin in range(0, len(self.text), 4):
            await asyncio.sleep(4 / self.per_second)
            if on_text is not None:
                on_text(self.text[begin : begin + 4])
        return ChatResponse(self.text)


async def ask(api, chat, place, text):
    """Return the calls that one answer cost, and the seconds until the first sign of life."""
    before, visible = len(api.calls(chat_id=chat)), len(api.visible_texts(chat))
    said = api.person_says(f"@{api.username} question {place}", chat_id=chat)
    while len(api.visible_texts(chat)) == visible or api.visible_texts(chat)[-1] != text.strip():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    calls = api.calls(chat_id=chat)[before:]
    made = next(each for each in api.journal.entries(UpdateMade) if each.update_id == said.update_id)
    return len(calls), next(call.at for call in calls if call.method in SIGNS) - made.at


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, default=3)
    parser.add_argument("--characters", type=int, default=3000)
    parser.add_argument("--think", type=float, default=5.0)
    parser.add_argument("--per-second", type=float, default=60.0)
    chosen = parser.parse_args()
    model = Writer(chosen.think, chosen.characters, chosen.per_second)
    with tempfile.TemporaryDirectory() as folder, BotApi.running(strict=Strictness(count=True, nesting=True)) as api:
        api.limits = RateLimits()
        async with Storage.open(f"sqlite:///{folder}/bench.db") as storage:
            service = AgentService(FunctionsBasedAgent(llm=model, search_k=0), storage)
            transport = TelegramTransport(token=api.token, api_url=api.url)
            worker = Worker(storage, service.options, [transport])
            await worker.start()
            await transport.start(Inbox(storage, worker.wake), storage)
            for name, chat in (("private chat, drafts", 42), ("group, an edited message", GROUP)):
                found = [await ask(api, chat, place, model.text) for place in range(chosen.answers)]
                report(name, found, chosen.characters, api.limits.refused)
            await transport.stop()
            await worker.stop()
            await transport.close()


def report(name, found, characters, refusals):
    per_thousand = [count * 1000 / characters for count, _ in found]
    signs = [sign for _, sign in found]
    print(
        f"{name}: {statistics.median(per_thousand):.1f} calls per 1,000 characters (at most {max(per_thousand):.1f}), "
        f"first sign of life after {statistics.median(signs):.2f} s (at most {max(signs):.2f}), {refusals} refusals"
    )


asyncio.run(main())
