import copy
import json
import math
import pickle
import subprocess
import sys
from collections import OrderedDict, deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from botservice.conversation.field_codec import FrozenDict, FrozenList, decode, dumps, encode, freeze, loads
from botservice.conversation.field_values import StepError, Timing
from botservice.core.errors import BotServiceError, InvalidField
from botservice.core.messages import Attachment, Role, TokenUsage, ToolCall
from tests.conversation.strategies import values

NAIVE = datetime(2025, 1, 1, 12)  # noqa: DTZ001 - what this is about


def through_json(value):
    return decode(loads(dumps(encode(freeze(value)))))


def exact(value):
    """What distinguishes values that are equal: 1 and True, two offsets of one moment, 0.0 and -0.0."""
    if isinstance(value, dict):
        return {key: exact(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [exact(element) for element in value]
    if isinstance(value, float):
        return float, repr(value)
    fold = value.fold if isinstance(value, datetime) else None
    if not isinstance(value, Attachment | ToolCall) and isinstance(value, int) and not isinstance(value, bool):
        return int, value
    return type(value), fold, repr(value), value


@given(values)
def test_every_value_comes_back_exactly(value):
    frozen = freeze(value)
    assert exact(through_json(value)) == exact(frozen)
    assert [freeze(frozen)] == [frozen]


@given(values)
def test_the_json_is_ascii_and_strict(value):
    text = dumps(encode(freeze(value)))
    assert text.isascii()
    json.loads(text, parse_constant=pytest.fail)


@given(values)
def test_a_frozen_value_equals_the_plain_one(value):
    frozen = freeze(value)
    if isinstance(value, list | dict):
        assert isinstance(frozen, tuple | dict)
        assert frozen == value or "nan" in repr(value) or "Timing" in repr(value) or "datetime" in repr(value)


@given(values)
def test_frozen_values_can_be_copied_and_pickled(value):
    frozen = freeze(value)
    assert exact(copy.deepcopy(frozen)) == exact(frozen)
    assert exact(pickle.loads(pickle.dumps(frozen))) == exact(frozen)
    assert exact(copy.copy(frozen)) == exact(frozen)


def test_strings_that_look_like_json_stay_strings():
    for text in ("[1, 2]", '{"a": 1}', "null", "1", '{"$bytes": "eA=="}'):
        assert through_json(text) == text


def test_a_users_dict_with_dollar_keys_comes_back():
    for value in ({"$bytes": "eA=="}, {"$dict": []}, {"$": 1, "a": 2}, {"a": {"$match": {"$in": [1]}}}):
        assert through_json(value) == value


def test_halves_of_characters_do_not_merge():
    split = "\ud83d\ude00"
    assert through_json(split) == split
    assert through_json({split: [split]}) == {split: [split]}
    assert through_json("\ud83d") == "\ud83d"
    assert through_json("a\0b") == "a\0b"


def test_numbers_come_back_exactly_whatever_their_size():
    for number in (2**53 + 1, -(2**64), 10**5000, -(10**5000)):
        assert through_json(number) == number
    assert math.isnan(through_json(math.nan))
    assert through_json([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert math.copysign(1, through_json(-0.0)) == -1
    assert through_json([True, 1, 1.0, False]) == [True, 1, 1.0, False]
    assert [type(each) for each in through_json([True, 1, 1.0])] == [bool, int, float]


def test_all_nan_are_equal_so_that_equal_memories_are():
    assert freeze([float("nan")]) == through_json([math.nan])


def test_an_aware_datetime_keeps_its_moment_and_offset():
    berlin = datetime(2025, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    frozen = freeze(berlin)
    assert frozen == berlin
    assert frozen.utcoffset() == timedelta(hours=2)
    assert through_json(frozen) == frozen
    assert freeze(datetime(2025, 1, 1, tzinfo=UTC)).tzinfo is UTC


def test_the_second_hour_of_a_clock_set_back_is_another_moment():
    first = datetime(2025, 10, 26, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert freeze(first.replace(fold=1)) - freeze(first) == timedelta(hours=1)


def test_a_naive_datetime_stays_naive():
    assert through_json(NAIVE).tzinfo is None


class Level(IntEnum):
    HIGH = 3


class Colour(StrEnum):
    RED = "red"


def test_members_of_an_enum_become_their_plain_value_at_assignment():
    frozen = freeze([Level.HIGH, Colour.RED, Role.USER, {Colour.RED: 1}])
    assert frozen == [3, "red", "user", {"red": 1}]
    assert [type(each) for each in frozen] == [int, str, str, FrozenDict]
    assert type(next(iter(frozen[3]))) is str


def test_kin_of_lists_and_dicts_are_taken():
    assert freeze(OrderedDict(a=(1, 2))) == {"a": [1, 2]}
    assert isinstance(freeze((1, [2])), FrozenList)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ({1, 2}, "use a list"),
        (Decimal("1.5"), "use str"),
        (date(2025, 1, 1), "datetime"),
        (Path("x"), "use str"),
        (ValueError("boom"), "StepError.of"),
        (bytearray(b"x"), "bytes"),
        (deque([1]), "plain values"),
        (object(), "plain values"),
        ({1: "x"}, "str(key)"),
        (ToolCall("1", "x", {"a": {1, 2}}), "use a list"),
        ([{"a": [{1}]}], "use a list"),
    ],
)
def test_anything_else_is_refused_with_field_type_and_remedy(value, remedy):
    with pytest.raises(InvalidField, match="'colours'") as caught:
        freeze(value, "colours")
    assert remedy in str(caught.value)
    assert "boom" not in str(caught.value)


def test_what_holds_itself_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InvalidField, match="100 levels"):
        freeze(loop)


def test_levels_do_not_add_up_over_assignments():
    value = freeze({"a": 1})
    for _ in range(99):
        value = freeze({"before": value})
    with pytest.raises(InvalidField, match="100 levels"):
        freeze({"before": value})


def test_the_deepest_value_that_is_taken_can_be_stored():
    value: object = "x"
    for _ in range(99):
        value = {"$a": value}
    assert through_json(value) == value


def test_a_frozen_dict_says_what_to_do_instead():
    value = freeze({"a": {"b": 1}})
    changes = [
        lambda: value.update(a=2),
        lambda: value["a"].pop("b"),
        lambda: value.setdefault("c", 1),
        value.clear,
        value.popitem,
        lambda: value.__setitem__("a", 1),
        lambda: value.__delitem__("a"),
        lambda: value.__ior__({"a": 1}),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="assign the whole field"):
            change()
    assert value == {"a": {"b": 1}}
    assert {**value, "c": 1} == {"a": {"b": 1}, "c": 1}
    assert type(value.copy()) is dict


def test_a_frozen_dict_freezes_what_it_is_given():
    assert FrozenDict(a=[1])["a"] == (1,)
    with pytest.raises(InvalidField):
        FrozenDict({"a": {1}})
    with pytest.raises(InvalidField):
        FrozenList([{1}])


def test_a_list_reads_back_as_a_tuple_that_equals_both():
    value = freeze([1, [2]])
    assert isinstance(value, tuple)
    assert value == [1, [2]]
    assert value == (1, (2,))
    assert [1, [2]] == value  # noqa: SIM300 - both directions
    assert value != [1, [3]]
    assert value != "x"
    assert hash(value) == hash((1, (2,)))
    with pytest.raises(AttributeError):
        value.append(3)


def test_the_arguments_of_a_kept_call_do_not_follow_the_callers_dict():
    arguments = {"a": [1]}
    kept = freeze(ToolCall("1", "add", arguments))
    arguments["a"].append(2)
    assert kept.arguments == {"a": [1]}
    assert through_json(kept) == kept


def test_a_value_of_a_newer_version_says_so():
    with pytest.raises(InvalidField, match="newer version"):
        decode({"$vector": [1]})
    with pytest.raises(InvalidField, match="newer version"):
        decode({"$step_error": {"type": "x", "message": "y", "traceback": "z"}})


@pytest.mark.parametrize(
    "data",
    [
        {"$bytes": "?"},
        {"$bytes": 1},
        {"$datetime": "yesterday"},
        {"$int": "x"},
        {"$dict": [[1]]},
        {"$attachment": {"mime_type": "x"}},
        {"$step_error": {}},
        {"$step_error": 3},
        {"$timing": {"start_time": "x"}},
        {"$step_error": {"type": "x", "message": "y"}, "more": 1},
    ],
)
def test_a_damaged_value_is_refused_clearly(data):
    with pytest.raises(InvalidField):
        decode(data)


def test_what_is_not_json_is_refused_clearly():
    for text in ("", "{", b"\xff", "[" * 100_000):
        with pytest.raises(InvalidField):
            loads(text)


def test_timing_knows_its_duration():
    start = datetime(2025, 1, 1, tzinfo=UTC)
    assert Timing(start).duration_seconds is None
    assert Timing(start, start + timedelta(seconds=1.5)).duration_seconds == 1.5
    with pytest.raises(InvalidField):
        Timing(start, NAIVE)
    with pytest.raises(InvalidField):
        Timing(1.5)


def test_token_usage_adds_up():
    assert TokenUsage(2, 3).total_tokens == 5


def test_an_error_that_cannot_speak_is_still_recorded():
    class SilentError(Exception):
        def __str__(self):
            raise ValueError

    assert StepError.of(SilentError()).type == "SilentError"
    assert StepError.of(BotServiceError("no")).message == "no"


def test_importing_the_memory_does_not_import_a_terminal():
    modules = "botservice.conversation.steps, botservice.conversation.agent_memory"
    code = f"import {modules}, sys; sys.exit('rich.console' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2]).returncode == 0
