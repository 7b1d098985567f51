"""A step's record as its row keeps it: the bytes of files lie beside it, once per context."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.conversation.field_codec import dumps, loads
from botservice.storage.blobs import digest_of, read_blobs
from botservice.storage.database import Connection

_BYTES: Final = "$bytes"
_BLOB: Final = "$blob"
_FEWEST_CHARACTERS: Final = 1_024  # of base64; what is shorter stays in its place


@dataclass(frozen=True, slots=True)
class StepData:
    """A record as JSON text, and the bytes that it names."""

    text: str
    files: Sequence[bytes] = ()


def detach_files(record: dict[str, Any]) -> StepData:
    """Return a record, as `MemoryItem.to_dict` gives it, with its longer bytes beside it."""
    text = dumps(record)
    if f'"{_BYTES}":' not in text:
        return StepData(text)
    files: list[bytes] = []
    return StepData(dumps(_detached(record, files)), files)


def attach_files(connection: Connection, context_id: int, texts: Sequence[str]) -> list[Any]:
    """Return the records that `detach_files` was given."""
    digests: set[str] = set()
    records = [_parsed(text, digests) for text in texts]
    if not digests:
        return records
    files = read_blobs(connection, context_id, digests)
    return [_attached(record, files) for record in records]


def _parsed(text: str, digests: set[str]) -> Any:
    record = loads(text)
    if f'"{_BLOB}":' in text:
        _collect(record, digests)
    return record


def _detached(value: Any, files: list[bytes]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_BYTES} and len(value[_BYTES]) >= _FEWEST_CHARACTERS:
            data = base64.b64decode(value[_BYTES])
            files.append(data)
            return {_BLOB: digest_of(data)}
        return {key: _detached(each, files) for key, each in value.items()}
    return [_detached(each, files) for each in value] if isinstance(value, list) else value


def _collect(value: Any, digests: set[str]) -> None:
    if isinstance(value, dict):
        if value.keys() == {_BLOB}:
            digests.add(value[_BLOB])
        for each in value.values():
            _collect(each, digests)
    elif isinstance(value, list):
        for each in value:
            _collect(each, digests)


def _attached(value: Any, files: Mapping[str, bytes]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_BLOB}:
            return {_BYTES: base64.b64encode(files.get(value[_BLOB], b"")).decode("ascii")}
        return {key: _attached(each, files) for key, each in value.items()}
    return [_attached(each, files) for each in value] if isinstance(value, list) else value
