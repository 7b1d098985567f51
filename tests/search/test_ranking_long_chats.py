"""What SearchIndex finds in a long chat."""

from datetime import timedelta

import numpy as np
import pytest
from history.indexes import START, document, found, index_of

from botservice.search.index import SearchIndex

LONG = 6_000  # messages


@pytest.fixture(scope="module")
def long_chat():
    """A long chat of many words in which Ann and Ben talk, with a little that is worth finding."""
    chance = np.random.default_rng(7)
    words = [f"w{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}x" for n in range(3_000)]
    texts = [" ".join(words[int(3_000 * part**3)] for part in chance.random(8)) for _ in range(LONG)]
    special = {
        500: "the spare key hangs behind the blue barrel",
        501: "good to know",
        4_000: "is the barrel still blue?",
    }
    special |= dict.fromkeys(range(1000, 3000), "the tide is high") | {700: "the tide was low when we came"}
    special |= {2: "the tide is high and the high tide has a tide", 5: "is the tide high?"}
    documents = [
        document(n, special.get(n, text), name="Ann" if n % 3 else "Ben", at=START + timedelta(hours=n))
        for n, text in enumerate(texts, 1)
    ]
    index = SearchIndex()
    index.add(documents)
    return index


def test_in_a_long_chat_what_has_most_of_the_words_is_found_first(long_chat):
    assert found(long_chat, "where does the spare key for the barrel hang?", k=5)[0] == 500


def test_in_a_long_chat_a_verbatim_repeat_stands_first(long_chat):
    assert found(long_chat, "Is the tide high?", k=5)[0] == 5


def test_in_a_long_chat_what_is_said_ever_again_hides_nothing(long_chat):
    hits = found(long_chat, "tide", k=20)
    assert {2, 5, 700} < set(hits)
    assert len(set(hits)) == 20


def test_in_a_long_chat_nothing_is_found_that_was_said_at_another_time(long_chat):
    within = (START + timedelta(hours=1_010)).timestamp(), (START + timedelta(hours=1_015)).timestamp()
    assert sorted(found(long_chat, "high tide", k=20, said_within=within)) == list(range(1_010, 1_015))


def test_in_a_long_chat_a_name_finds_what_its_bearer_said(long_chat):
    hits = found(long_chat, "what did Ben say?", k=10)
    assert len(hits) == 10
    assert all(number % 3 == 0 for number in hits)


def test_in_a_long_chat_a_date_finds_what_was_said_then(long_chat):
    day = START + timedelta(days=100)
    hits = found(long_chat, f"what was said on {day.day} {day:%B}?", k=10, now=START + timedelta(days=300))
    assert hits
    assert all((START + timedelta(hours=number)).date() == day.date() for number in hits)


def test_in_a_long_chat_nothing_hidden_is_found_and_all_that_there_is(long_chat):
    assert {500, 4_000} < set(found(long_chat, "barrel", k=20))
    assert 4_000 not in found(long_chat, "barrel", k=20, exclude=[4_000])
    assert 500 not in found(long_chat, "barrel", k=20, shown=[500])
    seen = found(long_chat, "tide", k=2_000)
    assert len(found(long_chat, "tide", k=5, shown=seen)) == 5
    assert found(long_chat, "barrel quince", k=5_000)[0] in {500, 4_000}
    assert found(long_chat, "quince", k=20) == []


def tea_time(count):
    """A chat that speaks of nothing but tea, a message a minute."""
    index = SearchIndex()
    said = (document(n, f"tea kettle{n}", name=None, at=START + timedelta(minutes=n)) for n in range(1, count + 1))
    index.add(list(said))
    return index


def test_in_a_long_chat_a_word_of_all_messages_is_found_at_the_time_that_is_asked_for():
    index = tea_time(5_000)
    for first in (1, 2_000, 4_800):
        within = tuple((START + timedelta(minutes=minute)).timestamp() for minute in (first, first + 60))
        hits = found(index, "tea", k=60, said_within=within)
        assert sorted(hits) == list(range(first, first + 60))


def test_in_a_long_chat_a_word_of_all_messages_is_found_on_the_day_that_is_asked_for():
    day = START + timedelta(days=2)
    index = tea_time(12_000)
    hits = found(index, f"what did we say of tea on {day.day} {day:%B}?", k=20, now=START + timedelta(days=60))
    assert len(hits) == 20
    assert all((START + timedelta(minutes=number)).date() == day.date() for number in hits)


def test_in_a_long_chat_the_one_old_message_that_has_both_frequent_words_is_found_first():
    texts = [("dog", "vet", "bus", "rain", "soup", "map", "lamp")[n % 7] + f" note{n}" for n in range(12_000)]
    texts[90] = "dog vet"
    assert found(index_of(*texts), "dog vet", k=5)[0] == 91


@pytest.mark.parametrize(
    ("again", "once", "question"),
    [
        ("the invoice number for Miller", "the invoice number for Miller is 88213", "which invoice number has Miller?"),
        ("Ann, what of the tractor?", "the tractor is far too expensive", "what did Ann say of the tractor?"),
    ],
)
def test_in_a_long_chat_what_is_said_ever_again_does_not_hide_who_said_more_once(again, once, question):
    texts = [again if n % 3 else f"chat{n} of talk{n % 700} and road{n % 90}" for n in range(9_000)]
    texts[500] = once
    index = SearchIndex()
    names = ("Ben", "Ann", "Eve", "Tom")
    index.add([document(n, text, name=names[n % 4]) for n, text in enumerate(texts, 1)])
    assert 501 in found(index, question, k=5)


def test_in_a_long_chat_what_is_shown_is_a_measure_for_the_others_as_in_a_short_one():
    texts = [f"chat{n} of talk{n % 700} price" if n % 40 == 0 else f"chat{n} of talk{n % 700}" for n in range(6_000)]
    texts[3_000:3_003] = ["the zimbel price", "a zimbel", "zimbel, zimbel"]
    results = []
    for size in (3_500, 6_000):
        index = index_of(*texts[:size])
        hits = index.search("zimbel price?", k=5, shown=range(2_980, 3_025))
        results.append(max((score for _, score in hits), default=0.0))
    assert results[1] == pytest.approx(results[0], rel=0.2)


def test_in_a_long_chat_vectors_find_what_shares_no_word():
    index = index_of(*(f"talk number{n}" for n in range(LONG)))
    matrix = np.random.default_rng(3).normal(size=(LONG, 16))
    index.set_vectors(range(1, LONG + 1), matrix)
    assert found(index, "something else", k=3, query_vector=matrix[1_234])[0] == 1_235
