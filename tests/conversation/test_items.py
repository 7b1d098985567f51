import copy
import json
import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.conversation.items import MemoryItem, revision_of
from botservice.conversation.steps import ActionStep, MemoryStep, UnknownStep
from botservice.core.errors import BotServiceError, InvalidField
from botservice.core.messages import Attachment
from tests.conversation.strategies import free_fields, items, names, values


def test_fields_are_free():
    item = MemoryItem(step=1, thought="hm")
    item.action = "click"
    assert (item.step, item.thought, item.action) == (1, "hm", "click")
    assert item.attributes == ["step", "thought", "action"]


def test_fields_belong_to_the_instance():
    MemoryItem(only_mine=1)
    other = MemoryItem(b=2)
    assert other.attributes == ["b"]
    assert not hasattr(other, "only_mine")
    assert other.to_dict() == {"b": 2}


def test_a_missing_key_is_none_to_get_value_and_absent_from_filter():
    item = MemoryItem(a=1, none=None)
    assert item.get_value("b") is None
    assert item.get_values(["b", "a"]) == {"b": None, "a": 1}
    assert item.filter() == {}
    assert item.filter(["a", "b", "none"]) == {"a": 1, "none": None}
    assert item.get_value("to_json") is None
    with pytest.raises(AttributeError, match="no field 'b'"):
        _ = item.b


def test_one_string_instead_of_a_list_of_keys_is_refused():
    for call in (MemoryItem(a=1).filter, MemoryItem(a=1).get_values):
        with pytest.raises(InvalidField, match=r"\['step'\]"):
            call("step")


@pytest.mark.parametrize(
    "name",
    [
        "to_dict",
        "to_json",
        "attributes",
        "filter",
        "get_value",
        "set_value",
        "from_json",
        "_x",
        "__class__",
        "$x",
        "\ud83d\ude00",
    ],
)
def test_a_name_that_is_no_fields_is_refused_everywhere(name):
    item = MemoryItem(a=1)
    for attempt in (
        lambda: item.set_value(name, 1),
        lambda: item.set_values_from_dict({name: 1}),
        lambda: setattr(item, name, 1),
        lambda: MemoryItem(**{name: 1}),
        lambda: MemoryItem.from_dict({name: 1}),
    ):
        with pytest.raises(InvalidField, match="cannot be a field"):
            attempt()
    assert item.to_dict() == {"a": 1}


@pytest.mark.parametrize("name", ["", "a b", "1a", "ﬁeld", "a-b", "größe in m²", "a\0b", "\ud83d", "a.b[0]", "kind"])
def test_any_text_names_a_field_and_comes_back_exactly(name):
    item = MemoryItem(**{name: 1, "version": 2})
    item.set_value(name, [name])
    assert item.get_value(name) == [name] == getattr(item, name)
    assert item.get_values([name, "no such"]) == {name: [name], "no such": None}
    assert MemoryItem.from_json(item.to_json()) == item
    step = ActionStep(1, **{name: "x"} if name else {})
    assert MemoryItem.from_json(step.to_json()) == step
    delattr(item, name)
    assert item.attributes == ["version"]


def test_any_other_name_is_a_field_even_self_and_keywords():
    item = MemoryItem(**{"self": 1, "class": 2, "größe": 3, "first": 4, "kind": "x", "version": "1.0"})
    assert item.größe == 3
    assert item.to_dict() == {"self": 1, "class": 2, "größe": 3, "first": 4, "kind": "x", "version": "1.0"}


def test_several_values_are_set_all_or_none():
    item = MemoryItem(a=1)
    with pytest.raises(InvalidField):
        item.set_values_from_dict({"a": 2, "b": {1}})
    assert item.to_dict() == {"a": 1}
    item.set_values_from_dict({"a": 2, "b": 3})
    assert item.to_dict() == {"a": 2, "b": 3}


def test_a_field_is_deleted_with_del():
    item = MemoryItem(a=1, b=2)
    del item.a
    assert item.attributes == ["b"]
    with pytest.raises(AttributeError):
        del item.a
    with pytest.raises(AttributeError):
        del item.to_dict


def test_a_value_is_frozen_when_it_is_assigned():
    tags = ["a"]
    item = MemoryItem(tags=tags, data={"x": [1]})
    tags.append("b")
    assert item.tags == ["a"]
    assert isinstance(item.tags, tuple)
    with pytest.raises(TypeError):
        item.data["x"] = 2


def test_changing_the_dict_that_was_given_out_changes_no_item():
    item = MemoryItem(a=[1])
    item.to_dict()["a"].append(2)
    item.filter(["a"])["b"] = 1
    item.attributes.append("b")
    assert item.to_dict() == {"a": [1]}


