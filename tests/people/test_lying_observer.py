"""An observer that lies about many people: nothing invented is kept, and nobody reads of another."""

import os

import pytest
from people.generated import MARK
from people.lying import observed, traces

TURNS = int(os.environ.get("BOTSERVICE_TEST_LYING_TURNS", "300"))


@pytest.mark.slow
async def test_nothing_invented_is_kept_and_nobody_reads_of_another(storage):
    seen = await observed(storage, turns=200, people=6, groups=2, forgotten=[4, 5])
    assert seen.findings.leaks == []
    assert seen.invented == []
    assert seen.calls >= 2
    assert seen.lies > 100
    assert seen.notes > 0
    assert seen.facts > 5
    assert seen.left_of_forgotten == []


@pytest.mark.slow
async def test_traces_of_a_person_are_found_where_they_are(storage):
    seen = await observed(storage, turns=30, people=12, groups=1, forgotten=[])
    assert seen.findings.prompts > 0
    marks = {MARK.search(text)[0] for text in await traces(storage, range(12))}
    assert {each.partition("-")[0] for each in marks} == {"mark"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_hundreds_of_turns_with_a_liar_leave_no_invention_and_no_trace_of_who_is_forgotten(sqlite_storage):
    seen = await observed(sqlite_storage, turns=TURNS, people=30, groups=5, forgotten=range(10, 20))
    assert seen.findings.leaks == []
    assert seen.invented == []
    assert seen.left_of_forgotten == []
    assert seen.said_tokens >= 1500 * seen.calls
