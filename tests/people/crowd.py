"""A messenger on which several people write, privately and in groups; and a look at every byte that is kept."""

import contextlib
import json
import re
import zlib
from pathlib import Path

from turns.messenger import Messenger, Office, office

from botservice import Attachment, Author, InboundMessage, Storage
from botservice.storage.tables.columns import DICTIONARY, compress, metadata
from botservice.turns.commands import parse_command
from botservice.turns.turn import InboundEvent

_HEADER_BYTES = 6  # of what was compressed with the dictionary (RFC 1950, 2.2)
_MOST_BYTES = 100_000
_PIECE_BYTES = 64
PNG = b"\x89PNG\r\n\x1a\n"


class Crowd(Messenger):
    """Events are JSON: who, name, text, file, is_group."""

    def __init__(self) -> None:
        super().__init__()
        self._order = 0
        self._count: dict[str, int] = {}

    async def read(self, event):
        said = json.loads(event.raw)
        files = (Attachment("image/png", said["file"], data=PNG + said["file"].encode()),) if said.get("file") else ()
        return InboundMessage(
            said["text"],
            Author("messenger", said["who"], said["name"]),
            files,
            external_id=event.key,
            command=parse_command(said["text"]),
            is_private=not said["is_group"],
        )

    def plan(self, answer, events):
        files = [each.name for each in answer.attachments]
        return [{"text": answer.text, "files": files}] if answer.text or files else []

    async def say(self, bot: Office, who: str, text: str, *, chat: str, name: str | None = None, file=None, waits=True):
        """Write a message, and wait until it is answered."""
        self._order += 1
        said = {"who": who, "name": name or who, "text": text, "file": file, "is_group": chat.startswith("group")}
        keys = {"transport": "messenger", "chat_id": chat}
        event = InboundEvent(f"{chat}:{self._order}", keys, self._order, json.dumps(said).encode())
        await bot.inbox.accept(self.name, [event])
        self._count[chat] = self._count.get(chat, 0) + 1
        wanted = self._count[chat]
        if waits:
            await self.until(lambda: len(self.visible.get(chat, [])) >= wanted)
            return self.visible[chat][wanted - 1]
        return None


def crowded(storage, script, **options):
    """Run a worker for a crowd; returns what `office` does, with a Crowd as its messenger."""
    return office(storage, script, messenger=Crowd(), **options)


async def find_bytes(storage: Storage, marker: str) -> list[str]:
    """Return where a marker is kept: in files of SQLite byte by byte, in rows of Postgres table by table."""
    found = []
    if storage.where.path is not None:
        files = sorted(Path(storage.where.path).parent.glob(f"{Path(storage.where.path).name}*"))
        found = [each.name for each in files if _holds(each.read_bytes(), marker.encode())]
    return found + await find_rows(storage, marker)


def _holds(data: bytes, marker: bytes) -> bool:
    """Return whether a file has a marker as it is, or in anything that is compressed there, deleted or not."""
    places = [found.start() for found in re.finditer(re.escape(compress("")[:_HEADER_BYTES]), data)]
    return marker in data or any(marker in _decompress_some(data[place : place + _MOST_BYTES]) for place in places)


def _decompress_some(data: bytes) -> bytes:
    """Return what was compressed, as far as it stands in one piece."""
    decompressor, found = zlib.decompressobj(zdict=DICTIONARY), b""
    with contextlib.suppress(zlib.error):
        for place in range(0, len(data), _PIECE_BYTES):
            found += decompressor.decompress(data[place : place + _PIECE_BYTES])
    return found


async def find_rows(storage: Storage, marker: str) -> list[str]:
    """Return the tables that have a marker in their rows."""
    return [name for name, text in (await storage.read(rows_of)).items() if marker in text]


def rows_of(connection):
    rows = {}
    for table in metadata.sorted_tables:
        parts = []
        for row in connection.execute(table.select()).mappings():
            parts.extend(v.decode("latin-1") if isinstance(v, bytes) else str(v) for v in map(_plain, row.values()))
        rows[table.name] = "\n".join(parts)
    return rows


def _plain(value):
    return bytes(value) if isinstance(value, memoryview) else value
