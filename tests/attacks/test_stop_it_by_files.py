"""Stop it, by files: whoever sends what takes for ever to read stops nobody but themselves."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest
from attacks.hostile_files import empty_for_ever, endless_memory, endless_work, pdf, plain
from attacks.telegram_bot import running
from sqlalchemy import select, update
from standins.bot_api import BotApi

from botservice import Storage
from botservice.agent import document_reader as reader
from botservice.agent import document_reader_program as program
from botservice.agent.document_reader import PageLimits, PdfReader, TooMuchToRead
from botservice.core.messages import Attachment
from botservice.core.policies import Scope, parse_limits
from botservice.people.budgets import Budgets
from botservice.storage.tables.conversations import events, messages
from botservice.turns.unanswered_turns import unread_text
from transports.common.documents import DocumentReaders, FileText, KeptTexts, MemoryLimit

SMALL = PageLimits(cpu_seconds=1)
PATIENCE_SECONDS = 120


class Ears:
    """A transcriber that counts what it hears."""

    def __init__(self) -> None:
        self.heard = 0

    async def transcribe(self, attachment: Attachment) -> str:
        self.heard += 1
        return "words"


@pytest.fixture
def api() -> Iterator[BotApi]:
    with BotApi.running() as server:
        server.add_private_chat(42)
        yield server


@pytest.mark.parametrize("make", [endless_work, endless_memory, empty_for_ever])
@pytest.mark.slow
async def test_a_file_that_takes_too_much_is_cut_off(make: Callable[[], bytes]) -> None:
    data = make()
    assert len(data) < 200_000
    with pytest.raises(TooMuchToRead):
        await PdfReader(SMALL)(data, 1000)


@pytest.mark.slow
async def test_what_means_no_harm_is_read_as_far_as_it_is_wanted() -> None:
    read = PdfReader()
    assert await read(plain("Hello"), 1000) == "Hello"
    assert len(await read(pdf(b"BT /F1 12 Tf 72 720 Td (abcdefgh) Tj ET", pages=50), 100)) == 100
    with pytest.raises(ValueError, match="cannot be read"):
        await read(b"no pdf", 1000)


def test_a_reader_ends_with_whoever_asked() -> None:
    limits = {**asdict(PageLimits(cpu_seconds=60)), "kind": "pdf", "max_characters": 1000}
    data = endless_work()
    process = subprocess.Popen([sys.executable, "-P", program.__file__], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(json.dumps(limits | {"size_bytes": len(data)}).encode() + b"\n" + data)
    process.stdin.close()  # what the system does when a process dies
    assert process.wait(PATIENCE_SECONDS) == 2


def test_a_reader_gets_none_of_the_services_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:secret@host/db")
    assert "secret" not in json.dumps(reader._environment())
    assert set(reader._environment()) <= {*reader._KEPT_ENVIRONMENT, "MALLOC_ARENA_MAX", "PYTHONDONTWRITEBYTECODE"}


async def test_a_few_files_are_read_at_once_and_the_others_wait() -> None:
    class Counted(PdfReader):
        at_once = most = 0

        async def _run(self, data: bytes, max_characters: int) -> bytes:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            await asyncio.sleep(0)
            self.at_once -= 1
            return b"+x"

    counted = Counted()
    assert await asyncio.gather(*(counted(b"", 10) for _ in range(40))) == ["x"] * 40
    assert counted.most == 2


async def test_files_are_held_as_far_as_there_is_room() -> None:
    limit, held, most = MemoryLimit(100), 0, 0

    async def hold(size: int) -> None:
        nonlocal held, most
        async with limit.taking(size):
            held += min(size, 100)
            most = max(most, held)
            await asyncio.sleep(0)
            held -= min(size, 100)

    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*(hold(size) for size in [60, 60, 10, 500, 30, 30, 30] * 20))
    assert most <= 100
    waiting = [asyncio.create_task(hold(100)) for _ in range(3)]
    async with limit.taking(100):
        await asyncio.sleep(0)
        waiting[1].cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*waiting, return_exceptions=True)
        await hold(100)


async def test_what_was_read_is_not_read_again_for_an_hour() -> None:
    now, reads = [0.0], []
    kept = KeptTexts(max_characters=10, clock=lambda: now[0])

    async def read(text: str = "text", *, is_for_good: bool = True) -> FileText:
        reads.append(text)
        await asyncio.sleep(0)
        return FileText(text, is_for_good=is_for_good)

    assert {each.text for each in await asyncio.gather(*(kept.once(("t", "1"), read) for _ in range(5)))} == {"text"}
    assert len(reads) == 1
    now[0] = 3601.0
    await kept.once(("t", "1"), read)
    await kept.once(("t", "2"), lambda: read("x" * 9))
    await kept.once(("t", "1"), read)
    assert reads == ["text", "text", "x" * 9, "text"], "it grew old, and had to make room"
    for _ in range(2):
        await kept.once(("t", "3"), lambda: read("down", is_for_good=False))
    assert reads[4:] == ["down", "down"]
    assert (await kept.once(("t", "4"), lambda: read("x" * 11))).text == "x" * 11, "more than there is room for"


@pytest.mark.slow
async def test_the_sender_is_told_in_one_sentence_and_the_file_is_read_once(api: BotApi, sqlite_storage) -> None:
    reading = DocumentReaders(read_pdf=PdfReader(SMALL))
    async with running(api, sqlite_storage, reading=reading):
        sent = api.person_sends_document(endless_work(), chat_id=42, name="tax [x](http://a.example).pdf")
        told = await api.messages(42, 2)
    assert told[0].text == unread_text(["tax [x](http://a.example).pdf"], "en").plain
    assert [each["type"] for each in told[0].entities] == ["code"]
    assert "it was not read, because reading it takes too much" in told[1].text
    assert sent.message_id


def test_more_than_three_files_are_not_all_named() -> None:
    assert unread_text(["a", "b", "c", "d"], "xx").plain.count(", ") >= 3


async def test_a_file_that_was_read_when_the_process_ended_is_left_alone(api: BotApi, sqlite_storage: Storage) -> None:
    reading = DocumentReaders(read_pdf=PdfReader())
    api.person_sends_document(plain("Hello"), chat_id=42, name="a.pdf")
    api.person_sends_document(plain("World"), chat_id=42, name="b.pdf")

    async def cut_off(event_id: int) -> None:
        await sqlite_storage.write(
            lambda connection: connection.execute(
                update(events).where(events.c.id == event_id).values(reading_at=sqlite_storage.now())
            )
        )

    async with running(api, sqlite_storage, reading=DocumentReaders(read_pdf=_never), grace_seconds=0.0):
        first = await _until_stored(sqlite_storage)
    await cut_off(first)
    async with running(api, sqlite_storage, reading=reading):
        told = await api.messages(42, 3)
    assert told[0].text == unread_text(["a.pdf"], "en").plain
    assert "Hello" not in told[1].text
    assert "World" in told[2].text
    left = await sqlite_storage.read(lambda connection: connection.execute(select(events.c.reading_at)).scalars().all())
    assert left[1:] == [None], "what ended by itself is not held against anybody"


async def _never(data: bytes, max_characters: int) -> str:
    await asyncio.sleep(3600)
    return ""


async def _until_stored(storage: Storage) -> int:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            rows = await storage.read(
                lambda connection: connection.execute(
                    select(events.c.id, events.c.reading_at).order_by(events.c.id)
                ).all()
            )
            if len(rows) == 2 and rows[0].reading_at is not None:
                return int(rows[0].id)
            await asyncio.sleep(0.01)


async def test_recordings_beyond_a_rate_are_not_heard(api: BotApi, sqlite_storage: Storage) -> None:
    ears = Ears()
    budgets = Budgets({Scope.PERSON: parse_limits("2 messages/minute")})
    async with running(api, sqlite_storage, reading=DocumentReaders(ears), budgets=budgets) as llm:
        for number in range(15):
            api.person_sends_voice(b"OggS%d" % number, chat_id=42)
        await _until_kept(sqlite_storage, 15)
    assert ears.heard == len(llm.prompts) <= 4, "two in a minute, and it may have turned meanwhile"


async def _until_kept(storage: Storage, count: int) -> None:
    kept = select(messages.c.id).where(messages.c.role == "user")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(await storage.read(lambda connection: connection.execute(kept).all())) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_edits_and_replies_do_not_have_a_recording_heard_again(api: BotApi, sqlite_storage: Storage) -> None:
    ears = Ears()
    async with running(api, sqlite_storage, reading=DocumentReaders(ears)):
        sent = api.person_sends_voice(b"OggS", chat_id=42, caption="one")
        await api.messages(42, 1)
        for caption in ("two", "three"):
            api.person_edits(42, sent.message_id, caption)
        api.person_says("and?", chat_id=42, reply_to=sent.message_id)
        await api.messages(42, 2)
    assert ears.heard == 1