def test_the_revision_grows_with_every_assignment_and_deletion():
    item = MemoryItem(a=1)
    seen = [revision_of(item)]
    item.a = 2
    seen.append(revision_of(item))
    item.set_values_from_dict({"a": 3, "b": 4})
    seen.append(revision_of(item))
    del item.b
    seen.append(revision_of(item))
    assert seen == sorted(set(seen))
    before = revision_of(item)
    with pytest.raises(InvalidField):
        item.a = {1}
    assert revision_of(item) == before


def test_items_are_equal_when_class_and_fields_are():
    assert MemoryItem(a=1, b=2) == MemoryItem(b=2, a=1)
    assert MemoryItem(a=1) != MemoryItem(a=2)
    assert MemoryItem() != MemoryStep()
    assert MemoryItem(a=1) != {"a": 1}
    assert ActionStep(1) != ActionStep(2)


def test_a_list_removes_the_item_that_is_meant():
    listed = [MemoryItem(step=1), MemoryItem(step=2)]
    listed.remove(MemoryItem(step=2))
    assert listed == [MemoryItem(step=1)]


def test_items_are_not_hashable_because_they_change():
    with pytest.raises(TypeError, match="unhashable"):
        hash(MemoryItem())


def test_json_keeps_what_json_alone_does_not():
    item = MemoryItem(when=datetime(2025, 1, 1, tzinfo=UTC), data=b"\xff", image=Attachment("image/png", data=b"x"))
    assert json.loads(item.to_json()) == item.to_dict()
    assert MemoryItem.from_json(item.to_json()) == item


@given(items)
def test_json_is_an_exact_inverse_for_free_fields(item):
    for again in (MemoryItem.from_json(item.to_json()), MemoryItem.from_dict(item.to_dict()), copy.deepcopy(item)):
        assert again == item
        assert type(again) is MemoryItem
        assert again.to_json() == item.to_json()
        assert again.attributes == item.attributes
    assert pickle.loads(pickle.dumps(item)) == item


def test_a_pickled_nan_is_the_same_nan():
    item = MemoryItem(x=float("nan"), y=[float("nan"), {"z": float("nan")}])
    assert pickle.loads(pickle.dumps(item)) == item


@given(free_fields, names, values)
def test_flexible_fields_behave_like_a_dict(fields, name, value):
    item = MemoryItem(**fields)
    assert item.attributes == list(fields)
    assert item.filter(fields) == {key: item.get_value(key) for key in fields}
    item.set_value(name, value)
    assert getattr(item, name) is item.get_value(name)
    assert set(item.attributes) == {*fields, name}
    delattr(item, name)
    assert name not in item.attributes


@given(st.lists(items, max_size=4))
def test_what_one_item_has_never_shows_on_another(several):
    for item in several:
        assert all(
            item.get_value(name) is None for other in several for name in set(other.attributes) - set(item.attributes)
        )


def test_a_plain_item_whose_fields_look_like_a_step_stays_a_plain_item():
    item = MemoryItem(kind="action", version=1, step_number=3)
    again = MemoryItem.from_json(item.to_json())
    assert type(again) is MemoryItem
    assert again == item


def test_what_is_no_record_is_refused():
    for data in ([], None, "x", 3, {1: 2}):
        with pytest.raises(InvalidField):
            MemoryItem.from_dict(data)
    with pytest.raises(InvalidField):
        MemoryItem.from_json("[]")
    with pytest.raises(InvalidField, match="position"):
        MemoryItem(1)


def test_a_record_nested_beyond_reading_is_refused():
    record: object = 1
    for _ in range(5000):
        record = [record]
    with pytest.raises(InvalidField, match="nested"):
        MemoryItem.from_dict({"a": record})


def test_copies_change_independently():
    item = MemoryItem(a=1)
    for again in (copy.copy(item), copy.deepcopy(item), pickle.loads(pickle.dumps(item))):
        again.a = 2
        assert item.a == 1


def test_a_shown_item_is_short_enough_to_read():
    assert repr(MemoryItem(a=1)) == "MemoryItem(a=1)"
    assert len(repr(MemoryItem(a="x" * 10_000))) < 100
    assert "a" in dir(MemoryItem(a=1))


def test_errors_are_the_services_own():
    assert issubclass(InvalidField, BotServiceError)
    assert issubclass(UnknownStep, MemoryStep)


def test_an_item_with_an_enormous_number_can_be_shown():
    assert repr(MemoryItem(a=10**5000, b=1)) == "MemoryItem(a=..., b=1)"
