"""How the time and the space of a step grow over one long run.

    python benchmarks/stepping.py [--steps 1000] [--url postgresql://…] [--profile]

The model is scripted and its time is not counted, so what is measured is the service: building the prompt, recording
it, storing the step before and after its tool. It is CPU time of all threads, and
next to the long run a young one does its first 25 steps, so that a busy machine shows in both.
Prompts keep to a budget, as they do in practice; `--budget` sets it.
"""

import argparse
import asyncio
import cProfile
import itertools
import json
import pstats
import statistics
import tempfile
import time
from pathlib import Path

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage, ToolCall, tool

WINDOW = 25  # steps that a figure is the median of


@tool(idempotent=True)
async def look(number: int) -> str:
    """Look at something."""
    return f"observation {number}: " + "it is as it was before " * 8


class Sizes(ScriptedChatLLM):
    """A scripted model that keeps the sizes of its prompts, not the prompts."""

    def __init__(self, steps: int) -> None:
        replies = (ToolCall(f"call_{number}", "look", {"number": number}) for number in range(steps))
        super().__init__(itertools.chain(replies, ["done"]))
        self.characters: list[int] = []
        self.seconds = 0.0

    async def chat(self, messages, tools=(), *, on_text=None):
        started = time.process_time()
        response = await super().chat(messages, tools, on_text=on_text)
        self.characters.append(len(json.dumps(self.prompts.pop())))
        self.seconds = time.process_time() - started
        return response


class Run:
    """A run in a conversation of its own, and what its steps took."""

    def __init__(self, run, llm: Sizes) -> None:
        self.run = run
        self.llm = llm
        self.seconds: list[float] = []

    @classmethod
    async def start(cls, storage: Storage, steps: int, budget: int) -> "Run":
        llm = Sizes(steps)
        agent = FunctionsBasedAgent(tools=[look], llm=llm, max_prompt_tokens=budget)
        context = await AgentContext.get_or_create(storage, {"benchmark": "stepping", "run": str(time.time_ns())})
        for number in range(50):
            await context.chat_history.append_user_message(f"message {number} about the weather and the dog")
        service = AgentService(agent=agent, storage=storage, max_steps=steps)
        return cls(await service.start(context, "watch the dog and the weather"), llm)

    async def step(self) -> None:
        started = time.process_time()
        await self.run.step()
        self.seconds.append(time.process_time() - started - self.llm.seconds)


async def measure(url: str, steps: int, budget: int, profiler: cProfile.Profile | None) -> None:
    async with Storage.open(url, migrate=True) as storage:
        long = await Run.start(storage, steps, budget)
        if profiler is not None:
            profiler.enable()
        print("step   CPU ms   of a young run   ratio   prompt, characters")
        for checkpoint in (number for number in (50, 100, 250, 500, 750, 1000) if number <= steps):
            while len(long.seconds) < checkpoint - WINDOW:
                await long.step()
            young = await Run.start(storage, steps, budget)
            for _ in range(WINDOW):  # side by side: a busy machine slows both
                await long.step()
                await young.step()
            await young.run.close()
            old, new = (statistics.median(each.seconds[-WINDOW:]) * 1000 for each in (long, young))
            print(f"{checkpoint:>4}   {old:6.2f}   {new:14.2f}   {old / new:5.2f}   {long.llm.characters[-1]:>10}")
        if profiler is not None:
            profiler.disable()
        await long.run.close()
        started = time.perf_counter()
        await AgentContext.get_or_create(storage, long.run.context.context_keys)
        print(f"loading the context with its {steps} steps: {(time.perf_counter() - started) * 1000:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=8_000, help="the longest prompt, in tokens")
    parser.add_argument("--url")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    profiler = cProfile.Profile() if options.profile else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stepping.db"
        asyncio.run(measure(options.url or f"sqlite:///{path}", options.steps, options.budget, profiler))
        if options.url is None:
            print(f"database: {path.stat().st_size / options.steps:.0f} bytes per step")
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
