"""Whatever happens when, the protocol keeps its promises: every state that can be reached is looked at."""

from typing import Any

import pytest

from .bounds import ALONE, BOTH, CONTROLLED, PAIRS, PAYING, SHUFFLED, TWICE, name_of_faults
from .commits import Situation
from .product import Both, count_both
from .search import State, enumerate_states
from .states import Fault, Kind, Plan, Rules, peaceful
from .steps import steps_in
from .world import after, events_in, swapped, swapped_world

SHORT = Plan((Kind.TOOL, Kind.SAY))


def check(plan: Plan, faults: dict[Fault, int]) -> None:
    """Fail with the shortest way to a broken promise, if one can be broken."""
    found = enumerate_states(plan, faults)
    assert found.alarm is None, "\n".join([found.alarm[0], *found.alarm[1]])


@pytest.mark.parametrize("faults", ALONE, ids=name_of_faults)
def test_a_tool_and_another_message_with_each_fault_alone(faults: dict[Fault, int]) -> None:
    check(SHORT, faults)


@pytest.mark.parametrize("faults", [{Fault.KILL: 1}, {Fault.LOST: 1}, {Fault.CLOCK: 1}], ids=name_of_faults)
def test_an_approval_and_another_message_with_some_faults(faults: dict[Fault, int]) -> None:
    check(PAYING, faults)


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan((Kind.SAY, Kind.SAY), stops=True), id="stops"),
        pytest.param(Plan((Kind.SAY, Kind.SAY), edits=True), id="edits"),
        pytest.param(Plan((Kind.TOOL, Kind.TOOL), forgets=True), id="forgets"),
        pytest.param(Plan((Kind.AGAIN,), stops=True), id="may run again"),
    ],
)
def test_what_people_do_about_their_messages_with_a_kill(plan: Plan) -> None:
    check(plan, {Fault.KILL: 1})


@pytest.mark.slow
@pytest.mark.parametrize("faults", ALONE, ids=name_of_faults)
def test_an_approval_a_stop_an_edit_and_forgetting_with_each_fault_alone(faults: dict[Fault, int]) -> None:
    check(CONTROLLED, faults)


@pytest.mark.slow
@pytest.mark.parametrize("faults", ALONE, ids=name_of_faults)
def test_messages_that_arrive_in_any_order_with_each_fault_alone(faults: dict[Fault, int]) -> None:
    check(SHUFFLED, faults)


@pytest.mark.slow
@pytest.mark.parametrize("faults", PAIRS, ids=name_of_faults)
def test_an_approval_and_another_message_with_each_pair_of_faults(faults: dict[Fault, int]) -> None:
    check(PAYING, faults)


@pytest.mark.slow
@pytest.mark.parametrize("faults", TWICE, ids=name_of_faults)
def test_a_tool_and_another_message_with_each_fault_twice(faults: dict[Fault, int]) -> None:
    check(SHORT, faults)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [{}, *ALONE], ids=name_of_faults)
def test_two_conversations_with_each_fault_alone(faults: dict[Fault, int]) -> None:
    assert count_both(BOTH, faults).states > len(enumerate_states(PAYING, faults).states)


def walk_both(plans: tuple[Plan, Plan], faults: dict[Fault, int]) -> int:
    """Count the states of two conversations step by step, without any table."""
    rules = Rules()

    def canonical(world: Any, chats: tuple[Any, Any]) -> Any:
        mirrored = swapped_world(world), tuple(swapped(each) for each in chats)
        found = [(world, chats), mirrored]
        if plans[0] == plans[1]:
            found += [(each, pair[::-1]) for each, pair in found]
        return min(found, key=repr)

    start = canonical(peaceful(faults), (plans[0].start(), plans[1].start()))
    seen, queue = {start}, [start]
    for world, chats in queue:
        then = list[tuple[Any, Any]]()
        for place in (0, 1):
            for step in steps_in(Situation(chats[place], world, rules, plans[place], is_strict=True)):
                assert not step.chat.alarm
                then.append((step.world, (step.chat, chats[1]) if place == 0 else (chats[0], step.chat)))
        then += [
            (event.world, tuple(after(each, event.effect, rules, world) for each in chats))
            for event in events_in(world, rules)
        ]
        for each in then:
            found = canonical(*each)
            if found not in seen:
                seen.add(found)
                queue.append(found)
    return len(seen)


@pytest.mark.parametrize(
    ("kinds", "faults"),
    [
        pytest.param((Kind.SAY, Kind.SAY), {Fault.KILL: 1}, id="two alike and a kill"),
        pytest.param((Kind.TOOL, Kind.SAY), {Fault.LOST: 1}, id="two that differ and an answer that is lost"),
    ],
)
def test_two_conversations_are_counted_as_if_walked_through_step_by_step(
    kinds: tuple[Kind, Kind], faults: dict[Fault, int]
) -> None:
    plans = Plan(kinds[:1]), Plan(kinds[1:])
    assert Both(plans, faults).count().states == walk_both(plans, faults)


def test_a_mirror_image_can_do_what_its_original_can() -> None:
    found = enumerate_states(Plan((Kind.TOOL,)), {Fault.HANG: 1}, is_symmetric=False)
    assert all(State(swapped_world(world), swapped(chat)) in found.states for world, chat in found.states)
