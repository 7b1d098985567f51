"""Whatever is done to a memory between two steps is what another process reads."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from botservice import ActionStep, AgentContext, Attachment, ClaimLost, MemoryItem, TaskStep, tool
from tests.conversation.strategies import items, steps
from tests.turns.bots import add, call, counting, make_service

numbers = itertools.count(1)
places = st.integers(0, 12)
edits = st.one_of(
    st.tuples(st.just("insert"), places, items | steps),
    st.tuples(st.just("delete"), places, st.none()),
    st.tuples(st.just("move"), places, places),
    st.tuples(st.just("change"), places, st.sampled_from(["calm", None, b"x" * 2000])),
    st.tuples(st.just("twice"), places, places),
    st.tuples(st.just("reset"), st.none(), st.none()),
    st.tuples(st.just("store"), st.none(), st.none()),
    st.tuples(st.just("step"), st.none(), st.none()),
    st.tuples(st.just("resume"), st.none(), st.none()),
)


@given(st.lists(edits, max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.slow
async def test_any_edits_are_stored(sqlite_storage, done):
    context = await AgentContext.get_or_create(sqlite_storage, {"n": str(next(numbers))})
    service, _ = make_service(sqlite_storage, counting(20), max_steps=20)
    run = await service.start(context, "go", reset=False)
    for kind, place, argument in done:
        if kind == "step":
            await run.step()
        elif kind == "resume":
            run = await service.resume(context)
        elif kind == "store":
            await run._work.save()
            assert (await context.load_memory()).steps == once_each(run.memory.steps)
        else:
            edit(run.memory.steps, kind, place, argument)
    await run._work.save()
    assert (await context.load_memory()).steps == once_each(run.memory.steps)
    again = await AgentContext.get_or_create(sqlite_storage, context.context_keys)
    assert again.memory.steps == once_each(run.memory.steps)
    await run.close()


def edit(memory, kind, place, argument):
    """Do something to a list of steps."""
    if kind == "insert":
        memory.insert(place, MemoryItem.from_dict(argument.to_dict()))
    elif kind == "reset":
        memory.clear()
    elif memory and kind == "delete":
        del memory[place % len(memory)]
    elif memory and kind == "move":
        memory.insert(argument % len(memory), memory.pop(place % len(memory)))
    elif memory and kind == "twice":
        memory.insert(argument % len(memory), memory[place % len(memory)])
    elif memory and kind == "change":
        memory[place % len(memory)].mood = argument


def once_each(memory):
    """Return the steps of a memory, each object in its first place."""
    return list({id(step): step for step in memory}.values())


async def test_bytes_in_any_field_are_kept_beside_the_record(context, storage):
    service, _ = make_service(storage, ["ok"])
    run = await service.start(context, "go")
    nested = {"$blob": "x", "deep": [Attachment("image/png", data=b"\x00\xff" * 3000), {"$bytes": "eA=="}]}
    run.memory.steps.append(ActionStep(1, blob=b"y" * 5000, nested=nested))
    await run.finish()
    stored = (await context.load_memory()).steps[1]
    assert stored.blob == b"y" * 5000
    assert stored.nested == nested


async def test_a_claim_that_is_lost_while_tools_run_is_one_error(context, storage):
    runs = []

    @tool
    async def lose() -> str:
        """Lose the claim."""
        storage.claims.abandon(runs[0]._claim)
        await storage.write(lambda connection: None)
        return "lost"

    service, _ = make_service(storage, [[call("lose"), call("add", a=1, b=1), call("lose")], "x"], tools=[lose, add])
    runs.append(await service.start(context, "go"))
    with pytest.raises(ClaimLost):
        await runs[0].step()
    run = await service.resume(await AgentContext.get_or_create(storage, context.context_keys))
    step = await run.step()
    assert "unknown" in step.observations


async def test_a_claim_that_is_lost_before_the_answer_leaves_no_answer(context, storage):
    async def reply(prompt):
        storage.claims.abandon(run._claim)
        await storage.write(lambda connection: None)
        return "too late"

    service, _ = make_service(storage, [reply, "in time"])
    run = await service.start(context, "go")
    with pytest.raises(ClaimLost):
        await run.step()
    assert run.answer is None
    assert [type(step) for step in run.memory.steps] == [TaskStep]
    run = await service.resume(context)
    assert (await run.finish()).text == "in time"
    assert [message.text for message in await context.chat_history.messages()] == ["go", "in time"]
