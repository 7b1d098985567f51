"""What the page posts, read without a server."""

import base64
import contextlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from botservice.core.messages import Author
from botservice.core.states import EventKind
from botservice.turns.turn import StoredEvent
from transports.common.requests import parse_fields
from transports.web import inbound_events
from transports.web.inbound_events import OrderKeys, Post, make_event, parse_post, read_event

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def image(data: bytes = PNG, mime_type: str = "image/png", name: str = "dog.png") -> dict[str, str]:
    return {"name": name, "mime_type": mime_type, "data": base64.b64encode(data).decode()}


def body(**fields: object) -> bytes:
    return json.dumps({"id": "message-1", "text": "hello", **fields}).encode()


def test_a_post_says_what_and_who():
    post = parse_post(parse_fields(body(name="  Alice \n Liddell ")))
    assert post == Post("message-1", "hello", "Alice Liddell")


def test_an_image_may_come_without_a_text():
    post = parse_post(parse_fields(body(text="", files=[image()])))
    assert [(each.mime_type, each.name, each.data) for each in post.files] == [("image/png", "dog.png", PNG)]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"text": ""}, 400),
        ({"text": " \n\t "}, 400),
        ({"text": None}, 400),
        ({"text": 7}, 400),
        ({"text": ["hello"]}, 400),
        ({"text": "x" * 100_001}, 413),
        ({"id": ""}, 400),
        ({"id": None}, 400),
        ({"id": "short"}, 400),
        ({"id": "x" * 65}, 400),
        ({"id": "message:1"}, 400),
        ({"id": "message-1\n"}, 400),
        ({"id": 12345678}, 400),
        ({"name": {}}, 400),
        ({"files": "x"}, 400),
        ({"files": [7]}, 400),
        ({"files": [{}]}, 400),
        ({"files": [image()] * 11}, 413),
        ({"files": [image(PNG + bytes(5_000_000))] * 2}, 413),
        ({"files": [{**image(), "data": "not base64!"}]}, 400),
        ({"files": [{**image(), "data": None}]}, 400),
        ({"files": [{**image(), "name": 7}]}, 400),
    ],
)
def test_what_is_no_message_is_refused(fields, status):
    with pytest.raises(HTTPException) as refused:
        parse_post(parse_fields(body(**fields)))
    assert refused.value.status_code == status
    assert str(refused.value)


def test_a_hundred_thousand_characters_are_not_too_many():
    text = "\N{GRINNING FACE}" * inbound_events.MAX_TEXT
    written = body(text=text)
    assert parse_post(parse_fields(written)).text == text
    assert len(written) < inbound_events.MAX_BODY_BYTES


@given(st.binary(max_size=200))
def test_no_body_breaks_the_reader(written):
    with contextlib.suppress(HTTPException):
        parse_post(parse_fields(written))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["id", "text", "name", "files", "data", "mime_type"]), inner)
        ),
        max_leaves=8,
    )
)
def test_no_json_breaks_the_reader(value):
    with contextlib.suppress(HTTPException):
        parse_post(parse_fields(json.dumps(value).encode()))


def test_deeply_nested_json_is_refused():
    with pytest.raises(HTTPException):
        parse_fields(b"[" * 100_000)


def test_an_event_keeps_the_body_as_it_came_and_reads_as_it_was_meant():
    written = body(text="look \ud83d", name="Alice", files=[image()])
    event = make_event("0" * 32, "message-1", 5, written)
    assert (event.key, event.order_key, event.raw) == (f"web:{'0' * 32}:message-1", 5, written)
    assert event.context_keys == {"transport": "web", "session_id": "0" * 32}
    message = read_event(StoredEvent(1, event.key, event.raw, NOW))
    assert message is not None
    assert message.text == "look \ud83d"
    assert message.author == Author("web", "0" * 32, "Alice")
    assert message.attachments[0].data == PNG
    assert (message.created_at, message.external_id) == (NOW, "message-1")


def test_an_event_that_can_no_longer_be_read_says_nothing():
    assert read_event(StoredEvent(1, "web:x:y", b"", NOW)) is None


def test_a_stop_is_no_message_and_never_takes_the_key_of_one():
    event = make_event("0" * 32, "message-1", 7, kind=EventKind.STOP)
    assert event.kind is EventKind.STOP
    assert event.key != f"web:{'0' * 32}:message-1"


def test_order_keys_grow_also_where_the_clock_does_not():
    microseconds = iter([5, 5, 4, 9_000])
    keys = OrderKeys(lambda: datetime.fromtimestamp(next(microseconds) / 1_000_000, UTC))
    assert [keys.next() for _ in range(4)] == [5, 6, 7, 9_000]
