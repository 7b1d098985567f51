"""Counting tokens with an encoding, and without one where none can be had."""

import logging
import threading

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from botservice.llm.tokens import DEFAULT_ENCODING, EncodingCounter, Encodings, EstimateCounter, _encoding_name


def byte_encoding(name="bytes"):
    """An encoding of one token per byte, with a token that texts only pretend to hold."""
    ranks = {bytes([number]): number for number in range(256)}
    return tiktoken.Encoding(name, pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 256})


@given(st.text(max_size=50))
def test_an_encoding_counts_every_text_also_what_looks_like_a_special_token(text):
    counter = EncodingCounter(byte_encoding())
    replaced = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert counter.count(text) == len(replaced.encode())
    assert counter.count("<|endoftext|>") == len("<|endoftext|>")


@pytest.mark.parametrize("text", ["a" * 50_000, "word " * 10_000, "\n" * 50_000, "é" * 25_000])
def test_a_long_text_is_counted_whole_in_pieces(text):
    assert EncodingCounter(byte_encoding()).count(text) == len(text.encode())


def test_a_message_of_a_megabyte_is_counted():
    assert EncodingCounter(byte_encoding()).count("x" * 1_000_000) == 1_000_000
    assert EstimateCounter().count("x" * 1_000_000) >= 333_000


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_estimate_counts_any_text_and_more_for_more(one, other):
    counter = EstimateCounter()
    assert counter.count("") == 0
    assert (counter.count(one) > 0) is bool(one)
    assert counter.count(f"{one}\n\n{other}") >= max(counter.count(one), counter.count(other))


@pytest.mark.parametrize(
    ("text", "tokens"),  # as o200k_base counts them
    [
        ("My dog is called Rex", 5),
        ("Wir sehen uns nächsten Dienstag um halb zehn am Bahnhof", 10),
        ("今日はとても天気がいいですね", 8),
        ("0.8444218515250481, 0.7579544029403025", 18),
        ("d131dd02c5e6eec4693d9a0698aff95c", 20),
        ("🏳️‍🌈👩‍🚀", 11),
        ("for (let i = 0; i < n; i++) { sum += a[i]; }", 21),
    ],
)
def test_the_estimate_is_on_the_safe_side_and_not_far(text, tokens):
    assert tokens <= EstimateCounter().count(text) <= 2 * tokens + 2


def loaded(encodings, name):
    """Return what counts when the loading has come to its end."""
    encodings.get(name)
    encodings._loading[name].join(60)
    return encodings.get(name)


def test_without_a_network_the_estimate_stands_in_and_that_is_said_once(caplog):
    def refuse(name):
        raise ConnectionError("no network")

    caplog.set_level(logging.DEBUG)
    encodings = Encodings(refuse)
    counters = [loaded(encodings, "some") for _ in range(5)]
    assert {counter.name for counter in counters} == {"estimate"}
    assert [(each.message, each.encoding, each.reason) for each in caplog.records] == [
        ("tokens.estimated", "some", "ConnectionError")
    ]


def test_nobody_waits_for_an_encoding_and_it_takes_over_when_it_arrives(caplog):
    arrives = threading.Event()

    def load(name):
        assert arrives.wait(60)
        return byte_encoding(name)

    encodings = Encodings(load)
    assert {encodings.get("slow").name for _ in range(5)} == {"estimate"}
    arrives.set()
    assert loaded(encodings, "slow").name == "slow"
    assert caplog.records == [], "what is there soon is not worth a line"


def test_an_encoding_that_hangs_is_said_once_and_may_still_arrive():
    is_said, arrives = threading.Event(), threading.Event()
    reasons = []

    class Listener(logging.Handler):
        def emit(self, record):
            reasons.append(record.reason)
            is_said.set()

    def load(name):
        assert arrives.wait(60)
        return byte_encoding(name)

    logger = logging.getLogger("botservice.llm.tokens")
    listener = Listener()
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    try:
        encodings = Encodings(load, patience_seconds=0.001)
        assert encodings.get("slow").name == "estimate"
        assert is_said.wait(60)
        arrives.set()
        assert loaded(encodings, "slow").name == "slow"
    finally:
        logger.removeHandler(listener)
        logger.setLevel(logging.NOTSET)
    assert reasons == ["TimeoutError"]


def test_an_encoding_that_many_threads_want_is_loaded_once():
    loads = []
    everyone = threading.Barrier(8)

    def load(name):
        loads.append(name)
        return byte_encoding(name)

    encodings = Encodings(load)
    found = []

    def want():
        everyone.wait(60)
        found.append(loaded(encodings, "shared").count("four"))

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [4] * 8
    assert loads == ["shared"]


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        (None, DEFAULT_ENCODING),
        ("", DEFAULT_ENCODING),
        ("gpt-4o", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-5.5", DEFAULT_ENCODING),
        ("llama3.2:3b", DEFAULT_ENCODING),
        ("ein Modell/ohne Namen 🦙", DEFAULT_ENCODING),
    ],
)
def test_a_model_that_nobody_knows_is_counted_with_the_default(model, encoding):
    assert _encoding_name(model) == encoding
