"""What SearchIndex finds, and how it keeps up with a chat that changes."""

import tracemalloc
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from history.indexes import START, document, found, index_of
from hypothesis import given, settings
from hypothesis import strategies as st

from botservice.core.messages import Author, Role
from botservice.search.documents import author_key
from botservice.search.index import SearchIndex

CHAT = (
    "My dog is called Rex",
    "We moved to Lisbon in the autumn",
    "The invoice number is INV-2024-0071",
    "I am allergic to penicillin",
    "Our meeting with Sofia is on Tuesday",
)


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b\u3000"])
def test_blank_text_finds_nothing(text):
    assert found(index_of(*CHAT), text) == []


def test_an_empty_index_finds_nothing():
    assert SearchIndex().search("dog", k=3) == []


def test_an_unrelated_question_finds_nothing():
    assert found(index_of(*CHAT), "quantum chromodynamics lecture") == []


def test_an_unrelated_question_finds_nothing_in_a_long_chat_of_which_the_end_is_seen():
    index = index_of(*CHAT * 1_000)
    assert found(index, "quantum chromodynamics lecture", shown=[4_999, 5_000]) == []


def test_a_synonym_finds_what_the_contract_promises():
    assert found(index_of(*CHAT), "what is my pet called?", k=3)[0] == 1


def test_a_verbatim_repeat_stands_first():
    index = index_of(*CHAT, "Rex Rex Rex dog called Rex my dog", "what was it with the dog")
    assert found(index, "my DOG is called  rex!")[0] == 1


def test_of_messages_that_say_the_same_the_newer_stands_first_and_the_older_last():
    index = index_of("I live in Bonn", "The cat is in Bonn too", "I live in Bonn.", "hm")
    hits = found(index, "where in Bonn do I live")
    assert hits[:2] == [3, 2]
    assert hits[-1] == 1


def test_among_equals_the_newer_wins():
    far_apart = [document(n, f"my size is {size}", at=START + timedelta(days=n)) for n, size in enumerate("ml", 1)]
    index = SearchIndex()
    index.add(far_apart)
    assert found(index, "my size") == [2, 1]


def test_no_more_than_k_and_scores_fall():
    hits = index_of(*["tea with lemon"] * 3, "tea", "green tea", "tea pot").search("tea", k=4)
    assert len(hits) == 4
    assert len({number for number, _ in hits}) == 4
    assert index_of(*CHAT).search("dog", k=0) == []
    scores = [score for _, score in index_of(*CHAT).search("my dog meeting Lisbon", k=5)]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0


def test_excluded_messages_are_not_found():
    assert 1 not in found(index_of(*CHAT), "dog", exclude=[1, 999])


def test_removed_messages_are_never_found_again():
    index = index_of(*CHAT)
    index.remove([1, 77])
    assert 1 not in found(index, "My dog is called Rex")
    index.remove([1])
    assert len(index) == 4


def test_an_edit_replaces_the_text_in_its_place():
    index = index_of(*CHAT)
    index.update(document(1, "My parrot is called Kiwi"))
    assert found(index, "Kiwi")[0] == 1
    assert 1 not in found(index, "Rex")
    index.update(document(9, "A new one about sailing"))
    assert found(index, "sailing")[0] == 9


def test_a_message_added_twice_is_there_once():
    index = index_of(*CHAT)
    index.add([document(1, CHAT[0]), document(6, "Rex barks"), document(6, "Rex sleeps")])
    assert sorted(found(index, "Rex", k=2)) == [1, 6]
    assert found(index, "Rex sleeps")[0] == 6
    assert len(index) == 6


def test_an_answer_is_found_by_the_words_of_its_question():
    index = index_of("Where did you go for the holidays?", "Porto!", *(f"filler line number {n}" for n in range(30)))
    assert sorted(found(index, "holidays", k=2)) == [1, 2]


