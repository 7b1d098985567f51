"""Facts that are said again with another value: the newest is found first."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from botservice.core.messages import Role
from botservice.search.documents import Document
from botservice.search.index import SearchIndex

SAID = json.loads((Path(__file__).parents[1] / "data" / "said_anew" / "facts.json").read_text("utf-8"))
START = datetime(2024, 3, 1, 9, tzinfo=UTC)


def talk(facts, chance):
    """Return a chat in which every fact is said, and then every one again, and where the new ones stand in it."""
    lines, newest = [], {}
    for version in ("first", "again"):
        for fact in facts:
            lines += [
                (Role.USER, fact[version]),
                (Role.ASSISTANT, chance.choice(["Noted.", "OK!", "I made a note of it."])),
            ]
            newest[fact["question"]] = len(lines) - 1
            for said, answered in chance.sample(SAID["small_talk"], chance.randrange(4)):
                lines += [(Role.USER, said), (Role.ASSISTANT, answered)]
    return lines, newest


def index_of(lines):
    index = SearchIndex()
    index.add(
        [
            Document(number, role, text, None, None, START + timedelta(hours=7 * number))
            for number, (role, text) in enumerate(lines, 1)
        ]
    )
    return index


@pytest.mark.parametrize("facts_per_chat", [1, 10, 30])
@pytest.mark.parametrize("seed", range(3))
def test_nine_of_ten_facts_that_were_said_anew_come_first(facts_per_chat, seed):
    chance = random.Random(seed)
    facts = chance.sample(SAID["facts"], len(SAID["facts"]))
    first = 0
    for start in range(0, len(facts), facts_per_chat):
        part = facts[start : start + facts_per_chat]
        lines, newest = talk(part, chance)
        index = index_of(lines)
        first += sum(index.search(question, k=3)[0][0] == number for question, number in newest.items())
    assert first >= 0.9 * len(facts)


def test_scores_fall_where_texts_are_repeated():
    index = index_of([(Role.USER, "my dog barks")] * 3 + [(Role.USER, "a dog was there, and a cat as well")])
    hits = index.search("my dog", k=9)
    assert len(hits) == 4
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)


def test_a_question_is_no_newer_answer():
    lines = [(Role.USER, "My boss is called Harriet"), (Role.USER, "how do I tell my boss?")]
    assert index_of(lines).search("who is my boss?", k=2)[0][0] == 1
