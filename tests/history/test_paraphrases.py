"""Questions that share no word with what answers them, in five languages: what meaning finds.

Pairs and talk were written before anything was measured on them.
"""

import json
import random
import statistics
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from botservice.core.messages import Role
from botservice.history.local_embedder import E5Embedder
from botservice.search import languages
from botservice.search.documents import Document
from botservice.search.index import SearchIndex
from botservice.search.languages import CODES, is_function_word
from botservice.search.tokens import tokenize
from botservice.search.word_forms import form_keys

FOLDER = Path(__file__).parents[1] / "data" / "paraphrases"
PAIRS = json.loads((FOLDER / "pairs.json").read_text("utf-8"))
TALK = json.loads((FOLDER / "talk.json").read_text("utf-8"))
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
WITHOUT_SPACES = ("ko", "zh")  # their words share a syllable now and then


def chat_in(language):
    """Return a chat of one language as documents, with the pairs among other talk, and where each of them stands."""
    talk, pairs, lines, places = TALK[language][:], PAIRS[language], [], []
    random.Random(language).shuffle(talk)
    for number, pair in enumerate(pairs):
        part = talk[number * len(talk) // len(pairs) : (number + 1) * len(talk) // len(pairs)]
        lines += [(role, text) for each in part for role, text in zip((Role.USER, Role.ASSISTANT), each, strict=True)]
        lines.append((Role.USER, pair["said"]))
        places.append(len(lines))
    documents = [
        Document(number, role, text, None, None, START + timedelta(minutes=37 * number))
        for number, (role, text) in enumerate(lines, 1)
    ]
    return documents, places


def test_there_are_ten_in_each_language():
    assert len(PAIRS) == 5
    assert {language: len(pairs) for language, pairs in PAIRS.items()} == dict.fromkeys(
        ("en", "de", "es", "ko", "zh"), 10
    )


@pytest.mark.parametrize("language", [each for each in PAIRS if each not in WITHOUT_SPACES])
def test_they_share_no_word(language):
    spoken = (CODES.index(language),)
    for pair in PAIRS[language]:
        asked, told = (
            {
                key
                for word in tokenize(pair[part])
                if not is_function_word(word, spoken) and word not in languages.word_lists(spoken)[1]
                for key in form_keys(word, spoken)
            }
            for part in ("asked", "said")
        )
        assert not asked & told, pair


@pytest.mark.slow
async def test_meaning_finds_three_of_four_among_the_first_five():
    embedder = E5Embedder(threads=1)
    found = {}
    for language, pairs in PAIRS.items():
        documents, places = chat_in(language)
        index = SearchIndex()
        index.add(documents)
        vectors = await embedder.embed_documents([each.text for each in documents])
        index.set_vectors([each.id for each in documents], vectors)
        for pair, place in zip(pairs, places, strict=True):
            asked = await embedder.embed_query(pair["asked"])
            best = [number for number, _ in index.search(pair["asked"], k=5, query_vector=asked)]
            found.setdefault(language, []).append(place in best)
    assert statistics.fmean(hit for hits in found.values() for hit in hits) >= 0.8
    assert min(statistics.fmean(hits) for hits in found.values()) >= 0.6


async def test_a_short_question_is_no_answer_to_one_that_means_the_same():
    index = SearchIndex()
    texts = ("the sea was calm", "Where do I live?", "The house stands in Mill Lane", "a fresh loaf", "rain again")
    index.add([Document(n, Role.USER, text, None, None, START + timedelta(days=n)) for n, text in enumerate(texts)])
    vectors = [[0, 0, 1, 0], [1, 0, 0, 0], [0.6, 0.8, 0, 0], [0, 0, 0, 1], [0, 0, 0.7, 0.7]]
    index.set_vectors(list(range(5)), vectors)
    found = [number for number, _ in index.search("What is my address?", k=5, query_vector=[1, 0, 0, 0])]
    assert found[0] == 2
