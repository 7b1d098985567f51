"""Events are the same, however the bytes of a stream are cut and its lines end."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.llm.openai.answer_stream import EventReader

STREAM = (
    b": a comment\n\n"
    b'event: message\ndata: {"a": "\xc3\xbc\xe2\x80\xa8"}\n\n'
    b"id: 7\nretry: 10\n\n"
    b"data:no blank\ndata: and two lines\n\n"
    b"data:\n\n"
    b"other: field\ndata: [DONE]\n\n"
    b"data: never ended\n"
)
EVENTS = ['{"a": "ü\u2028"}', "no blank\nand two lines", "[DONE]"]


@given(st.lists(st.integers(0, len(STREAM) * 2), max_size=12), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_events_are_the_same_wherever_the_stream_is_cut(cuts: list[int], ending: bytes) -> None:
    stream = STREAM.replace(b"\n", ending)
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    reader = EventReader()
    pieces = [stream[start:end] for start, end in itertools.pairwise(places)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_an_event_is_there_as_soon_as_its_empty_line_is(ending: bytes) -> None:
    reader = EventReader()
    assert reader.feed(b"data: one" + ending) == []
    assert reader.feed(ending) == ["one"]


def test_a_line_of_many_pieces_is_put_together_once() -> None:
    """Joined again at each piece, these would be copied for minutes."""
    reader = EventReader()
    reader.feed(b"data: ")
    for _ in range(20_000):
        assert reader.feed(b"x" * 1_000) == []
    assert [len(event) for event in reader.feed(b"\n\n")] == [20_000_000]


def test_a_byte_order_mark_before_a_stream_hides_no_event() -> None:
    reader = EventReader()
    assert reader.feed(b"\xef\xbb\xbfdata: first\n\ndata: \xef\xbb\xbfsecond\n\n") == ["first", "\ufeffsecond"]
