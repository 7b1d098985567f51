"""Records of the agent's work as 0.17.0 kept them, as they are kept since 1.0. See `conversion`.

In 0.17.0 a step's record had its numbers in short, and a prompt's messages stood by their position in lists.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, repeat
from typing import Any, Final

_SECTIONS: Final = (
    *("system", "notes", "window", "earlier", "person", "waiting", "looking_at", "found", "question", "steps"),
)
_MOMENTS: Final = ("began", "asked", "first_text", "ended")
_TIMES: Final = ("start_time", "end_time")
_PARTS: Final = ("max_tokens", "found", "left_out", "tools", "coverage", "by_meaning")
_REASONS: Final = ("stop", "length", "refusal", "tool_calls")
_TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_UNUSUAL: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_MILLISECONDS: Final = 1_000
_DECIMALS: Final = 10_000  # of scores
_FORMS: Final = (
    *("as_is", "as_said", "as_said_in_group", "as_record", "as_said_by_namesake", "as_record_of_namesake"),
    *("as_newer_record", "as_newer_record_of_namesake"),
)
_FIRST_FORMS: Final = ("as_is", "as_said", "as_said")  # of the first releases; nearest to what they showed
_FACTS: Final = "prompt_facts"
_USAGE: Final = "token_usage"
_MORE: Final = "$usage_more"


def convert_step(text: str) -> str:
    """Return a step's record as it is kept now."""
    return _dumps(_join_usage(_lengthen_facts(json.loads(text))))


def convert_log(rows: Iterable[tuple[int, str]]) -> tuple[str, Mapping[int, int]]:
    """Return a turn's prompt log as one row's content, and the new place of each message by its old one.

    Args:
        rows: Their first places and contents, in the order of the places.
    """
    content: list[Any] = []
    places: dict[int, int] = {}
    for first, row in rows:
        for place, entry in enumerate(_entries(json.loads(row)), first):
            if place in places:
                continue
            places[place] = len(places)
            if content and "shown" in entry and content[-1].get("shown") == entry["shown"]:
                content[-1]["ids"] += entry["ids"]
            else:
                content.append(entry)
    return _dumps(content), places


def convert_prompt(ranges: Sequence[Sequence[int]], places: Mapping[int, int]) -> list[int]:
    """Return where the messages of a step's prompt stand now; those that are gone from the log are left out."""
    return [places[place] for first, end in ranges for place in range(first, end) if place in places]


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _entries(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if "sent" in row:
        for each in row["sent"]:
            if isinstance(each, int):
                yield {"system": True}
            elif isinstance(each, Mapping):
                yield {"message": each}
            elif isinstance(each[0], int):
                yield from (_shown(_FORMS, each[0], [number]) for number in _lengthen(each[1:]))
            else:
                yield {"role": each[0], "parts": [_part(part) for part in each[1:]]}
    elif "messages" in row:
        forms = row.get("ways", {})
        for place, (number, role, prefix) in enumerate(row["messages"]):
            yield _prefixed(number, role, prefix, forms.get(str(place), 0))
    elif "message" in row:
        yield _prefixed(row["message"], row["role"], row["prefix"], row.get("way", 0))
    else:
        yield {"message": row["literal"]}


def _part(part: Any) -> Any:
    return _shown(_FORMS, part[0], _lengthen(part[1:])) if isinstance(part, list) else part


def _prefixed(number: int, role: str, prefix: str, form: int) -> dict[str, Any]:
    return {"role": role, "parts": [*([prefix] if prefix else []), _shown(_FIRST_FORMS, form, [number])]}


def _shown(forms: Sequence[str], form: int, ids: Sequence[int]) -> dict[str, Any]:
    return {"shown": forms[form], "ids": list(ids)}


def _lengthen(short: Iterable[int | list[int]]) -> list[int]:
    """Return numbers that were kept as the steps between them; [n, d] stands for n times d."""
    return list(accumulate(chain.from_iterable(repeat(*reversed(e)) if isinstance(e, list) else (e,) for e in short)))


def _join_usage(value: Any) -> Any:
    """Return a value with every usage whole: its newer numbers stood next to it, also in the steps of sub-agents."""
    if isinstance(value, list):
        return [_join_usage(each) for each in value]
    if not isinstance(value, dict):
        return value
    pairs = value.get("$dict")
    if isinstance(pairs, list) and any(key == _MORE for key, _ in pairs):
        joined = _join_usage({key: each for key, each in pairs if isinstance(key, str)})
        is_plain = len(joined) == len(pairs) - 1 and not any(key.startswith("$") for key in joined)
        return joined if is_plain else {"$dict": [[key, joined[key]] for key in joined]}
    value = {key: _join_usage(each) for key, each in value.items()}
    usage, newer = value.get(_USAGE), value.get(_MORE)
    if not (isinstance(usage, dict) and isinstance(usage.get("$token_usage"), dict) and isinstance(newer, dict)):
        return value
    rest = {name: each for name, each in value.items() if name != _MORE}
    return {**rest, _USAGE: {"$token_usage": {**usage["$token_usage"], **newer}}}


def _lengthen_facts(record: Any) -> Any:
    """Return a record with the facts of its prompt and its call as `MemoryItem.to_dict` gives them."""
    facts = record.get(_FACTS) if isinstance(record, dict) else None
    if not isinstance(facts, dict) or not isinstance(facts.get("short"), dict):
        return record
    rest = {name: value for name, value in record.items() if name != _FACTS}
    short = facts["short"]
    try:
        return rest | {name: read(short[tag]) for name, (tag, read) in _READERS.items() if tag in short}
    except _UNUSUAL:
        return record


def _read_sections(counts: Sequence[int]) -> dict[str, list[int]]:
    ends = _lengthen(list(counts))
    return {name: [end - count, end] for name, count, end in zip(_SECTIONS, counts, ends, strict=False) if count}


def _read_timing(times: Sequence[int]) -> dict[str, Any]:
    moments = (_EPOCH + each * _MICROSECOND for each in _lengthen(list(times)))
    return {"$timing": {name: {"$datetime": at.isoformat()} for name, at in zip(_TIMES, moments, strict=False)}}


def _read_attempts(attempts: Sequence[Sequence[int | None]]) -> list[dict[str, float]]:
    return [
        {name: at / _MILLISECONDS for name, at in zip(_MOMENTS, each, strict=True) if at is not None}
        for each in attempts
    ]


def _read_prompt_facts(values: Sequence[Any]) -> dict[str, Any]:
    limit, ids, scores, *others = values
    found = [[number, score / _DECIMALS] for number, score in zip(_lengthen(ids), _lengthen(scores), strict=True)]
    return dict(zip(_PARTS, (limit, found, *others), strict=False))


def _read_usage(numbers: Sequence[int]) -> dict[str, Any]:
    return {"$token_usage": dict(zip(_TOKENS, numbers, strict=False))}


def _read_model(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "prompt_sections": ("s", _read_sections),
    "timing": ("t", _read_timing),
    "model_attempts": ("a", _read_attempts),
    _FACTS: ("f", _read_prompt_facts),
    _USAGE: ("u", _read_usage),
    "model": ("m", _read_model),
    "finish_reason": ("r", _REASONS.__getitem__),
}
