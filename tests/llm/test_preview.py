"""A request as it would be sent, without sending it."""

from botservice import OpenAIChatLLM

HELLO = [{"role": "user", "content": "hello"}]


def test_a_preview_says_where_a_call_goes_and_with_what_and_has_no_key():
    llm = OpenAIChatLLM(model="m", base_url="http://127.0.0.1:9/v1/", api_key="sk-a-key-of-a-test", api="chat")
    shown = llm.preview(HELLO)
    assert shown["url"] == "http://127.0.0.1:9/v1/chat/completions"
    assert (shown["body"]["model"], shown["body"]["messages"]) == ("m", HELLO)
    assert "sk-a-key" not in repr(shown)


def test_a_preview_follows_the_wire():
    llm = OpenAIChatLLM(model="m", base_url="http://127.0.0.1:9/v1", api_key="k" * 20, api="responses")
    shown = llm.preview(HELLO)
    assert shown["url"].endswith("/v1/responses")
    assert "input" in shown["body"]
