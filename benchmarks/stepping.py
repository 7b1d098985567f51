"""How the time and the space of a step grow over one long run.

    python benchmarks/stepping.py [--steps 1000] [--url postgresql://…] [--profile]

The model is scripted and its time is not counted, so what is measured is the service: building the prompt, recording
it, storing the step before and after its tool. It is CPU time of all threads, so that a busy machine does not show.
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

WINDOW = 50  # steps that a figure is the median of


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


async def measure(url: str, steps: int, budget: int, profiler: cProfile.Profile | None) -> None:
    llm = Sizes(steps)
    agent = FunctionsBasedAgent(tools=[look], llm=llm, max_prompt_tokens=budget)
    async with Storage.open(url, migrate=True) as storage:
        context = await AgentContext.get_or_create(storage, {"benchmark": "stepping", "run": str(time.time_ns())})
        for number in range(50):
            await context.chat_history.append_user_message(f"message {number} about the weather and the dog")
        service = AgentService(agent=agent, storage=storage, max_steps=steps)
        run = await service.start(context, "watch the dog and the weather")
        seconds = []
        if profiler is not None:
            profiler.enable()
        while run.answer is None:
            started = time.process_time()
            await run.step()
            seconds.append(time.process_time() - started - llm.seconds)
        if profiler is not None:
            profiler.disable()
        report(seconds, llm.characters)
        started = time.perf_counter()
        await AgentContext.get_or_create(storage, context.context_keys)
        print(f"loading the context with its {steps} steps: {(time.perf_counter() - started) * 1000:.0f} ms")


def report(seconds: list[float], characters: list[int]) -> None:
    def at(step: int) -> float:
        first = max(0, min(step - WINDOW // 2, len(seconds) - WINDOW))
        return statistics.median(seconds[first : first + WINDOW]) * 1000

    print("step   CPU ms   prompt, characters")
    for step in (10, 100, 250, 500, 750, 1000):
        if step <= len(seconds):
            print(f"{step:>4}   {at(step):6.2f}   {characters[step - 1]:>8}")
    print(f"ratio of the last step to step 10: {at(len(seconds)) / at(10):.2f}")


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