def test_i_and_my_are_the_askers():
    anna, ben = Author("telegram", "7", "Anna"), Author("telegram", "8", "Ben")
    index = SearchIndex()
    rows = [(1, "favourite colour is green", anna), (2, "favourite colour is blue", ben), (3, "hm", None)]
    index.add(
        [
            document(n, text, name=who and who.name, key=author_key(who), at=START + timedelta(days=n))
            for n, text, who in rows
        ]
    )
    assert found(index, "what is my favourite colour", asker=anna)[0] == 1
    assert found(index, "what is my favourite colour", asker=ben)[0] == 2
    assert found(index, "what is my favourite colour", asker=Author(name="anna"))[0] == 1


def test_you_is_the_bot():
    index = SearchIndex()
    index.add(
        [
            document(1, "restaurants: I recommend the Blue Door", role=Role.USER, at=START),
            document(2, "restaurants: I recommend the Old Mill", role=Role.ASSISTANT, at=START + timedelta(days=3)),
        ]
    )
    assert found(index, "which restaurants did you recommend")[0] == 2


def test_a_name_finds_what_its_bearer_said():
    index = SearchIndex()
    index.add(
        [
            document(1, "the keys are in the drawer", name="Marta Diaz", at=START),
            document(2, "the keys are with the porter", name="Pavel", at=START + timedelta(days=2)),
        ]
    )
    assert found(index, "where are the keys, what did Marta say")[0] == 1
    assert found(index, "Pavel") == [2]


def test_a_date_in_the_question_finds_what_was_said_then():
    index = SearchIndex()
    days = [datetime(2024, 5, 3, tzinfo=UTC), datetime(2024, 8, 20, tzinfo=UTC), datetime(2024, 9, 1, tzinfo=UTC)]
    index.add([document(n, "the run was hard", at=day) for n, day in enumerate(days, 1)])
    index.update(document(2, "the run was hard today"))
    index.update(document(1, "the run was hard again", at=days[0]))
    assert found(index, "how was the run in May 2024")[0] == 1
    assert found(index, "what did I say yesterday", now=days[2] + timedelta(days=1))[0] == 3


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("mein Geburtstagskuchen war lecker", "geburtstag"),
        ("I went to the theatre", "when did I go to the theater"),
        ("das Passwort für Müller", "passwort mueller muller"),
        ("cumpleaños de Inés", "cumpleanos ines"),
        ("please fix parse_order_items in cart.py", "parse order items"),
        ("getUserName returns null", "get user name"),
        ("mail me at jo.fox@example.org", "jo.fox@example.org"),
        ("the total was 12,500 euros", "12500"),
        ("내 강아지 이름은 두부야", "강아지"),
        ("東京タワーに行きました", "東京タワー"),
        ("我的猫叫大福", "猫"),
        ("ฉันชอบกินข้าวผัด", "ข้าวผัด"),
        ("the adress is Mill Lane 4", "what is the address"),
        ("the umbrella is broken", "umbrela"),
        ("party 🦄 on friday", "🦄"),
        ("C++ and C# at work", "c++"),
        ("naïve café", "naive cafe"),
    ],
)
def test_it_is_found_in_any_form(message, question):
    index = index_of("something else entirely", message, "nothing to see", at=None)
    assert found(index, question)[0] == 2


@pytest.mark.parametrize("text", ["\ud800 lone", "a\0b", "🎉" * 500, "x" * 70_000, "?" * 9, "あ" * 3_000, "1" * 4_000])
def test_no_text_makes_it_fail(text):
    index = index_of(text, "tea", text)
    index.search(text, k=3, now=START)
    index.update(document(1, text + " tea"))
    assert found(index, "tea")


def test_a_megabyte_is_taken_in_by_its_beginning():
    index = index_of("anchor " + "lorem ipsum " * 90_000, "short one")
    assert found(index, "anchor")[0] == 1
    index.search("lorem ipsum " * 90_000, k=1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=12), st.text(max_size=30))
def test_one_at_a_time_ranks_as_all_at_once(texts, question):
    documents = [document(number, text) for number, text in enumerate([*texts, *CHAT, *CHAT], 1)]
    at_once, one_by_one = SearchIndex(), SearchIndex()
    at_once.add(documents)
    for each in documents:
        one_by_one.add([each])
    assert at_once.search(question, k=5) == one_by_one.search(question, k=5)


