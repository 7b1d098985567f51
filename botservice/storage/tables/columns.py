"""What the tables have in common: column types that read the same on both databases, and the names of keys."""

import json
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Column, Dialect, ForeignKey, Integer, LargeBinary, MetaData, Text
from sqlalchemy.types import TypeDecorator

from botservice.core.messages import storable
from botservice.telemetry.logs import redact

# SQLite makes only INTEGER PRIMARY KEY an alias of its row id.
Id = BigInteger().with_variant(Integer, "sqlite")

_LONGEST_REASON = 2_000  # characters
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_JSON = json.JSONEncoder(separators=(",", ":"))


def context_id(*, is_key: bool = False, index: bool = False) -> Column[int]:
    """Return the column of the context that a row belongs to, and goes with."""
    refers = ForeignKey("contexts.id", ondelete="CASCADE")
    if is_key:
        return Column("context_id", Id, refers, primary_key=True, autoincrement=False)
    return Column("context_id", Id, refers, nullable=False, index=index)


class Timestamp(TypeDecorator[datetime]):
    """An aware UTC datetime, kept as whole microseconds since 1970: exact and sortable on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002 - the interface
        """Return value as microseconds; a naive datetime is refused by the subtraction."""
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[int | None], datetime | None]:  # noqa: ARG002 - the interface
        """Return what makes a datetime of stored microseconds: each message that is read has one."""
        return _read_moment


def _read_moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(0, 0, microseconds)


class Reason(TypeDecorator[str]):
    """What an error says, as far as it can be kept: others write it, and the row that tells of it must not fail."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Return value without secrets, and without what no database takes."""
        return None if value is None else storable(redact(value))[:_LONGEST_REASON]


class Json(TypeDecorator[Any]):
    """A JSON value kept as ASCII text, so that NUL and lone surrogates survive on every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Return value as compact JSON."""
        return None if value is None else _JSON.encode(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Any:  # noqa: ARG002 - the interface
        """Return the value that the text stands for."""
        return None if value is None else json.loads(value)


class Places(TypeDecorator[list[int]]):
    """A list of whole numbers kept as text, in which a stretch of followers is written as its ends: `0-41 43`.

    A prompt names the places of all messages before it: written out, the record of a step would grow with every step.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[int] | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Return the text of a list."""
        if value is None:
            return None
        stretches: list[list[int]] = []
        for place in value:
            if stretches and stretches[-1][1] + 1 == place:
                stretches[-1][1] = place
            else:
                stretches.append([place, place])
        return " ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in stretches)

    def process_result_value(self, value: str | None, dialect: Dialect) -> list[int] | None:  # noqa: ARG002 - the interface
        """Return the list that a text stands for."""
        if value is None:
            return None
        ends = [stretch.partition("-") for stretch in value.split()]
        return [place for first, _, last in ends for place in range(int(first), int(last or first) + 1)]


class Compressed(TypeDecorator[str]):
    """A text kept compressed. What records repeat of each other stands in a dictionary that all of them share."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002 - the interface
        """Return value as compressed bytes."""
        return None if value is None else compress(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the interface
        """Return the text that the bytes stand for."""
        return None if value is None else decompress(value)


def compress(text: str) -> bytes:
    """Return a text as a column of `Compressed` texts keeps it."""
    compressor = zlib.compressobj(zdict=DICTIONARY)
    return compressor.compress(text.encode("utf-8", "surrogatepass")) + compressor.flush()


def decompress(data: bytes) -> str:
    """Return the text that `compress` was given."""
    decompressor = zlib.decompressobj(zdict=DICTIONARY)
    return (decompressor.decompress(data) + decompressor.flush()).decode("utf-8", "surrogatepass")


# Stored bytes are read with exactly this text: it never changes. A better one would be a second one, told apart by its
# checksum, which stands in what was compressed with it (RFC 1950, 2.2). What is most frequent stands last.
DICTIONARY = (
    b'","planning","system_prompt":"","kind":"failed","version":1,"error":{"$step_error":{"type":"","message":"'
    b'"model_items":[{"type":"reasoning","encrypted_content":"","summary":[],"sub_runs":[{"name":"","call_id":"'
    b'{"role":"assistant","content":null,"tool_calls":[{"id":"call_","type":"function","function":{"name":"","arguments":'
    b'"{\\"}}]}},{"message":{"role":"tool","tool_call_id":"call_","content":"'
    b'{"kind":"task","version":1,"task":"'
    b'"observations":"","tool_results":[{"$tool_result":{"call_id":"call_","text":"","is_error":false,"duration_seconds":0.'
    b'{"kind":"action","version":1,"step_number":1,"tool_calls":[{"$tool_call":{"id":"call_","name":"","arguments":{"'
    b'[{"system":true},{"shown":"as_said_in_group","ids":[{"shown":"as_said","ids":[],{"shown":"as_is","ids":[1'
    b'{"role":"user","parts":["",{"$text":""},{"shown":"as_newer_record","ids":[{"shown":"as_record","ids":['
    b'{"kind":"final_answer","version":1,"output":"","is_final_answer":true,'
    b'"model":"gpt-","finish_reason":"tool_calls","finish_reason":"stop",'
    b'"prompt_sections":{"system":[0,1],"notes":[1,2],"window":[1,21],"earlier":[,"person":[,"waiting":[,"looking_at":[,'
    b'"found":[21,22],"question":[22,23],"steps":[23,24]},'
    b'"timing":{"$timing":{"start_time":{"$datetime":"2026-01-01T00:00:00.000000+00:00"},'
    b'"end_time":{"$datetime":"2026-01-01T00:00:00.000000+00:00"}}},'
    b'"model_attempts":[{"began":0.0,"asked":0.01,"first_text":0.1,"ended":0.5}],'
    b'"prompt_facts":{"max_tokens":100000,"found":[[1,2.0]],"left_out":{},"tools":[""],"coverage":0.0,"by_meaning":false},'
    b'"token_usage":{"$token_usage":{"input_tokens":1,"output_tokens":1,"cached_tokens":0,"reasoning_tokens":0}}'
)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
