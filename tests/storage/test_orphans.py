"""Files that nothing refers to any more: looked for next to the writer, and never deleted where something does."""

import asyncio
from functools import partial

from sqlalchemy import func, insert, select, update
from standins.patience import PATIENT
from storage.effort import Efforts

from botservice import AgentContext, Attachment, Storage
from botservice.background.maintenance import Maintenance
from botservice.core.states import TurnStatus
from botservice.history.edit_queries import delete_rows
from botservice.storage.blobs import _delete_orphans, _find_orphans, loosen_all_files, sweep_files
from botservice.storage.tables.conversations import blobs, loose_files, turns
from botservice.turns.queries import insert_turn

PICTURE = Attachment("image/png", data=b"a picture" * 100)
ANOTHER = Attachment("image/png", data=b"another" * 100)


async def chat_with(storage: Storage, *pictures: Attachment) -> AgentContext:
    context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
    for each in pictures:
        await context.chat_history.append_user_message("see", attachments=[each])
    return context


async def count(storage: Storage) -> tuple[int, int]:
    """Return how many files there are, and how many notes that some may be left over."""

    def query(connection):
        return tuple(
            connection.execute(select(func.count()).select_from(each)).scalar_one() for each in (blobs, loose_files)
        )

    return await storage.read(query)


async def test_who_deletes_only_takes_note_and_upkeep_does_what_a_killed_process_left(storage):
    context = await chat_with(storage, PICTURE, ANOTHER)
    first = (await context.chat_history.messages())[0]
    await storage.write(lambda connection: delete_rows(connection, context.id, [first.id]))
    assert await count(storage) == (2, 1)
    assert (await Maintenance(storage).run_once()).is_whole
    assert await count(storage) == (1, 0)
    assert (await context.chat_history.messages())[0].attachments == (ANOTHER,)


async def test_a_file_that_is_sent_again_meanwhile_stays(storage):
    context = await chat_with(storage, PICTURE)
    await storage.write(lambda connection: delete_rows(connection, context.id))
    found = await storage.read(partial(_find_orphans, context_id=context.id))
    assert len(found.digests) == 1
    again = await chat_with(storage, PICTURE)
    await storage.write(partial(_delete_orphans, context_id=context.id, found=found))
    assert await count(storage) == (1, 0)
    assert (await again.chat_history.messages())[0].attachments == (PICTURE,)


async def test_a_file_that_a_turn_names_meanwhile_stays_although_the_turn_has_ended(storage):
    context = await chat_with(storage, PICTURE)
    turn_id = await storage.write(
        lambda c: insert_turn(c, context.id, "test", storage.now(), status=TurnStatus.RUNNING)
    )
    await storage.write(lambda connection: delete_rows(connection, context.id))
    found = await storage.read(partial(_find_orphans, context_id=context.id))
    [digest] = found.digests

    def end(connection):
        ended = {"system_prompt": digest, "status": "done", "finished_at": storage.now()}
        connection.execute(update(turns).where(turns.c.id == turn_id).values(ended))

    await storage.write(end)
    await storage.write(partial(_delete_orphans, context_id=context.id, found=found))
    assert await count(storage) == (1, 0)


async def test_the_writer_deletes_no_more_at_once_where_more_files_are_left_over(sqlite_storage):
    context, most = await chat_with(sqlite_storage), []
    efforts = Efforts(sqlite_storage)
    for times in (3_000, 9_000):

        def leave(connection, times=times):
            rows = [
                {"context_id": context.id, "sha256": f"{number:064x}", "data": b"x", "is_encrypted": False}
                for number in range(times)
            ]
            connection.execute(insert(blobs), rows)
            loosen_all_files(connection, context.id)

        await sqlite_storage.write(leave)
        efforts.most()
        await sweep_files(sqlite_storage)
        most.append(efforts.most()[1])
        assert await count(sqlite_storage) == (0, 0)
    assert most[1] < 1.5 * most[0]


async def test_a_file_that_loses_its_last_reference_meanwhile_goes(storage):
    context = await chat_with(storage, PICTURE, PICTURE)
    first, second = await context.chat_history.messages()
    await storage.write(lambda connection: delete_rows(connection, context.id, [first.id]))
    found = await storage.read(partial(_find_orphans, context_id=context.id))
    assert found.digests == set()
    await storage.write(lambda connection: delete_rows(connection, context.id, [second.id]))
    await storage.write(partial(_delete_orphans, context_id=context.id, found=found))
    assert await count(storage) == (1, 1)
    await sweep_files(storage)
    assert await count(storage) == (0, 0)


async def test_on_postgres_it_is_waited_for_who_stores_at_this_moment(postgres_url):
    async with Storage.open(postgres_url, limits=PATIENT) as here, Storage.open(postgres_url, limits=PATIENT) as there:
        context = await chat_with(here, PICTURE)
        await here.write(lambda connection: delete_rows(connection, context.id))
        loop, is_stored, may_commit = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def store(connection):
            from botservice.core.messages import Role
            from botservice.history.queries import insert_message
            from botservice.history.rows import NewMessage

            new = NewMessage(Role.USER, "see", there.now(), attachments=(PICTURE,))
            insert_message(connection, context.id, new)
            connection.exec_driver_sql("SELECT 1")  # what is queued is sent
            loop.call_soon_threadsafe(is_stored.set)
            asyncio.run_coroutine_threadsafe(may_commit.wait(), loop).result(30)

        storing = asyncio.create_task(there.write(store))
        async with asyncio.timeout(60):
            await is_stored.wait()
            found = await here.read(partial(_find_orphans, context_id=context.id))
            assert len(found.digests) == 1
            deleting = asyncio.create_task(here.write(partial(_delete_orphans, context_id=context.id, found=found)))
            await until_somebody_waits_for_a_lock(there)
            may_commit.set()
            await asyncio.gather(storing, deleting)
        assert await count(here) == (1, 0)


async def until_somebody_waits_for_a_lock(storage: Storage) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not await storage.read(lambda connection: connection.exec_driver_sql(waiting).scalar_one()):  # noqa: ASYNC110 - a database tells nobody
        await asyncio.sleep(0.01)
