"""Many people on one service: not one word in a wrong person's prompt, answer, export or log."""

import os

import pytest
from people.generated import generate

TURNS = int(os.environ.get("BOTSERVICE_TEST_GENERATED_TURNS", "300"))


@pytest.mark.slow
async def test_nobody_sees_the_words_of_another(storage):
    findings = await generate(storage, turns=200, people=15, groups=4)
    assert findings.leaks == []
    assert findings.prompts > 150
    assert findings.with_facts > 20
    assert findings.with_found > 20


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_nobody_sees_the_words_of_another_in_hundreds_of_turns(sqlite_storage):
    findings = await generate(sqlite_storage, turns=TURNS, people=80, groups=12, seed=7)
    assert findings.leaks == []
