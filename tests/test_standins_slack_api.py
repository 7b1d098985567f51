"""The Slack stand-in refuses what Slack refuses, so that tests against it mean something."""

from collections.abc import Iterator

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from standins.slack_api import SlackApi
from standins.slack_api.world import SlackError


@pytest.fixture
def api() -> Iterator[SlackApi]:
    with SlackApi.running() as server:
        yield server


@pytest.fixture
async def client(api: SlackApi) -> AsyncWebClient:
    return AsyncWebClient(token=api.bot_token, base_url=api.url, retry_handlers=[])


HELLO = {"channel": "D0ALICE", "markdown_text": "hello"}


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("chat.postMessage", {"channel": "D0ALICE"}, "no_text"),
        ("chat.postMessage", {"channel": "D0NOBODY", "text": "x"}, "channel_not_found"),
        ("chat.postMessage", {"channel": "C0OTHER", "text": "x"}, "not_in_channel"),
        ("chat.postMessage", HELLO | {"text": "x"}, "markdown_text_conflict"),
        ("chat.postMessage", HELLO | {"markdown_text": "x" * 12_001}, "msg_too_long"),
        ("chat.postMessage", HELLO | {"thread_ts": "1.1"}, "thread_not_found"),
        ("chat.postMessage", HELLO | {"metadata": {"event_type": "x"}}, "invalid_metadata_format"),
        ("chat.postMessage", HELLO | {"colour": "red"}, "invalid_arguments"),
        ("chat.startStream", {"channel": "D0ALICE"}, "invalid_arguments"),
        ("chat.startStream", {"channel": "C0GENERAL", "thread_ts": "1.1"}, "missing_recipient_team_id"),
        ("chat.startStream", {"channel": "D0ALICE", "thread_ts": "1.1", "metadata": {}}, "invalid_arguments"),
        ("chat.appendStream", {"channel": "D0ALICE", "ts": "1.1", "markdown_text": "x"}, "message_not_found"),
        (
            "agents.sessions.setStatus",
            {"channel_id": "D0ALICE", "thread_ts": "1.1", "status": "busy"},
            "invalid_arguments",
        ),
        ("users.info", {"user": "U0ALICE"}, "user_not_found"),  # what is read takes no JSON
        ("no.such.method", {}, "unknown_method"),
    ],
)
async def test_what_slack_refuses_is_refused(client: AsyncWebClient, method: str, params: dict, error: str) -> None:
    with pytest.raises(SlackApiError) as caught:
        await client.api_call(method, json=params)
    assert caught.value.response["error"] == error


async def test_a_wrong_token_is_refused(api: SlackApi) -> None:
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await AsyncWebClient(token="xoxb-wrong", base_url=api.url, retry_handlers=[]).auth_test()


async def test_streams_live_and_end_as_slacks_do(api: SlackApi, client: AsyncWebClient) -> None:
    ts = api.person_says("hello", deliver=False)
    stream = await client.chat_stream(channel="D0ALICE", thread_ts=ts, buffer_size=1)
    await stream.append(markdown_text="one ")
    post = api.world.posts[-1]
    with pytest.raises(SlackApiError, match="streaming_state_conflict"):
        await client.api_call("chat.update", json={"channel": "D0ALICE", "ts": post.ts, "markdown_text": "x"})
    await stream.append(markdown_text="two")
    assert api.end_streams() == 1
    with pytest.raises(SlackApiError, match="message_not_in_streaming_state"):
        await stream.append(markdown_text=" three")
    assert post.shown == "one two"


async def test_threads_are_read_page_by_page_with_their_metadata(api: SlackApi, client: AsyncWebClient) -> None:
    ts = api.person_says("hello", deliver=False)
    metadata = {"event_type": "x", "event_payload": {"n": 1}}
    for _ in range(20):
        await client.api_call("chat.postMessage", json=HELLO | {"thread_ts": ts, "metadata": metadata})
    first = await client.conversations_replies(channel="D0ALICE", ts=ts, limit=200, include_all_metadata=True)
    cursor = first["response_metadata"]["next_cursor"]
    rest = await client.conversations_replies(channel="D0ALICE", ts=ts, cursor=cursor)
    assert (len(first["messages"]), len(rest["messages"])) == (15, 6)
    assert first["messages"][1]["metadata"] == metadata
    assert "metadata" not in rest["messages"][0]


def test_what_the_world_does_not_hold_is_said(api: SlackApi) -> None:
    with pytest.raises(SlackError, match="message_not_found"):
        api.world.find("D0ALICE", "1.1")
