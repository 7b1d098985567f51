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


def table(rows: int = 1, text: str = "x", columns: int = 1, **more: object) -> dict:
    row = [{"type": "raw_text", "text": text}] * columns
    return {"type": "data_table", "caption": "c", "rows": [row] * (rows + 1), **more}


CHART = {"type": "data_visualization", "title": "t", "chart": {"type": "pie", "segments": [{"label": "a", "value": 1}]}}
ODD = [
    table(101),
    table(0),
    table(columns=21),
    table(caption=""),
    table(page_size=101),
    table(text=""),
    table(colour="red"),
    CHART | {"title": "x" * 51},
    CHART | {"chart": {"type": "pie", "segments": [{"label": "a", "value": 1}] * 7}},
    CHART | {"chart": {"type": "radar"}},
    {"type": "no_such_block"},
]
PROMPT = {"title": "t", "message": "m"}
SUGGESTED = {"channel_id": "D0ALICE", "prompts": [PROMPT]}
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
        ("agents.sessions.rename", {"channel_id": "D0ALICE", "title": "x", "thread_ts": "1.1"}, "session_not_found"),
        ("agents.sessions.rename", {"channel_id": "D0ALICE", "title": "x" * 201}, "invalid_arguments"),
        ("assistant.threads.setSuggestedPrompts", {"channel_id": "D0ALICE", "prompts": "x"}, "invalid_arguments"),
        ("assistant.threads.setSuggestedPrompts", SUGGESTED | {"prompts": [PROMPT] * 5}, "invalid_arguments"),
        ("canvases.getContent", {"canvas_id": "F1"}, "canvas_not_found"),
        ("slackLists.items.list", {"list_id": "F1"}, "list_not_found"),
        ("conversations.info", {"channel": "C0GENERAL"}, "channel_not_found"),  # what is read takes no JSON
        *(("chat.postMessage", {"channel": "D0ALICE", "blocks": [each]}, "invalid_blocks") for each in ODD),
        ("chat.postMessage", {"channel": "D0ALICE", "blocks": [CHART] * 3}, "invalid_blocks"),
        ("chat.postMessage", {"channel": "D0ALICE", "blocks": [table(50, "x" * 150)] * 2}, "invalid_blocks"),
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


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        ({"type": "plan_update", "title": "Steps"}, "invalid_chunks"),  # only where the stream shows a plan
        ({"type": "task_update", "id": "1", "title": "t", "status": "done"}, "invalid_chunks"),
        ({"type": "task_update", "id": "1", "title": "t", "status": "complete", "colour": "red"}, "invalid_chunks"),
        ({"type": "blocks", "blocks": [table(101)]}, "invalid_blocks"),
        ({"type": "sound"}, "invalid_chunks"),
    ],
)
async def test_a_stream_takes_no_odd_pieces(api: SlackApi, client: AsyncWebClient, chunk: dict, error: str) -> None:
    ts = api.person_says("hello", deliver=False)
    start = await client.api_call("chat.startStream", json={"channel": "D0ALICE", "thread_ts": ts})
    with pytest.raises(SlackApiError) as caught:
        await client.api_call("chat.appendStream", json={"channel": "D0ALICE", "ts": start["ts"], "chunks": [chunk]})
    assert caught.value.response["error"] == error


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
