"""How a question is read: words, dates, and whether there is anything to look for."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from botservice.search import tokens
from botservice.search.dates import find_spans, nearness
from botservice.search.grammar import FUNCTION_WORDS
from botservice.search.languages import CODES, guess
from botservice.search.query import is_worth_searching, split_questions
from botservice.search.tokens import tokenize
from botservice.search.word_forms import form_keys, related_keys

NOW = datetime(2024, 6, 12, 15, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "ok",
        "OK!",
        "👍",
        "🎉🎉",
        "...",
        "?!",
        "thanks",
        "thank you so much",
        "danke dir",
        "vale, gracias",
        "merci",
        "네",
        "ㅋㅋ",
        "はい",
        "好的",
        "谢谢",
        "yes",
        "lol",
        "haha ok",
        "hello there",
    ],
)
def test_nothing_is_looked_for_after(text):
    assert not is_worth_searching(text)


@pytest.mark.parametrize(
    "text",
    [
        "what's my name?",
        "who am I",
        "Rex",
        "wie heißt mein Hund",
        "¿dónde vivo?",
        "où est-ce",
        "내 이름이 뭐야",
        "私の名前は",
        "我叫什么",
        "INV-2024-0071",
        "and the second one?",
        "remind me of the dentist",
        "ok and when is the dentist",
        "?? why",
    ],
)
def test_something_is_looked_for_after(text):
    assert is_worth_searching(text)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("It's Jo's", ["it", "s", "jo", "s"]),
        ("e-mail", ["e-mail", "email", "e", "mail"]),
        ("user_id", ["user_id", "userid", "user", "id"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("v2.1", ["v2.1", "v2", "1"]),
        ("1,234,567 and 3.14", ["1234567", "and", "3.14", "3", "14"]),
        ("東京に", ["東", "京", "東京", "京に"]),
        ("두부는", ["두부는", "두부"]),
        ("\uff26\uff55ll", ["full"]),
    ],
)
def test_text_is_cut_into_tokens(text, cut):
    assert tokenize(text) == cut


@given(st.text(st.sampled_from("abAB09 .,'-_@+?\n"), max_size=30) | st.text(max_size=30))
@example("word " + "x" * 70)
def test_the_short_way_to_tokens_leads_where_the_long_one_does(text):
    assert tokenize(text) == tokens._tokenize(tokens.normalize(text))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("what did I say about the house", "en"),
        ("was habe ich über das Haus gesagt", "de"),
        ("qué te dije sobre la casa", "es"),
        ("qu'est-ce que je t'ai dit sur la maison", "fr"),
    ],
)
def test_a_language_shows_in_its_function_words(text, code):
    assert CODES[guess(tokenize(text))] == code


def test_no_language_is_guessed_from_nothing():
    assert guess([]) == guess(["xyzzy", "plugh"]) == -1


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 2024-05-03", "2024-05-03", "2024-05-03"),
        ("am 3.5.2024", "2024-05-03", "2024-05-03"),
        ("May 3rd, 2024", "2024-05-03", "2024-05-03"),
        ("le 3 mai 2024", "2024-05-03", "2024-05-03"),
        ("el 3 de mayo de 2024", "2024-05-03", "2024-05-03"),
        ("2024年5月3日", "2024-05-03", "2024-05-03"),
        ("2024년 5월 3일", "2024-05-03", "2024-05-03"),
        ("in December 2023", "2023-12-01", "2023-12-31"),
        ("back in 2022", "2022-01-01", "2022-12-31"),
        ("yesterday", "2024-06-11", "2024-06-11"),
        ("gestern", "2024-06-11", "2024-06-11"),
        ("昨天", "2024-06-11", "2024-06-11"),
        ("어제", "2024-06-11", "2024-06-11"),
        ("vor 3 Tagen", "2024-06-09", "2024-06-09"),
        ("3 days ago", "2024-06-09", "2024-06-09"),
        ("hace 3 días", "2024-06-09", "2024-06-09"),
        ("last year", "2023-01-01", "2023-12-31"),
    ],
)
def test_a_date_is_understood(text, first, last):
    (span,) = find_spans(text, now=NOW)
    noon = [datetime.fromisoformat(f"{day}T12:00+00:00").timestamp() for day in (first, last)]
    assert nearness(np.array(noon), span).tolist() == [1, 1]
    assert nearness(np.array([noon[0] - 86_400]), span).tolist() == [0]
    assert 0.8 < nearness(np.array([noon[1] + 86_400]), span)[0] < 1


def test_a_month_or_a_weekday_without_a_year_comes_back():
    (month,) = find_spans("what happened in May", now=None)
    (day,) = find_spans("am Mittwoch", now=None)
    times = np.array([datetime(year, 5, 8, tzinfo=UTC).timestamp() for year in (2019, 2024)])
    assert nearness(times, month).tolist() == [1, 1]
    assert nearness(times, day).tolist() == [0.5, 0.5]
    assert nearness(times + 40 * 86_400, month).tolist() == [0, 0]


@pytest.mark.parametrize(
    "text",
    ["may I ask", "march on", "99.99.2024", "2024-13-45", "0000-01-01", "9999-12-31", "vista al mar", "999 years ago"],
)
def test_what_is_no_date_does_no_harm(text):
    assert all(np.isfinite(nearness(np.array([0.0, 2e9]), span)).all() for span in find_spans(text, now=NOW))
    if text[0] in "mv" or text[:2] == "99.":
        assert find_spans(text, now=NOW) == []


def test_a_french_yesterday_is_a_german_here():
    assert len(find_spans("c'était hier", now=NOW)) == 1
    assert find_spans("was war hier", now=NOW, is_german=True) == []


def test_irregular_forms_belong_together():
    english, german = (0,), (CODES.index("de"),)
    assert form_keys("went", english) & form_keys("going", english)
    assert form_keys("lief", german) & form_keys("laufen", german)


def test_related_words_cross_languages_and_levels():
    assert {"dog", "hund", "猫"} <= related_keys("pet", (0,))
    assert "cat" not in related_keys("dog", (0,))
    assert related_keys("xyzzy", (0,)) == frozenset()


def test_word_lists_are_in_lower_case():
    assert all(word == word.lower() for words in FUNCTION_WORDS.values() for word in words)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Where is Rex?", ["Where is Rex?"]),
        ("Where is Rex? And who feeds him?", ["Where is Rex? ", "And who feeds him?"]),
        ("公园叫什么\uff1f上司的电话是多少\uff1f", ["公园叫什么\uff1f", "上司的电话是多少\uff1f"]),
        ("My dog is ill. Where is the vet? What does it cost?!", None),
        ("Ok?? Where is Rex?!", ["Ok?? Where is Rex?!"]),
        ("Where is Rex? Answer in one word.", ["Where is Rex? Answer in one word."]),
        ("?? ? ???", ["?? ? ???"]),
        ("Where do I live, and what is my dog called?", ["Where do I live", "what is my dog called?"]),
        ("where do i live and what is my dog called", ["where do i live", "what is my dog called"]),
        ("Where do I live and what is Rex? And when is it?", ["Where do I live", "what is Rex?", "And when is it?"]),
        ("Where and when did we meet?", ["Where and when did we meet?"]),
        ("What did Ann and Bob say when we met?", ["What did Ann and Bob say when we met?"]),
        ("Salt, pepper and what else?", ["Salt, pepper and what else?"]),
        ("Wo wohne ich und wie heißt mein Hund?", ["Wo wohne ich", "wie heißt mein Hund?"]),
        ("¿Dónde vivo y cómo se llama mi perro?", ["¿Dónde vivo", "cómo se llama mi perro?"]),
        ("Où j'habite et comment s'appelle mon chien ?", ["Où j'habite", "comment s'appelle mon chien ?"]),
        ("我住在哪里\uff0c还有我的狗叫什么\uff1f", ["我住在哪里", "我的狗叫什么\uff1f"]),
        ("내가 어디 살지 그리고 우리 개 이름은 뭐야?", ["내가 어디 살지", "우리 개 이름은 뭐야?"]),
        ("どこに住んでいますか、それと犬の名前は何ですか", ["どこに住んでいますか", "犬の名前は何ですか"]),
        ("", [""]),
    ],
)
def test_a_text_is_split_into_its_questions(text, parts):
    found = split_questions(text)
    assert len(found) == (2 if parts is None else len(parts))
    if parts is not None:
        assert [each.strip() for each in found] == [each.strip() for each in parts]


def test_of_very_many_questions_a_few_are_looked_for():
    assert len(split_questions("What is my name? " * 300)) == 4