def test_a_long_question_is_searched_by_its_telling_words():
    filler = " ".join(f"unheard{n}" for n in range(150))
    index = index_of(*CHAT, *(f"the weather report of day {n}" for n in range(40)))
    assert found(index, f"{filler} weather report day {filler} penicillin")[0] == 4


def test_every_kind_of_neighbour_counts_the_same_in_dense_and_sparse_places():
    rare = index_of("where do the keys hang", "on the hook", *(f"talk {n}" for n in range(400)))
    common = index_of("where do the keys hang", "on the hook", *(f"talk {n}" for n in range(8)))
    assert found(rare, "keys hang", k=2) == found(common, "keys hang", k=2) == [1, 2]


def test_vectors_find_what_shares_no_word():
    index = index_of(*CHAT)
    index.set_vectors([1, 2, 3], np.eye(3, 8))
    hits = found(index, "zoology", query_vector=np.eye(3, 8)[0])
    assert hits[0] == 1
    assert found(index, "zoology", query_vector=np.zeros(8)) == []
    assert found(index, "zoology", query_vector=np.ones(5)) == []


def test_words_cover_messages_without_a_vector():
    index = index_of(*CHAT)
    index.set_vectors([2], np.eye(1, 8))
    assert found(index, "allergic penicillin", query_vector=np.eye(2, 8)[1])[0] == 4


def test_a_changed_model_replaces_all_vectors():
    index = index_of(*CHAT)
    index.set_vectors([1, 2], np.eye(2, 8))
    index.set_vectors([2], np.ones((1, 4)))
    assert found(index, "zoology", query_vector=np.eye(2, 8)[0]) == []
    assert found(index, "zoology", query_vector=np.ones(4)) == [2]


def test_vectors_leave_with_their_message():
    index = index_of(*CHAT)
    index.set_vectors([1, 2, 3], np.eye(3, 8))
    index.remove([1])
    index.update(document(2, "Porto it is"))
    vectors = np.eye(3, 8)
    assert found(index, "zoology", query_vector=vectors[0]) == []
    assert found(index, "zoology", query_vector=vectors[1]) == []
    assert found(index, "zoology", query_vector=vectors[2]) == [3]


def test_names_are_taken_out_of_what_is_embedded():
    index = index_of("hello", name="Marta")
    assert index.without_names("what did Marta, eat?") == "what did eat?"
    assert index.without_names("Marta") == "Marta"


@pytest.mark.parametrize("count", [3, 4_000])
def test_size_is_an_honest_estimate(count):
    texts = [f"word{n % 997} other{n} {('tea', 'coffee', 'milk', 'sugar')[n % 4]} number {n}" for n in range(count)]
    index_of(*CHAT).search("warm the caches of the process", k=1)
    tracemalloc.start()
    index = index_of(*texts)
    index.search("tea umbrella", k=1)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.6 < index.size_bytes / used < 1.7


def test_meaning_reaches_the_answer_to_what_means_the_same():
    index = index_of("Which animal do you keep?", "Rex, as ever", *(f"talk {n}" for n in range(40)))
    vectors = np.zeros((42, 8))
    vectors[:, 7], vectors[0] = 1, np.eye(8)[0]
    index.set_vectors(range(1, 43), vectors)
    assert found(index, "zoology", k=2, query_vector=np.eye(8)[0])[0] == 1
    index.update(document(1, "Which animal do you keep?"))
    index.set_vectors([1], vectors[:1])
    assert 1 in found(index, "zoology", query_vector=np.eye(8)[0])


def test_a_similarity_that_any_two_texts_have_makes_no_strong_match():
    index = index_of(*(f"talk {n}" for n in range(40)))
    vectors = np.random.default_rng(7).normal(size=(40, 64))
    index.set_vectors(range(1, 41), vectors)
    asked = vectors[3] + 5 * np.random.default_rng(8).normal(size=64)  # a similarity of .2 or so
    assert 0 < index.search("zoology", k=3, query_vector=asked).coverage < 0.2
    assert index.search("zoology", k=3, query_vector=vectors[3]).coverage == pytest.approx(0.5, abs=0.01)
    assert index.search("talk 3", k=3, query_vector=vectors[3]).coverage > 0.9


