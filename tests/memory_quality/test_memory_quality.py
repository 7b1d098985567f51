"""Notes and facts of an observer: prompts hold more of what is asked than searching alone, in as many tokens."""

import statistics

import pytest
from memory_quality.chats import read_chats
from memory_quality.comparing import Sizes, measure
from memory_quality.reader import Verdict

SIZES = Sizes(window=1200, found=1000, notes=600)
CHATS = {chat.id: chat for chat in read_chats("development")}


async def answered(storage, chat, kind):
    """Return the shares that searching alone and an observed chat answer, and the tokens of both."""
    rows, cost = await measure(storage, [CHATS[chat]], kind, SIZES)
    shares = [statistics.fmean(row.verdicts[arm] is Verdict.ANSWERED for row in rows) for arm in (0, 1)]
    tokens = [sum(row.tokens[arm] for row in rows) for arm in (0, 1)]
    return shares, tokens, cost


@pytest.mark.slow
async def test_a_chat_that_is_observed_well_answers_more_in_no_more_tokens(sqlite_storage):
    (alone, observed), tokens, cost = await answered(sqlite_storage, "en-bakery", "good")
    assert observed >= 1.3 * alone
    assert observed >= 0.8
    assert tokens[1] <= tokens[0]
    assert cost.calls > 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bad", "lying"])
@pytest.mark.parametrize("chat", ["en-violin", "de-werkstatt", "ru-pochta", "en-allotment"])
async def test_a_chat_that_is_observed_badly_answers_no_less(sqlite_storage, chat, kind):
    (alone, observed), _, cost = await answered(sqlite_storage, chat, kind)
    assert observed >= alone
    assert sum(cost.dropped.values()) > 0
