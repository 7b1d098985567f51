"""The methods that read, that tell of people and files, and that open views."""

from typing import Any

from standins.slack_api.blocks import check_blocks
from standins.slack_api.chat import Params, method, require
from standins.slack_api.world import APP_ID, BOT_ID, BOT_USER, TEAM, Post, SlackError, World


@method("auth.test")
def auth_test(world: World, params: Params) -> dict[str, Any]:
    team = world.team_of(params["token"]) or TEAM
    rotating = {"expires_in": world.token_seconds} if params["token"].startswith("xoxe.") else {}
    return {**rotating, "team_id": team, "team": f"Team {team}", "user_id": BOT_USER, "user": "botty", "bot_id": BOT_ID}


@method("users.info", "user", "include_locale", scope="users:read")
def users_info(world: World, params: Params) -> dict[str, Any]:
    user = world.users.get(str(params.get("user")))
    if user is None:
        raise SlackError("user_not_found")
    return {"user": {"team_id": TEAM, "is_admin": False, "is_owner": False, "is_primary_owner": False, **user}}


@method("conversations.open", "users", scope="im:write")
def conversations_open(world: World, params: Params) -> dict[str, Any]:
    channel = world.ims.get(str(params.get("users")))
    if channel is None:
        raise SlackError("user_not_found")
    return {"channel": {"id": channel}}


@method("conversations.info", "channel", scope="channels:read")
def conversations_info(world: World, params: Params) -> dict[str, Any]:
    channel = str(params.get("channel"))
    if BOT_USER not in world.channels.get(channel, ()):
        raise SlackError("channel_not_found")
    name = world.channel_names.get(channel, channel.removeprefix("C0").lower())
    found: dict[str, Any] = {"id": channel, "name": name}
    if channel in world.code_channels:  # Source: docs.slack.dev/ai/slack-code/code-channel-properties
        session = {"status": "active", "encoded_agent_bot_user_ids": world.code_channels[channel]}
        found |= {"record_type": "agent_channel", "properties": {"agent_session": session, "code_channel": {}}}
    return {"channel": found}


@method(
    "conversations.replies",
    *("channel", "ts", "oldest", "latest", "inclusive", "limit", "cursor", "include_all_metadata"),
    scope="history",
)
def replies(world: World, params: Params) -> dict[str, Any]:
    channel = str(params.get("channel"))
    world.find(channel, params.get("ts"), "thread_not_found")
    return _page(world.thread(channel, str(params["ts"])), params)


@method(
    "conversations.history",
    *("channel", "oldest", "latest", "inclusive", "limit", "cursor", "include_all_metadata"),
    scope="history",
)
def history(world: World, params: Params) -> dict[str, Any]:
    posts = [post for post in world.posts if post.channel == params.get("channel") and post.thread_ts is None]
    return _page(posts[::-1], params)


def _page(posts: list[Post], params: Params) -> dict[str, Any]:
    is_inclusive = params.get("inclusive") in (True, "true", "1")
    oldest, latest = str(params.get("oldest") or "0"), str(params.get("latest") or "9999999999")
    found = [
        post
        for post in posts
        if oldest < post.ts < latest or (is_inclusive and post.ts in (oldest, latest)) or post.ts == params.get("ts")
    ]
    begin, size = int(params.get("cursor") or 0), min(int(params.get("limit") or 15), 15)
    wires = [post.wire() for post in found[begin : begin + size]]
    if params.get("include_all_metadata") not in (True, "true", "1"):
        wires = [{name: value for name, value in wire.items() if name != "metadata"} for wire in wires]
    has_more = begin + size < len(found)
    metadata = {"next_cursor": str(begin + size)} if has_more else {}
    return {"messages": wires, "has_more": has_more, "response_metadata": metadata}


@method("files.info", "file", scope="files:read")
def files_info(world: World, params: Params) -> dict[str, Any]:
    file = world.files.get(str(params.get("file")))
    if file is None:
        raise SlackError("file_not_found")
    return {"file": file}


@method("files.getUploadURLExternal", "filename", "length", scope="files:write")
def upload_url(world: World, params: Params) -> dict[str, Any]:
    require(params, "filename", "length")
    file_id = world.next_id("F")
    world.uploads[file_id] = {"name": params["filename"], "length": int(params["length"])}
    return {"upload_url": f"{params['url']}/upload/{file_id}", "file_id": file_id}


@method("files.completeUploadExternal", "files", "channel_id", "thread_ts", "initial_comment", scope="files:write")
def complete_upload(world: World, params: Params) -> dict[str, Any]:
    files = []
    for each in params["files"]:
        upload = world.uploads.get(each["id"])
        if upload is None or len(world.file_bytes.get(each["id"], b"")) != upload["length"]:
            raise SlackError("file_not_found")
        files.append({"id": each["id"], "name": upload["name"], "title": each.get("title"), "size": upload["length"]})
    channel = str(params["channel_id"])
    if BOT_USER not in world.channels.get(channel, ()):
        raise SlackError("channel_not_found")
    post = Post(channel, world.next_ts(), BOT_USER, params.get("initial_comment") or "", bot_id=BOT_ID, files=files)
    post.thread_ts = params.get("thread_ts")
    world.add(post)
    return {"files": files}


@method("views.publish", "user_id", "view")
def views_publish(world: World, params: Params) -> dict[str, Any]:
    if params["view"]["type"] != "home" or len(params["view"]["blocks"]) > 100:
        raise SlackError("invalid_arguments")
    check_blocks(params["view"]["blocks"][:50])
    world.views[str(params["user_id"])] = params["view"]
    return {"view": params["view"]}


