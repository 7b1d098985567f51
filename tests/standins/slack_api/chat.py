"""The methods that write messages and streams, as strict as their documents."""

from collections.abc import Callable
from typing import Any

from standins.slack_api.blocks import MAX_MARKDOWN, check_blocks, check_task
from standins.slack_api.world import BOT_ID, BOT_USER, Post, SlackError, World

Params = dict[str, Any]
Method = Callable[[World, Params], dict[str, Any]]
methods: dict[str, tuple[Method, frozenset[str], str]] = {}

MAX_TEXT = 40_000


def method(name: str, *arguments: str, scope: str = "") -> Callable[[Method], Method]:
    """Enter a method into the table, with the arguments that it knows and the scope that it needs."""

    def enter(function: Method) -> Method:
        methods[name] = (function, frozenset(arguments), scope)
        return function

    return enter


def require(params: Params, *names: str) -> None:
    for name in names:
        if not params.get(name):
            raise SlackError("invalid_arguments", response_metadata={"messages": [f"missing required field: {name}"]})


def _channel(world: World, params: Params) -> str:
    require(params, "channel")
    channel = str(params["channel"])
    if channel not in world.channels:
        raise SlackError("channel_not_found")
    if BOT_USER not in world.channels[channel]:
        raise SlackError("not_in_channel")
    return channel


def _thread(world: World, params: Params, channel: str) -> str | None:
    thread_ts = params.get("thread_ts")
    if thread_ts is None:
        return None
    parent = world.find(channel, thread_ts, "thread_not_found")
    if parent.thread_ts not in (None, parent.ts):
        raise SlackError("cannot_reply_to_message")  # "avoid using a reply's ts value; use its parent's instead"
    return parent.ts


def _content(world: World, params: Params) -> dict[str, Any]:
    """Return what a message says.

    Raises:
        SlackError: it says nothing, or more than it may.
    """
    text, markdown, blocks = params.get("text") or "", params.get("markdown_text"), params.get("blocks") or []
    if markdown is not None and (text or blocks):
        raise SlackError("markdown_text_conflict")
    if not text and not blocks and not markdown:
        raise SlackError("no_text")
    if len(text) > MAX_TEXT or len(markdown or "") > MAX_MARKDOWN:
        raise SlackError("msg_too_long")
    check_blocks(blocks, world)
    return {"text": text, "markdown_text": markdown, "blocks": list(blocks)}


def _metadata(params: Params) -> dict[str, Any] | None:
    metadata = params.get("metadata")
    if metadata is not None and set(metadata) != {"event_type", "event_payload"}:
        raise SlackError("invalid_metadata_format")
    return metadata


@method(
    "chat.postMessage",
    *("channel", "text", "markdown_text", "blocks", "thread_ts", "metadata", "unfurl_links", "unfurl_media", "mrkdwn"),
    scope="chat:write",
)
def post_message(world: World, params: Params) -> dict[str, Any]:
    channel = _channel(world, params)
    post = world.add(
        Post(
            channel,
            world.next_ts(),
            BOT_USER,
            **_content(world, params),
            thread_ts=_thread(world, params, channel),
            metadata=_metadata(params),
            bot_id=BOT_ID,
            unfurl=params.get("unfurl_links", True),
            mrkdwn=params.get("mrkdwn", True),
        )
    )
    if post.unfurl or params.get("unfurl_media", True):
        world.preview(post.shown)
    return {"channel": channel, "ts": post.ts, "message": post.wire()}


@method("chat.postEphemeral", "channel", "user", "text", "blocks", "thread_ts", scope="chat:write")
def post_ephemeral(world: World, params: Params) -> dict[str, Any]:
    channel = _channel(world, params)
    require(params, "user")
    if params["user"] not in world.channels[channel]:
        raise SlackError("user_not_in_channel")
    _thread(world, params, channel)
    world.whispers.append((channel, str(params["user"]), str(_content(world, params)["text"])))
    return {"message_ts": world.next_ts()}


@method("chat.update", "channel", "ts", "text", "markdown_text", "blocks", "metadata", scope="chat:write")
def update(world: World, params: Params) -> dict[str, Any]:
    post = world.find(_channel(world, params), params.get("ts"))
    if post.user != BOT_USER:
        raise SlackError("cant_update_message")
    if post.is_streaming:
        raise SlackError("streaming_state_conflict")
    given = _content(world, params)
    if "blocks" not in params and not params.get("text"):
        del given["blocks"]  # they stay as they are
    for name, value in given.items():
        setattr(post, name, value)
    post.metadata = _metadata(params) or post.metadata
    world.preview(post.shown)  # knows no way to be told otherwise, no more than streams do
    post.states.append(post.shown)
    return {"channel": post.channel, "ts": post.ts, "text": post.shown}