def test_vectors_kept_as_bytes_rank_as_they_are():
    chance = np.random.default_rng(7)
    index = index_of(*(f"talk {n}" for n in range(300)))
    matrix = chance.normal(size=(300, 64)).astype(np.float32)
    index.set_vectors(range(1, 301), matrix)
    query = chance.normal(size=64)
    units = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    mean = units.sum(axis=0) / 302
    centred, asked = units - mean, query / np.linalg.norm(query) - mean
    exact = centred @ asked / np.linalg.norm(centred, axis=1) / np.linalg.norm(asked)
    kept = index._vectors.similarities(query, 300)
    assert np.abs(kept - exact).max() < 0.01


def test_what_all_texts_of_a_chat_have_in_common_says_nothing():
    chance = np.random.default_rng(7)
    index = index_of(*(f"talk {n}" for n in range(60)))
    own = chance.normal(size=(60, 64))
    shared = 8 * chance.normal(size=64)
    index.set_vectors(range(1, 61), own + shared)
    assert found(index, "zoology", query_vector=own[20] + shared / 2)[0] == 21


def test_one_weak_word_does_not_drown_the_meaning():
    talk = [f"we walk in the garden, day {n}" for n in range(40)]
    index = index_of(*talk, "my throat swells up from peanuts")
    vectors = np.zeros((41, 8))
    vectors[np.arange(41), np.arange(41) % 7], vectors[40] = 1, np.eye(8)[7]
    index.set_vectors(range(1, 42), vectors)
    assert found(index, "any allergy, day or night?", query_vector=np.eye(8)[7])[0] == 41
    assert found(index, "garden walk day 3", query_vector=np.eye(8)[7])[0] == 4


def test_vectors_that_come_anew_and_go_leave_the_mean_as_it_would_be_without_them():
    chance = np.random.default_rng(7)
    matrix = chance.normal(size=(9, 16)).astype(np.float32)
    changed, plain = index_of(*CHAT), index_of(*CHAT)
    changed.set_vectors([1, 2, 3], matrix[:3])
    changed.set_vectors([1, 2], matrix[3:5])
    changed.remove([3])
    plain.set_vectors([1, 2], matrix[3:5])
    here, there = (each._vectors.similarities(matrix[5], 2) for each in (changed, plain))
    assert np.abs(here - there).max() < 0.001


def test_a_chat_that_says_much_the_same_ten_thousand_times_takes_no_room_for_all_pairs_of_it():
    index = index_of(*(f"the lamp is green {number}" for number in range(10_000)))
    tracemalloc.start()
    try:
        hits = found(index, "the green lamp?", k=20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert hits == list(range(9_999, 9_979, -1))
    assert peak < 8_000_000


@pytest.mark.parametrize("question", ["which lamp?", "the lamp is green", "who lost a green lamp or a candle?"])
def test_of_a_long_chat_the_same_is_found_as_of_a_shorter_one_with_the_same_talk_in_it(question):
    talk = ["the lamp is green", "I know", "no", "well", "a candle?", "who has it?", "Ann has it", "so", "green it is"]
    talk += ["fine"] * 8 + ["the lamp broke", "which lamp?", "the lamp in the hall", "oh no", "the lamp is green"]
    results = []
    for filler in (1_500, 3_000):
        index = index_of(*["it rains"] * filler, *talk, *["it snows"] * filler, "lamp green candle", "the lamp again")
        last = 2 * filler + len(talk) + 2
        hits = found(index, question, k=24, exclude=[last], shown=[last - 1, filler + 1])
        middle = filler + len(talk) + filler // 2
        results.append([(number > middle, number - filler * (1 + (number > middle))) for number in hits])
    assert len(results[0]) > 5
    assert results[0] == results[1]
