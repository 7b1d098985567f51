"""The chats on which memory is measured: what they ask was said, and nothing gives the answer away."""

from collections import Counter

import pytest
from memory_quality.chats import read_chats, read_filler

from botservice.llm.tokens import EstimateCounter

CHATS = read_chats()
QUESTIONS = [pytest.param(chat, asked, id=f"{chat.id}: {asked.text}") for chat in CHATS for asked in chat.questions]


def holds(text, wordings):
    return any(wording.casefold() in text.casefold() for wording in wordings)


def test_there_are_enough_chats_and_questions_in_each_half_and_language():
    asked = Counter((chat.half, chat.language) for chat in CHATS for _ in chat.questions)
    assert len(CHATS) >= 24
    assert asked.total() >= 120
    assert len(asked) == 6
    assert min(asked.values()) >= 28


def test_each_half_asks_every_kind_of_question():
    kinds = Counter((chat.half, asked.kind) for chat in CHATS for asked in chat.questions)
    assert {kind for _, kind in kinds} == {"update", "preference", "multi", "count", "dated", "none"}
    assert len(kinds) == 12
    assert min(kinds.values()) >= 6


@pytest.mark.parametrize(("chat", "asked"), QUESTIONS)
def test_what_a_question_needs_was_said_by_a_person_on_that_day(chat, asked):
    for wordings, dates in asked.needs:
        days = [f"{said.at:%Y-%m-%d}" for said in chat.said if said.who and holds(said.text, wordings)]
        assert any(day.startswith(dates or ("",)) for day in days), wordings
    for wording in (*asked.outdated, *asked.lure):
        assert any(said.who and holds(said.text, [wording]) for said in chat.said), wording


@pytest.mark.parametrize(("chat", "asked"), QUESTIONS)
def test_neither_the_question_nor_what_is_asked_besides_gives_the_answer_away(chat, asked):
    tasks, asides = read_filler(chat.language)
    besides = [text for task in tasks for text in task] + [said.text for aside in asides for said in aside]
    for wordings, _ in asked.needs:
        assert not holds(asked.text, wordings)
        assert not any(holds(text, wordings) for text in besides), wordings


def test_reading_again_gives_the_same():
    assert read_chats() == CHATS


def test_trifles_are_facts_beside_what_is_said_anyway():
    more = read_chats("development", "en", trifles=40)
    plain = [chat for chat in CHATS if (chat.half, chat.language) == ("development", "en")]
    for one, other in zip(plain, more, strict=True):
        assert len(other.said) == len(one.said) + 80
        assert sum(len(said.facts) for said in other.said) == sum(len(said.facts) for said in one.said) + 40
        assert {said.text for said in one.said} < {said.text for said in other.said}


def test_no_session_stands_among_the_newest_messages():
    counter = EstimateCounter()
    for chat in CHATS:
        needed = [wording for asked in chat.questions for wordings, _ in asked.needs for wording in wordings]
        newest = 0
        for said in reversed(chat.said):
            newest += counter.count(said.text)
            if newest > 1200:
                break
            assert not holds(said.text, needed), (chat.id, said.text)
