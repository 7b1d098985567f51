"""What SearchIndex finds, and how it keeps up with a chat that changes."""

import tracemalloc
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botservice.history.ranking import Document, SearchIndex
from botservice.history.ranking.people import author_key
from botservice.messages import Author, Role

START = datetime(2024, 3, 1, 9, tzinfo=UTC)


def document(number, text, *, role=Role.USER, name=None, key=None, at=None):
    return Document(number, role, text, name, key, at or START + timedelta(minutes=number))


def index_of(*texts, **kwargs):
    index = SearchIndex()
    index.add([document(number, text, **kwargs) for number, text in enumerate(texts, 1)])
    return index


def found(index, text, k=10, **kwargs):
    return [number for number, _ in index.search(text, k=k, **kwargs)]


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


def test_vectors_kept_as_bytes_rank_as_they_are():
    chance = np.random.default_rng(7)
    index = index_of(*(f"talk {n}" for n in range(300)))
    matrix = chance.normal(size=(300, 64)).astype(np.float32)
    index.set_vectors(range(1, 301), matrix)
    query = chance.normal(size=64)
    exact = matrix @ query / np.linalg.norm(matrix, axis=1) / np.linalg.norm(query)
    kept = index._vectors.similarities(query, 300)
    assert np.abs(kept - exact).max() < 0.01


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


LONG = 6_000  # messages: of fewer than 4,000, all are ranked


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


def test_what_a_turn_brings_is_taken_in_without_moving_all_of_a_long_chat():
    index = index_of(*(f"note {n} of wax{n % 900} {'x y z '.replace(' ', f'{n % 60} ') * 4}" for n in range(9_000)))
    index.compact()
    assert len(index._postings) > 60_000
    moved, number = [], 10_000
    while number < 16_000:
        columns, base = index._columns._alive, index._postings._positions
        has_room = index.has_room
        index.add([document(number + n, f"thing{number} of wax{n} and more of it {n}") for n in range(4)])
        found(index, "waxen thing")
        if columns is not index._columns._alive or base is not index._postings._positions:
            moved.append(has_room)
        number += 4
    assert moved
    assert not any(moved)


def test_where_there_is_no_room_compacting_a_long_chat_makes_some():
    index = index_of(*(f"note {n} of wax{n % 900} and x{n % 60} y{n % 50} z{n % 70}" for n in range(9_000)))
    index.compact()
    index.add([document(10_000, "one more")])
    number, was_full = 10_001, 0
    while number < 13_000:
        index.add([document(number, f"so{number} many{number} new{number} words{number} come{number} at once")])
        if not index.has_room:
            was_full += 1
            index.compact()
            assert index.has_room or not index._columns.has_room
        number += 1
    assert was_full
