"""How many turns a process gets through: 200 chats with 10 messages each, and a model that takes 50 ms.

    python benchmarks/throughput.py [--url sqlite:///bench.db | postgresql://…] [--chats 200] [--messages 10]
                                    [--rounds 3]

The same load runs first without any storage, so that the ratio says what durability costs. Then one chat asks at a
time, which says how long a message waits, and then nobody does, which says what an idle process costs. Each figure is
the median of the rounds. CPU time is this process's alone, and says most where others use the machine as well.
"""

import argparse
import asyncio
import resource
import statistics
import tempfile
import time
from pathlib import Path

from botservice import FunctionsBasedAgent, InboundMessage, MessageWindowMessageSelector, Storage
from botservice.conversation.callbacks import StepCallbacks
from botservice.llm.chat import ChatResponse
from botservice.turns.event_queries import MAX_OWN_TURNS
from botservice.turns.inbox import Inbox
from botservice.turns.run_options import RunOptions
from botservice.turns.turn import InboundEvent
from botservice.turns.worker import Worker


class QuickModel:
    model = "quick"

    def __init__(self, seconds):
        self.seconds = seconds
        self.started = {}

    async def chat(self, messages, tools=(), *, on_text=None):
        text = messages[-1]["content"]
        self.started[text] = time.perf_counter()
        await asyncio.sleep(self.seconds)
        return ChatResponse(f"re: {text}")


class Counter:
    name = "bench"

    def __init__(self, wanted):
        self.left = wanted
        self.done = asyncio.Event()

    async def read(self, event):
        return InboundMessage(event.raw.decode())

    def plan(self, answer, events):
        return [{"text": answer.text}]

    async def send(self, context_keys, delivery):
        self.left -= 1
        if not self.left:
            self.done.set()

    def live(self, context_keys, events, record):
        return None


async def with_storage(url, chats, messages, seconds, idle_seconds):
    model = QuickModel(seconds)
    counter = Counter(chats * messages)
    agent = FunctionsBasedAgent(llm=model, message_selector=MessageWindowMessageSelector(20), search_k=0)
    accepted = {}
    async with Storage.open(url, migrate=True) as storage:
        worker = Worker(storage, RunOptions(agent, StepCallbacks(None), 10), [counter])
        inbox = Inbox(storage, worker.wake)
        await worker.start()
        run = time.time_ns()

        async def write(chat):
            for number in range(messages):
                text = f"{chat}-{number}"
                event = InboundEvent(f"{run}:{text}", {"chat_id": f"{run}-{chat}"}, number, text.encode())
                await inbox.accept("bench", [event])
                accepted[text] = time.perf_counter()

        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(write(chat) for chat in range(chats)))
        await counter.done.wait()
        elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
        # One message in a chat that has nothing else to do: how long until the model is asked?
        waits = []
        for number in range(200):
            counter.left, text = 1, f"alone-{number}"
            counter.done.clear()
            event = InboundEvent(f"{run}:{text}", {"chat_id": f"{run}-alone"}, number, text.encode())
            asked = time.perf_counter()
            await inbox.accept("bench", [event])
            await counter.done.wait()
            waits.append(model.started[text] - asked)
        idle = time.process_time()
        await asyncio.sleep(idle_seconds)
        idle = (time.process_time() - idle) / idle_seconds if idle_seconds else 0.0
        await worker.stop()
    waits.sort()
    return elapsed, cpu, waits[len(waits) // 2], waits[int(len(waits) * 0.95)], idle


async def without_storage(chats, messages, seconds):
    model = QuickModel(seconds)

    async def chat(number):
        history = []
        for message in range(messages):
            history.append({"role": "user", "content": f"{number}-{message}"})
            answer = await model.chat(history[-20:])
            history.append({"role": "assistant", "content": answer.text})

    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(chat(number) for number in range(chats)))
    return time.perf_counter() - started, time.process_time() - cpu


def median(rounds):
    """Return the median of each figure that the rounds return."""
    return [statistics.median(figures) for figures in zip(*map(asyncio.run, rounds), strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--messages", type=int, default=10)
    parser.add_argument("--model-seconds", type=float, default=0.05)
    parser.add_argument("--idle-seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.messages > MAX_OWN_TURNS:
        parser.error(f"of more than {MAX_OWN_TURNS} messages that wait in a chat, some share a turn: use more chats")
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"sqlite:///{Path(folder) / 'bench.db'}"
        load = (options.chats, options.messages, options.model_seconds)
        bare, bare_cpu = median(without_storage(*load) for _ in range(options.rounds))
        stored, cpu, middle, late, idle = median(
            with_storage(url, *load, options.idle_seconds) for _ in range(options.rounds)
        )
    turns = options.chats * options.messages
    kind, model_ms = url.partition(":")[0], options.model_seconds * 1000
    print(f"{turns} turns, {options.chats} chats at once, a model of {model_ms:g} ms, {kind}")
    print(f"  without storage  {turns / bare:8.0f} turns/s   {bare_cpu / turns * 1000:6.2f} ms of CPU a turn")
    print(f"  with storage     {turns / stored:8.0f} turns/s   {cpu / turns * 1000:6.2f} ms of CPU a turn")
    print(f"  ratio            {stored / bare:8.2f} times as long")
    print(f"  accept to start  {middle * 1000:8.1f} ms p50  {late * 1000:.1f} ms p95")
    print(f"  idle             {idle * 100:8.2f} % of a core")
    print(f"  memory           {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:8d} MiB at most")


if __name__ == "__main__":
    main()