@method("views.open", "trigger_id", "view")
def views_open(world: World, params: Params) -> dict[str, Any]:
    view = params["view"]
    if view["type"] != "modal" or len(view["title"]["text"]) > 24 or len(view.get("private_metadata", "")) > 3000:
        raise SlackError("invalid_arguments")
    opened = {**view, "id": world.next_id("V"), "trigger_id": params["trigger_id"]}
    world.modals.append(opened)
    return {"view": opened}


@method(
    "agents.sessions.setStatus", "channel_id", "thread_ts", "status", "title", "initiator_user_id", scope="chat:write"
)
def agent_status(world: World, params: Params) -> dict[str, Any]:
    if not world.is_agent:
        raise SlackError("unknown_method")
    if params.get("status") not in ("active", "processing", "suspended", "closed"):
        raise SlackError("invalid_arguments")
    # Without it, the session is that of a code channel. Source: docs.slack.dev/ai/slack-code.
    require(params, "channel_id", *(() if params.get("channel_id") in world.code_channels else ("thread_ts",)))
    if BOT_USER not in world.channels.get(str(params["channel_id"]), ()):
        raise SlackError("channel_not_found")
    world.statuses.append((params["channel_id"], params.get("thread_ts"), params["status"]))
    warning = {} if world.has_stop_button else {"warning": "missing_agent_session_stopped_event_subscription"}
    return {"agent_status": params["status"], **warning}


@method("assistant.threads.setStatus", "channel_id", "thread_ts", "status", "loading_messages", scope="assistant:write")
def assistant_status(world: World, params: Params) -> dict[str, Any]:
    require(params, "channel_id", "thread_ts")
    world.statuses.append((params["channel_id"], params["thread_ts"], params["status"]))
    return {}


@method("apps.connections.open")
def connections_open(world: World, params: Params) -> dict[str, Any]:
    if not str(params["token"]).startswith("xapp-"):
        raise SlackError("not_allowed_token_type")
    return {"url": params["url"].replace("http://", "ws://") + "/socket"}


@method("oauth.v2.access", "code", "client_id", "client_secret", "redirect_uri", "grant_type", "refresh_token")
def oauth_access(world: World, params: Params) -> dict[str, Any]:
    if params.get("grant_type") == "refresh_token":
        team = world.refresh_tokens.pop(str(params.get("refresh_token")), None)
        if team is None:  # each is good for one new token
            raise SlackError("invalid_refresh_token")
    else:
        team = world.codes.pop(str(params.get("code")), None)
        if team is None:
            raise SlackError("invalid_code")
    token, rotating = f"xoxb-of-{team}", dict[str, Any]()
    if world.rotates:
        token = f"xoxe.xoxb-{world.next_id('R')}-of-{team}"
        rotating = {"refresh_token": f"xoxe-{world.next_id('R')}", "expires_in": world.token_seconds}
        world.refresh_tokens[rotating["refresh_token"]] = team
    world.tokens[token] = team
    return {
        **rotating,
        "access_token": token,
        "token_type": "bot",
        "scope": "chat:write",
        "bot_user_id": BOT_USER,
        "app_id": APP_ID,
        "team": {"id": team, "name": f"Team {team}"},
        "authed_user": {"id": "U0ALICE"},
        "is_enterprise_install": False,
    }


@method("agents.sessions.rename", "channel_id", "thread_ts", "title", scope="chat:write")
def rename_session(world: World, params: Params) -> dict[str, Any]:
    if not world.is_agent or "agents.sessions.rename" in world.without:
        raise SlackError("unknown_method")
    require(params, "channel_id", "title")
    if not 1 <= len(params["title"]) <= 200:
        raise SlackError("invalid_arguments")
    place = params["channel_id"], str(params.get("thread_ts"))
    if place not in {(channel, thread) for channel, thread, _ in world.statuses}:
        raise SlackError("session_not_found")
    world.titles[place] = params["title"]
    return {"title": params["title"]}


@method("assistant.threads.setSuggestedPrompts", "channel_id", "prompts", "title", "thread_ts", scope="assistant:write")
def suggest(world: World, params: Params) -> dict[str, Any]:
    if "assistant.threads.setSuggestedPrompts" in world.without:
        raise SlackError("unknown_method")
    require(params, "channel_id")
    prompts = params.get("prompts")
    if not isinstance(prompts, list) or len(prompts) > 4 or any(set(each) != {"title", "message"} for each in prompts):
        raise SlackError("invalid_arguments")
    if not params.get("thread_ts"):  # with it, an agent's call fails without a word
        world.prompts[params["channel_id"]] = prompts
    return {}


@method("canvases.getContent", "canvas_id", "content_type", scope="canvases:read")
def canvas_content(world: World, params: Params) -> dict[str, Any]:
    if "canvases.getContent" in world.without:
        raise SlackError("unknown_method")
    content = world.canvases.get(str(params.get("canvas_id")))
    if content is None:
        raise SlackError("canvas_not_found")
    return {"content": content}


@method("slackLists.items.list", "list_id", "limit", "cursor", "archived", scope="lists:read")
def list_items(world: World, params: Params) -> dict[str, Any]:
    if "slackLists.items.list" in world.without:
        raise SlackError("unknown_method")
    items = world.lists.get(str(params.get("list_id")))
    if items is None:
        raise SlackError("list_not_found")
    begin, size = int(params.get("cursor") or 0), int(params.get("limit") or 100)
    more = {"next_cursor": str(begin + size)} if begin + size < len(items) else {}
    return {"items": items[begin : begin + size], "response_metadata": more}
