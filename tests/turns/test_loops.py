"""One service in several event loops, and a turn that is asked for within a turn."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from turns.bots import add, call, make_service
from turns.messenger import office

from botservice import AgentContext, AgentService, ChatResponse, FunctionsBasedAgent, TurnInProgress

PATIENCE_SECONDS = 30


class Gate:
    """A model whose first call waits until it is let through."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.is_open = threading.Event()
        self.seen: list[str] = []

    async def chat(self, messages, tools=(), *, on_text=None):
        self.seen.append(messages[-1]["content"])
        self.is_asked.set()
        assert await asyncio.to_thread(self.is_open.wait, PATIENCE_SECONDS)
        return ChatResponse(f"re: {messages[-1]['content']}")


@pytest.mark.any_database
async def test_prompts_of_one_chat_from_threads_with_loops_of_their_own_are_answered_one_by_one(
    context, storage, monkeypatch
):
    model = Gate()
    service = AgentService(FunctionsBasedAgent(llm=model), storage)
    claims, try_claim, waiting = storage.claims, storage.claims.try_claim, threading.Semaphore(0)

    async def try_and_tell(context_id):
        claim = await try_claim(context_id)
        if claim is None:
            waiting.release()
        return claim

    monkeypatch.setattr(claims, "try_claim", try_and_tell)

    async def ask(*texts):
        own = await AgentContext.get_or_create(storage, context.context_keys)
        return [each.text for each in await asyncio.gather(*(service.prompt(own, text) for text in texts))]

    def run(*texts):
        try:
            return asyncio.run(ask(*texts))
        finally:
            waiting.release()

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(run, "one", "two")
        assert await asyncio.to_thread(model.is_asked.wait, PATIENCE_SECONDS)
        second = threads.submit(run, "three", "four")
        assert await asyncio.to_thread(waiting.acquire, timeout=PATIENCE_SECONDS)
        model.is_open.set()
        answers = [await asyncio.wrap_future(each) for each in (first, second)]
    assert answers == [["re: one", "re: two"], ["re: three", "re: four"]]
    assert sorted(model.seen) == ["four", "one", "three", "two"]
    said = [each.text for each in await context.chat_history.messages()]
    assert said[1::2] == [f"re: {question}" for question in said[::2]], "no turn begins before the last one has ended"
    assert service._claims._lines == {}


@pytest.mark.any_database
async def test_a_prompt_never_looks_paused_to_other_threads(context, storage):
    service, _ = make_service(
        storage, [call("add", a=1, b=1), "2"], callbacks=[lambda step, run: seen.append(holder())]
    )
    seen = []

    def holder():
        return storage.claims.holder(context.id)

    await service.prompt(context, "go")
    assert [claim.is_idle for claim in seen] == [False], "nor between two steps, nor at its end"


@pytest.mark.any_database
async def test_a_callback_that_waits_for_a_turn_of_its_own_chat_is_told_so(context, storage):
    raised = []

    async def ask(step, run):
        with pytest.raises(TurnInProgress, match="would wait for itself") as told:
            await service.prompt(run.context, "nested")
        raised.append(told)

    service, llm = make_service(storage, [call("add", a=1, b=1), "2", call("add", a=1, b=1), "2"], callbacks=[ask])
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert (await service.prompt(context, "go")).text == "2"
        run = await service.start(context, "go")
        assert (await run.finish()).text == "2"
    assert len(raised) == 2
    assert len(llm.prompts) == 4


@pytest.mark.any_database
async def test_a_callback_of_a_served_chat_is_told_so_as_well(storage):
    async def ask(step, run):
        with pytest.raises(TurnInProgress, match="would wait for itself"):
            await service.prompt(run.context, "nested")
        step.note = "told"

    service, _ = make_service(storage, [])
    async with office(storage, [call("add", a=1, b=1), "2"], tools=[add], callbacks=[ask]) as bot:
        await bot.write("go", order=1)
        await bot.messenger.shows("1", "2")
    context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "1"})
    assert context.completed_steps[0].note == "told"


@pytest.mark.any_database
async def test_a_callback_may_have_a_task_wait_and_may_ask_in_another_chat(context, storage):
    other = await AgentContext.get_or_create(storage, {"chat_id": "other"})
    tasks, answers = [], []

    async def ask(step, run):
        tasks.append(asyncio.create_task(service.prompt(context, "afterwards")))
        answers.append((await service.prompt(other, "beside")).text)

    service, _ = make_service(storage, lambda prompt: next(script), callbacks=[ask])
    script = iter([call("add", a=1, b=1), "elsewhere", "2", "later"])
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert (await service.prompt(context, "go")).text == "2"
        assert (await tasks[0]).text == "later"
    assert answers == ["elsewhere"]
