"""Watch a small web application with an agent whose memory can be replayed, edited, stepped through and resumed.

    python examples/monitoring_agent --mode replay|inject|step_by_step|full

The application is started by this program, on loopback. Without OPENAI_API_KEY or OPENAI_BASE_URL the agent follows
a script; with one of them it talks to that model.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from watcher import TASK, make_service
from web_app import WebApp

from botservice import ActionStep, AgentContext, AgentMemory, Storage

KEYS = {"transport": "example", "watched": "shop"}
MODES = ("replay", "inject", "step_by_step", "full")


async def replay(url: str, address: str) -> None:
    """Let the agent watch, then look at what it did."""
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        answer = await make_service(storage, address).prompt(context, TASK)
        print("Answer:", answer.text)
        context.memory.replay()
        context.memory.replay(detailed=True)
        alerts = [step for step in context.completed_steps if "ALERT" in (step.observations or "")]
        print("Alerts were raised in steps", *(step.step_number for step in alerts))


async def inject(url: str, address: str) -> None:
    """Tell the agent of what happened when it was not there."""
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        run = await make_service(storage, address).start(context, TASK)
        run.memory.steps.insert(0, ActionStep(0, observations="System was down for 2 hours yesterday"))
        answer = await run.finish()
        print("Answer:", answer.text)
        print("The model read:", run.write_memory_to_messages()[1]["content"])


async def step_by_step(url: str, address: str) -> None:
    """Go one step at a time, and correct the memory in between."""
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        run = await make_service(storage, address).start(context, TASK)
        while run.answer is None:
            step = await run.step()
            if isinstance(step, ActionStep):
                calls = ", ".join(call.name for call in step.tool_calls or ())
                print(f"Step {step.step_number}: {calls} -> {step.observations} (failures: {step.failures})")
                if calls == "restart":
                    step.observations = f"{step.observations}\nThe operator was told."
        print("Answer:", run.answer.text)


async def watch_and_die(url: str, address: str, memory_file: str) -> None:
    """Watch for four steps, save the memory, and end as in a power cut."""
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        run = await make_service(storage, address).start(context, TASK)
        for _ in range(4):
            await run.step()
        await asyncio.to_thread(Path(memory_file).write_text, run.memory.to_json())
        os.kill(os.getpid(), signal.SIGKILL)


async def full(url: str, address: str, folder: Path) -> None:
    """Show all of it: a process that dies in the middle, its memory loaded, the turn finished, everything replayed."""
    memory_file = folder / "memory.json"
    child = await asyncio.to_thread(
        subprocess.run, [sys.executable, Path(__file__).parent, "--die", url, address, str(memory_file)], check=False
    )
    print("The first process ended with", child.returncode)
    saved = AgentMemory.from_json(memory_file.read_text())
    print("Its memory, from the file:", *(type(step).__name__ for step in saved.steps))
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        print("Its memory, from storage, is the same:", context.memory == saved)
        run = await make_service(storage, address).resume(context)
        if run is None:
            return
        run.memory.steps.insert(0, ActionStep(0, observations="System was down for 2 hours yesterday"))
        while run.answer is None:
            step = await run.step()
            print(type(step).__name__, step.get_value("observations") or "")
        print("Answer:", run.answer.text)
        (await context.load_memory()).replay()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, default="full")
    parser.add_argument("--die", nargs=3, metavar=("URL", "ADDRESS", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.die:
        asyncio.run(watch_and_die(*options.die))
        return
    with tempfile.TemporaryDirectory() as name, WebApp() as app:
        url = f"sqlite:///{Path(name) / 'watcher.db'}"
        if options.mode == "full":
            asyncio.run(full(url, app.address, Path(name)))
        else:
            mode = {"replay": replay, "inject": inject, "step_by_step": step_by_step}[options.mode]
            asyncio.run(mode(url, app.address))
        print("The application was restarted", app.restarts, "time(s).")


if __name__ == "__main__":
    main()
