"""A step's record as its row keeps it: its numbers in short, and the bytes of files beside it, once per context.

In short are when the step ran, how its prompt was made and sent, and of an answer who gave it, what it took and why it
ended. These facts stand together in the field of the prompt's facts: earlier releases show nothing of what they do not
know there. A record that holds anything else than usual in one of them stays as it is.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from botservice.conversation.field_codec import dumps, lengthen, loads, shorten
from botservice.storage.blobs import digest_of, read_blobs

_BYTES: Final = "$bytes"
_BLOB: Final = "$blob"
_FEWEST_CHARACTERS: Final = 1_024  # of base64; what is shorter stays in its place
_SHORT: Final = "short"
_FACTS: Final = "prompt_facts"
# The places in these lists are stored: what is new comes at the end.
_SECTIONS: Final = (
    *("system", "notes", "window", "earlier", "person", "waiting", "looking_at", "found", "question", "steps"),
)
_MOMENTS: Final = ("began", "asked", "first_text", "ended")
_TIMES: Final = ("start_time", "end_time")
_PARTS: Final = ("max_tokens", "found", "left_out", "tools", "coverage", "by_meaning")
_REASONS: Final = ("stop", "length", "refusal", "tool_calls")
_TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens")
# Of answers alone: earlier releases write other steps anew, without what they do not know.
_OF_ANSWERS: Final = ("token_usage", "finish_reason", "model")
_ANSWER: Final = "final_answer"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_UNUSUAL: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_MILLISECONDS: Final = 1_000
_DECIMALS: Final = 10_000  # of scores


@dataclass(frozen=True, slots=True)
class StepData:
    """A record as JSON text, and the bytes that it names."""

    text: str
    files: Sequence[bytes] = ()


def detach_files(record: dict[str, Any]) -> StepData:
    """Return a record, as `MemoryItem.to_dict` gives it, with its numbers in short and its longer bytes beside it."""
    record = shorten_facts(record)
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
    record = lengthen_facts(loads(text))
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


def shorten_facts(record: dict[str, Any]) -> dict[str, Any]:
    """Return a step's record in short; `lengthen_facts` is the inverse."""
    is_answer = record.get("kind") == _ANSWER
    forms = (name for name in _FORMS if is_answer or name not in _OF_ANSWERS)
    named = {name: record[name] for name in forms if record.get(name) is not None}
    if not named:
        return record
    try:
        short = {_FORMS[name][0]: _FORMS[name][1](value) for name, value in named.items()}
    except _UNUSUAL:
        return record
    rest = {name: value for name, value in record.items() if name not in named}
    return {**rest, _FACTS: {_SHORT: short}}


def lengthen_facts(record: Any) -> Any:
    """Return the record that `shorten_facts` was given; any other record is returned unchanged."""
    facts = record.get(_FACTS) if isinstance(record, dict) else None
    if not isinstance(facts, dict) or not isinstance(facts.get(_SHORT), dict):
        return record
    rest = {name: value for name, value in record.items() if name != _FACTS}
    short = facts[_SHORT]
    try:
        return rest | {name: read(short[tag]) for name, (tag, _, read) in _FORMS.items() if tag in short}
    except _UNUSUAL:
        return record


def _shorten_sections(sections: Mapping[str, Sequence[int]]) -> list[int]:
    """Return how many messages each section has, without those at the end that have none."""
    counts: list[int] = []
    end = 0
    for name, (first, after) in sections.items():
        _require(first == end < after)
        counts += [0] * (_SECTIONS.index(name) - len(counts)) + [after - first]
        _require(len(counts) == _SECTIONS.index(name) + 1)
        end = after
    return counts


def _read_sections(counts: Sequence[int]) -> dict[str, list[int]]:
    ends = lengthen(list(counts))
    return {name: [end - count, end] for name, count, end in zip(_SECTIONS, counts, ends, strict=False) if count}


