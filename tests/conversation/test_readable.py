from hypothesis import given
from hypothesis import strategies as st

from botservice.conversation.field_values import StepError
from botservice.conversation.images import read_data_url, write_data_url
from botservice.conversation.readable_values import readable
from botservice.core.messages import Attachment, ToolCall


@given(st.binary(), st.sampled_from(["image/png", "text/plain;charset=utf-8", ""]))
def test_a_data_url_is_read_back(data, mime_type):
    url = write_data_url(mime_type, data)
    assert read_data_url(url)[1:] == (mime_type, data)


def test_what_is_no_data_url_of_ours_is_not_read():
    for url in ("data:,hello", "data:image/png;base64,e", "https://x/,", "data:image/png;base64,eB==", "data:", "é,é"):
        assert read_data_url(url) is None


def test_values_are_words_for_people():
    values = [b"xx", Attachment("image/png", "a.png", url="https://x"), StepError("a", "b"), float("inf"), 10**5000]
    text = readable(values)
    assert text.startswith('["[2 bytes]", "[image/png, a.png, https://x]", {"type": "a", "message": "b"}, "inf", "0x')


def test_a_number_that_json_does_not_know_is_a_word_wherever_it_stands():
    assert '{"rate": "inf"}' in readable([ToolCall("1", "set", {"rate": float("inf")})])
