"""Groups in which people repeat each other: no words pass as another's, and what is forgotten is gone from all."""

import os

import pytest
from people.generated_quotes import generate

GROUPS = int(os.environ.get("BOTSERVICE_TEST_GENERATED_GROUPS", "50"))
IN_ONE_FILE = 50  # after each forgetting, all of it is looked through


@pytest.mark.slow
async def test_nothing_of_the_forgotten_is_left_with_others_and_no_fact_is_anothers(storage):
    groups = 20
    findings = await generate(storage, groups=groups)
    assert findings.wrong == []
    assert findings.quotes > 4 * groups
    assert findings.refused > groups
    assert findings.prompts > groups // 2


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(7, 7 + GROUPS // IN_ONE_FILE))
async def test_nothing_of_the_forgotten_is_left_in_many_groups(sqlite_storage, seed):
    findings = await generate(sqlite_storage, groups=IN_ONE_FILE, seed=seed)
    assert findings.wrong == []