def _shorten_timing(timing: Mapping[str, Any]) -> list[int]:
    """Return the microseconds of the beginning, and how many the end is later."""
    [(tag, times)] = timing.items()
    _require(tag == "$timing" and list(times) == list(_TIMES[: len(times)]))
    return list(map(_microseconds, times.values())) if len(times) == 1 else _began_and_took(*times.values())


def _began_and_took(start: Mapping[str, str], end: Mapping[str, str]) -> list[int]:
    began = _microseconds(start)
    return [began, _microseconds(end) - began]


def _microseconds(time: Mapping[str, str]) -> int:
    [(tag, text)] = time.items()
    _require(tag == "$datetime" and text.endswith("+00:00"))
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


def _read_timing(times: Sequence[int]) -> dict[str, Any]:
    moments = (_EPOCH + each * _MICROSECOND for each in lengthen(list(times)))
    return {"$timing": {name: {"$datetime": at.isoformat()} for name, at in zip(_TIMES, moments, strict=False)}}


def _shorten_attempts(attempts: Sequence[Mapping[str, float]]) -> list[list[int | None]]:
    """Return the milliseconds of each attempt's moments."""
    for each in attempts:
        _require(each.keys() <= set(_MOMENTS))
    _whole([at for each in attempts for at in each.values()], _MILLISECONDS)
    return [[None if name not in each else round(each[name] * _MILLISECONDS) for name in _MOMENTS] for each in attempts]


def _read_attempts(attempts: Sequence[Sequence[int | None]]) -> list[dict[str, float]]:
    return [
        {name: at / _MILLISECONDS for name, at in zip(_MOMENTS, each, strict=True) if at is not None}
        for each in attempts
    ]


def _shorten_prompt_facts(facts: Mapping[str, Any]) -> list[Any]:
    """Return the values of facts; of what was found the ids, and then the scores."""
    _require(list(facts) == list(_PARTS[: len(facts)]) and len(facts) > _PARTS.index("found"))
    limit, found, *others = facts.values()
    ids, scores = [number for number, _ in found], [score for _, score in found]
    _require(all(type(number) is int for number in ids))
    return [limit, shorten(ids), shorten(_whole(scores, _DECIMALS)), *others]


def _read_prompt_facts(values: Sequence[Any]) -> dict[str, Any]:
    limit, ids, scores, *others = values
    found = [[number, score / _DECIMALS] for number, score in zip(lengthen(ids), lengthen(scores), strict=True)]
    return dict(zip(_PARTS, (limit, found, *others), strict=False))


def _shorten_usage(usage: Mapping[str, Mapping[str, int]]) -> list[int]:
    [(tag, numbers)] = usage.items()
    _require(tag == "$token_usage" and list(numbers) == list(_TOKENS[: len(numbers)]))
    return list(numbers.values())


def _read_usage(numbers: Sequence[int]) -> dict[str, Any]:
    return {"$token_usage": dict(zip(_TOKENS, numbers, strict=False))}


def _as_text(value: Any) -> str:
    _require(isinstance(value, str))
    return str(value)


def _whole(numbers: Sequence[float], factor: int) -> list[int]:
    """Return how many parts of one each number is, where it is a whole number of them."""
    whole = [round(number * factor) for number in numbers]
    _require([each / factor for each in whole] == numbers)
    return whole


def _require(is_usual: bool) -> None:  # noqa: FBT001 - it is all that it is told
    if not is_usual:
        raise ValueError("it is not of the usual shape")


_FORMS: Final[Mapping[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "prompt_sections": ("s", _shorten_sections, _read_sections),
    "timing": ("t", _shorten_timing, _read_timing),
    "model_attempts": ("a", _shorten_attempts, _read_attempts),
    _FACTS: ("f", _shorten_prompt_facts, _read_prompt_facts),
    "token_usage": ("u", _shorten_usage, _read_usage),
    "model": ("m", _as_text, _as_text),
    "finish_reason": ("r", _REASONS.index, _REASONS.__getitem__),
}
