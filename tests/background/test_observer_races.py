"""Readings next to whoever forgets, and processes that are killed: what is gone stays gone, and is written once."""

import asyncio
import os
import random
import signal
import sys
from contextlib import AsyncExitStack

import pytest
from background.observing import ALICE, Clock, noting, observer_of, one_note, open_chat, say, tokens
from standins.patience import PATIENT

from botservice import Storage
from botservice.storage.tables.columns import metadata

HANGING = """
import asyncio, sys
from datetime import UTC, datetime
from botservice import Observer, ScriptedChatLLM, Storage

async def hang(_):
    print("asked", flush=True)
    await asyncio.Event().wait()

async def main():
    async with Storage.open(sys.argv[1]) as storage:
        clock = lambda: datetime(2026, 5, 1, 12, tzinfo=UTC)
        await Observer(storage, ScriptedChatLLM(hang), window_tokens=100, clock=clock).catch_up()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_process_that_is_killed_while_the_model_is_asked_leaves_its_stretch_to_another(storage_url):
    async with AsyncExitStack() as stack:
        if storage_url.startswith("postgres"):
            storage = await stack.enter_async_context(Storage.open(storage_url, limits=PATIENT))
            chat = await open_chat(storage, "1", ALICE)
            await say(chat, *[tokens(600, word) for word in ("one", "two", "three", "four")])
        else:
            async with Storage.open(storage_url) as before:
                chat = await open_chat(before, "1", ALICE)
                await say(chat, *[tokens(600, word) for word in ("one", "two", "three", "four")])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", HANGING, storage_url), stdout=asyncio.subprocess.PIPE, env=os.environ
        )
        try:
            async with asyncio.timeout(60):
                assert process.stdout is not None
                assert await process.stdout.readline() == b"asked\n"
        finally:
            process.send_signal(signal.SIGKILL)
            await process.wait()
        if not storage_url.startswith("postgres"):
            storage = await stack.enter_async_context(Storage.open(storage_url))
        observer = observer_of(storage, noting(notes=one_note), Clock(), window_tokens=100)
        async with asyncio.timeout(60):
            while not await observer.catch_up():  # noqa: ASYNC110 - the lock of a dead process ends with its session
                await asyncio.sleep(0.05)
        rows = await storage.read(lambda c: c.execute(metadata.tables["notes"].select()).all())
        assert [row.number for row in rows] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_what_others_delete_while_it_is_read_is_in_no_note(storage_url, seed):
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Storage.open(storage_url, limits=PATIENT))
        second = await stack.enter_async_context(Storage.open(storage_url, limits=PATIENT))
        chat = await open_chat(first, "1", ALICE)
        other = await open_chat(second, "1", ALICE)
        gone: set[str] = set()
        words: dict[int, str] = {}
        is_over = asyncio.Event()

        async def write() -> None:
            for number in range(120):
                (said,) = await say(chat, f"word{number:03} was said")
                words[said.id] = f"word{number:03}"
            is_over.set()

        async def delete() -> None:
            while not is_over.is_set():
                if words:
                    chosen = chance.choice(list(words))
                    await other.chat_history.delete_messages([chosen])
                    gone.add(words.pop(chosen))
                await asyncio.sleep(0)

        async def read(storage, context) -> None:
            observer = observer_of(storage, noting(notes=one_note), notes_tokens=900)
            while not is_over.is_set():
                await observer.observe(context)
                await asyncio.sleep(0)

        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            for each in (write(), delete(), read(first, chat), read(second, other)):
                group.create_task(each)
        await observer_of(first, noting(notes=one_note), notes_tokens=900).observe(chat)
        noted = " ".join(each.text for each in await chat.notes())
        assert gone
        assert noted
        assert not [word for word in gone if word in noted]
        ids = [number for each in await chat.notes() for number in each.message_ids]
        assert len(ids) == len(set(ids)), "no message is noted twice"
