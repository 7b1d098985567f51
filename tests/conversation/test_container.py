import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.conversation.agent_memory import Memory
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep, TaskStep
from botservice.core.errors import InvalidField
from tests.conversation.strategies import items, steps


@pytest.fixture
def memory():
    memory = Memory()
    memory.add_memory_item(MemoryItem(step=1, thought="a"))
    memory.add_memory_item(MemoryItem(note="without a step"))
    memory.add_memory_item(ActionStep(2, thought="b"))
    return memory


def test_an_empty_memory_answers_every_question():
    memory = Memory()
    assert memory.is_empty()
    assert memory.length == 0
    assert memory.get_latest_item() is None
    assert memory.list_content == []
    assert memory.filter_memory_from_keys(["a"]) == []
    assert memory.filter_memory_from_steps([1]) == []
    assert memory.to_json() == "[]"
    memory.delete_memory_item(1)
    memory.clear()
    assert Memory.from_json("[]") == memory


def test_length_and_latest_follow_what_is_added(memory):
    assert memory.length == 3
    assert not memory.is_empty()
    assert memory.get_latest_item() == ActionStep(2, thought="b")
    assert memory.list_content[0] == {"step": 1, "thought": "a"}


def test_filters_give_dicts(memory):
    assert memory.filter_memory_from_keys(["step", "thought"]) == [
        {"step": 1, "thought": "a"},
        {},
        {"step": 2, "thought": "b"},
    ]
    assert memory.filter_memory_from_steps([1]) == [{"step": 1, "thought": "a"}]
    assert [each["step_number"] for each in memory.filter_memory_from_steps({2, 7})] == [2]
    assert memory.filter_memory_from_steps(iter([1, 2])) == [memory.content[0].to_dict(), memory.content[2].to_dict()]
    assert memory.filter_memory_from_keys(iter(["thought"]))[2] == {"thought": "b"}


def test_items_without_a_step_simply_do_not_match(memory):
    memory.content.append(TaskStep("x"))
    memory.delete_memory_item(2)
    assert memory.length == 3
    memory.delete_memory_item(None)
    memory.delete_memory_item(99)
    assert memory.length == 3
    assert memory.filter_memory_from_steps([None, 99]) == []


def test_deleting_hits_the_item_that_is_meant_among_equal_ones():
    memory = Memory([MemoryItem(step=1, x=0), MemoryItem(step=2, x=0), MemoryItem(step=1, x=0)])
    kept = memory.content[1]
    memory.delete_memory_item(1)
    assert memory.content == [kept]
    assert memory.content[0] is kept


def test_content_is_one_list_for_life(memory):
    content = memory.content
    content.insert(0, MemoryItem(step=0))
    del content[1]
    assert memory.length == 3
    memory.delete_memory_item(0)
    memory.load([MemoryItem(step=5)])
    assert content == [MemoryItem(step=5)]
    memory.content = [MemoryItem(step=6), MemoryItem(step=7)]
    memory.content = memory.content[:1]
    memory.content = memory.content
    assert content == [MemoryItem(step=6)]
    memory.clear()
    assert content == []
    assert memory.content is content


def test_load_copies_the_callers_list():
    mine = [MemoryItem(step=1)]
    memory = Memory()
    memory.load(mine)
    mine.append(MemoryItem(step=2))
    memory.add_memory_item(MemoryItem(step=3))
    assert [item.step for item in mine] == [1, 2]
    assert [item.step for item in memory.content] == [1, 3]


def test_load_takes_records_too(memory):
    again = Memory()
    again.load(memory.list_content)
    assert again == memory
    assert isinstance(again.content[2], ActionStep)


@pytest.mark.parametrize("wrong", [None, "text", 3, ["a"]])
def test_what_is_no_item_is_refused_at_the_border(memory, wrong):
    before = list(memory.content)
    with pytest.raises(InvalidField, match="MemoryItem"):
        memory.add_memory_item(wrong)
    with pytest.raises(InvalidField):
        memory.load([MemoryItem(), wrong])
    assert memory.content == before


@pytest.mark.parametrize("wrong", [None, "text", 3, {"a": 1}])
def test_what_is_no_list_is_not_loaded(memory, wrong):
    with pytest.raises(InvalidField, match="list of items"):
        memory.load(wrong)
    assert memory.length == 3


def test_a_none_put_in_by_hand_counts_as_nothing(memory):
    memory.content.insert(0, None)
    memory.content.append(None)
    assert memory.length == 3
    assert memory.get_latest_item().step == 2
    assert len(memory.list_content) == 3
    assert len(memory.filter_memory_from_keys(["note"])) == 3
    assert len(memory.filter_memory_from_steps([1, 2])) == 2
    assert Memory.from_json(memory.to_json()) == memory
    memory.delete_memory_item(1)
    assert memory.length == 2
    memory.content[:] = [None]
    assert memory.is_empty()
    assert memory.get_latest_item() is None


def test_anything_else_put_in_by_hand_is_named(memory):
    memory.content.append({"a": 1})
    with pytest.raises(InvalidField, match="dict"):
        memory.to_json()


def test_memories_are_compared_by_content(memory):
    assert memory == Memory(list(memory.content))
    assert memory != Memory()
    assert memory != []
    assert repr(memory) == "Memory(3 items)"


@given(st.lists(items | steps, max_size=4))
def test_json_is_an_exact_inverse(content):
    memory = Memory(content)
    again = Memory.from_json(memory.to_json())
    assert again == memory
    assert [type(item) for item in again.content] == [type(item) for item in content]


@given(st.lists(st.none() | st.integers(0, 3), max_size=6), st.integers(0, 3))
def test_delete_and_filter_agree_whoever_lacks_a_step(numbers, step):
    memory = Memory([MemoryItem() if number is None else MemoryItem(step=number) for number in numbers])
    found = memory.filter_memory_from_steps([step])
    memory.delete_memory_item(step)
    assert len(found) + memory.length == len(numbers)
    assert memory.filter_memory_from_steps([step]) == []
