"""A bot in a process of its own that kills itself at a chosen point."""

import asyncio
import os
import signal
from pathlib import Path

from sqlalchemy import func, select

from botservice import AgentContext, OpenAIChatLLM, ScriptedChatLLM, Storage, Tool
from botservice.storage.tables.conversations import tool_calls
from tests.turns.bots import make_service

KEYS = {"transport": "test", "chat_id": "1"}


def die():
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


async def neighbour_ended(context):
    """Return once the call alongside this one is stored as ended."""
    query = select(func.count()).where(tool_calls.c.status == "ended")
    async with asyncio.timeout(60):
        while not await context.storage.read(lambda connection: connection.execute(query).scalar_one()):  # noqa: ASYNC110 - only the database tells
            await asyncio.sleep(0.01)


def make_tools(log, dies_in=None):
    """Return tools that write down when they run; one of them kills the process.

    once takes effect every time it runs; twice may be run again.
    """

    def make(name, **options):
        async def run(where: AgentContext, n: int = 0) -> str:
            with Path(log).open("a") as file:  # noqa: ASYNC230 - a line
                file.write(f"{name} {n}\n")
            if dies_in == f"{name} {n}":
                await neighbour_ended(where)
                die()
            return f"{name} {n} ran"

        return Tool(run, name=name, **options)

    return [make("once"), make("twice", idempotent=True), make("submit", is_final=True)]


def reply(script, dies_before=None):
    """Return a model that goes by how many steps its prompt shows: it needs no memory of its own."""

    def answer(prompt):
        done = sum(1 for message in prompt if message.get("tool_calls"))
        if done == dies_before:
            die()
        return script[done]

    return answer


def run_until_death(url, log, script, options):
    """Start a turn and kill this process where options say so; the target of a child process."""
    asyncio.run(_run(url, log, script, **options))


async def _run(url, log, script, steps=None, dies_in=None, dies_before=None, in_callback=None, resumes=False):
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        callbacks = [lambda step: die() if step.step_number == in_callback else None]
        model = ScriptedChatLLM(reply(script, dies_before))
        service, _ = make_service(storage, model, tools=make_tools(log, dies_in), callbacks=callbacks)
        run = await (service.resume(context) if resumes else service.start(context, "go"))
        while run.answer is None and steps != 0:
            await run.step()
            steps = None if steps is None else steps - 1
        die()


def answer_with_openai(url, base_url, steps, api="responses"):
    """Do so many steps of a turn with a model behind OpenAI's API and kill this process; a child's target."""
    asyncio.run(_answer_with_openai(url, base_url, steps, api))


async def _answer_with_openai(url, base_url, steps, api):
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        name = "m" if api == "chat" else None
        llm = OpenAIChatLLM(name, base_url=base_url, api_key="sk-test", api=api)
        service, _ = make_service(storage, llm)
        run = await service.start(context, "go")
        for _ in range(steps):
            await run.step()
        die()