@method("chat.delete", "channel", "ts", scope="chat:write")
def delete(world: World, params: Params) -> dict[str, Any]:
    post = world.find(_channel(world, params), params.get("ts"))
    world.posts.remove(post)
    return {"channel": post.channel, "ts": post.ts}


@method(
    "chat.startStream",
    *("channel", "thread_ts", "markdown_text", "chunks", "recipient_team_id", "recipient_user_id", "task_display_mode"),
    scope="chat:write",
)
def start_stream(world: World, params: Params) -> dict[str, Any]:
    channel = _channel(world, params)
    if world.is_dm(channel) or "top-level streams" in world.without:  # channels alone take streams outside of threads
        require(params, "thread_ts")
    if not world.is_dm(channel):
        for name in ("recipient_team_id", "recipient_user_id"):
            if not params.get(name):
                raise SlackError(f"missing_{name}")
    post = Post(channel, world.next_ts(), BOT_USER, bot_id=BOT_ID, markdown_text="", is_streaming=True)
    post.thread_ts = _thread(world, params, channel)
    mode = params.get("task_display_mode")
    if mode is not None and (mode not in ("plan", "timeline") or "task_display_mode" in world.without):
        raise SlackError("invalid_arguments")
    post.task_display_mode = mode or "timeline"
    _grow(world, post, params)
    world.add(post)
    world.preview(post.shown)
    return {"channel": channel, "ts": post.ts}


@method("chat.appendStream", "channel", "ts", "markdown_text", "chunks", scope="chat:write")
def append_stream(world: World, params: Params) -> dict[str, Any]:
    post = _streaming(world, params)
    if not params.get("markdown_text") and not params.get("chunks"):
        raise SlackError("no_text")
    _grow(world, post, params)
    world.preview(post.shown)
    return {"channel": post.channel, "ts": post.ts}


@method(
    "chat.stopStream",
    *("channel", "ts", "markdown_text", "chunks", "blocks", "metadata", "session_status"),
    scope="chat:write",
)
def stop_stream(world: World, params: Params) -> dict[str, Any]:
    post = _streaming(world, params)
    check_blocks(params.get("blocks") or [], world)
    _end_session(world, post, params)
    _grow(world, post, params)
    world.preview(post.shown)
    post.metadata = _metadata(params)
    post.blocks += list(params.get("blocks") or [])
    post.is_streaming = False
    return {"channel": post.channel, "ts": post.ts, "message": post.wire()}


def _streaming(world: World, params: Params) -> Post:
    post = world.find(_channel(world, params), params.get("ts"))
    if not post.is_streaming:
        raise SlackError("message_not_in_streaming_state")
    return post


def _end_session(world: World, post: Post, params: Params) -> None:
    status = params.get("session_status")
    if status is None:
        return
    if "session_status" in world.without or status not in ("active", "suspended", "closed"):
        raise SlackError("invalid_arguments")
    world.statuses.append((post.channel, post.thread_ts, status))


def _grow(world: World, post: Post, params: Params) -> None:
    text, chunks = params.get("markdown_text") or "", params.get("chunks") or []
    blocks = [block for chunk in chunks if chunk["type"] == "blocks" for block in chunk["blocks"]]
    check_blocks(blocks, world)
    said = text + "".join(chunk["text"] for chunk in chunks if chunk["type"] == "markdown_text")
    if len(said) > MAX_MARKDOWN:
        raise SlackError("msg_too_long")
    for chunk in chunks:
        match chunk["type"]:
            case "markdown_text":
                text += chunk["text"]
            case "task_update":
                check_task(chunk)
                _take_task(post, chunk)
            case "plan_update":
                if not chunk["title"] or post.task_display_mode != "plan":
                    raise SlackError("invalid_chunks")
                post.plan = chunk["title"]
            case "blocks":
                text += "".join(f"\n⟦{block['type']}⟧\n" for block in chunk["blocks"])
                post.blocks += chunk["blocks"]
            case _:
                raise SlackError("invalid_chunks")
    post.markdown_text = (post.markdown_text or "") + text
    post.states.append(post.markdown_text)


def _take_task(post: Post, chunk: dict[str, Any]) -> None:
    """Take what is told of a tool; its details and sources are added to each other."""
    before = post.tasks.get(chunk["id"], {})
    added = {"details": before.get("details", "") + chunk.get("details", "")}
    added["sources"] = before.get("sources", []) + chunk.get("sources", [])
    post.tasks[chunk["id"]] = chunk | {name: each for name, each in added.items() if each}
