"""Probes of Slack's Web API."""

import time
from collections.abc import Mapping
from typing import Any, Final

from probes import Differs, Finding, Probe, Refused, Room, expect_refusal, try_all

from transports.slack.answer_blocks import markdown, read_page
from transports.slack.client import SlackClient, SlackFailure

NOT_TRIED: Final = {
    "apps.connections.open": "it would open a socket beside that of a running bot",
    "views.open": "needs a press of a button",
    "files.info": "needs a file that somebody has sent",
    "files.completeUploadExternal": "a file cannot be deleted by the bot's scopes",
    "chat.delete": "all that was sent is deleted by it, and what stays is printed",
    "oauth.v2.access": "needs somebody who installs the app",
}
_MARKDOWN: Final = 12_000
_READING: Final = (
    "auth.test",
    "files.getUploadURLExternal",
    "conversations.history",
    "conversations.info",
    "conversations.replies",
    "users.info",
)


async def find_out(environ: Mapping[str, str]) -> list[Finding]:
    """Return what the probes find.

    Raises:
        KeyError: a setting is missing.
    """
    client, token = SlackClient(environ.get("SLACK_API_URL", "https://slack.com/api")), environ["SLACK_BOT_TOKEN"]
    places = {"channel": environ["LIVE_SLACK_CHANNEL"]}
    if environ.get("LIVE_SLACK_USER"):
        places["person"] = environ["LIVE_SLACK_USER"]

    async def call(method: str, **parameters: Any) -> Any:
        try:
            return await (client.ask if method in _READING else client.call)(token, method, **parameters)
        except SlackFailure as failure:
            raise Refused(str(failure), is_unknown=failure.code == "unknown_method") from failure

    room = Room(call, places)
    try:
        return await try_all("slack", PROBES, room, pause=float(environ.get("LIVE_PAUSE_SECONDS", "1.1")))
    finally:
        for channel, ts in room.known.get("messages", ()):
            try:
                await client.call(token, "chat.delete", channel=channel, ts=ts)
            except SlackFailure as failure:
                print(f"message {ts} stays: {failure}")
        await client.close()


async def _post(room: Room, **parameters: Any) -> Any:
    sent = await room.call("chat.postMessage", channel=room.places["channel"], **parameters)
    room.known.setdefault("messages", []).append((sent["channel"], sent["ts"]))
    return sent


async def _thread(room: Room) -> dict[str, Any]:
    """Return where a thread is, which is begun once."""
    if "thread" not in room.known:
        room.known["thread"] = (await _post(room, text="a thread for tests"))["ts"]
    return {"channel": room.places["channel"], "thread_ts": room.known["thread"]}


def _check(*, holds: bool, said: object) -> None:
    if not holds:
        raise Differs(str(said))


async def _who(room: Room) -> None:
    me = await room.call("auth.test")
    _check(holds=bool(me["user_id"] and me["team_id"]), said=me)
    room.known["team"] = me["team_id"]


async def _message(room: Room) -> None:
    metadata = {"event_type": "delivery", "event_payload": {"id": "1-2"}}
    sent = await _post(room, markdown_text="**bold** and a [link](https://example.com)", metadata=metadata)
    found = await room.call(
        "conversations.history",
        channel=room.places["channel"],
        oldest=sent["ts"],
        inclusive="true",
        limit="1",
        include_all_metadata="true",
    )
    _check(holds=found["messages"][0].get("metadata", {}).get("event_payload") == {"id": "1-2"}, said=found["messages"])


async def _longest(room: Room) -> None:
    await _post(room, markdown_text="x " * (_MARKDOWN // 2))
    await expect_refusal(_post(room, markdown_text="x" * (_MARKDOWN + 1)), "msg_too_long", "invalid_arguments")


async def _replies(room: Room) -> None:
    where = await _thread(room)
    found = await room.call("conversations.replies", channel=where["channel"], ts=where["thread_ts"], limit="1")
    _check(holds=found["messages"][0]["ts"] == where["thread_ts"], said=found["messages"])


async def _edit(room: Room) -> None:
    sent = await _post(room, text="first")
    await room.call("chat.update", channel=sent["channel"], ts=sent["ts"], markdown_text="second")


async def _stream(room: Room) -> None:
    where = await _thread(room)
    who = {"recipient_user_id": room.places["person"], "recipient_team_id": room.known.get("team")}
    opened = await room.call("chat.startStream", **where, **who, markdown_text="one ", task_display_mode="timeline")
    stream = {"channel": opened["channel"], "ts": opened["ts"]}
    room.known.setdefault("messages", []).append((opened["channel"], opened["ts"]))
    task = {"type": "task_update", "id": "1", "title": "looks something up", "status": "in_progress"}
    await room.call("chat.appendStream", **stream, chunks=[task])
    await room.call("chat.stopStream", **stream, markdown_text="two")
    await expect_refusal(
        room.call("chat.appendStream", **stream, markdown_text="three"), "message_not_in_streaming_state"
    )


async def _session(room: Room) -> None:
    where = await _thread(room)
    place = {"channel_id": where["channel"], "thread_ts": where["thread_ts"]}
    for status in ("processing", "suspended", "active"):
        initiator = {"initiator_user_id": room.places["person"]} if status == "processing" else {}
        await room.call("agents.sessions.setStatus", **place, status=status, **initiator)


async def _title(room: Room) -> None:
    where = await _thread(room)
    await room.call(
        "agents.sessions.rename", channel_id=where["channel"], thread_ts=where["thread_ts"], title="A title for tests"
    )


async def _line(room: Room) -> None:
    where = await _thread(room)
    await room.call(
        "assistant.threads.setStatus", channel_id=where["channel"], thread_ts=where["thread_ts"], status="is thinking"
    )


async def _prompts(room: Room) -> None:
    opened = await room.call("conversations.open", users=room.places["person"])
    prompts = [{"title": "Remind me", "message": "Remind me of the dentist tomorrow at nine"}]
    await room.call("assistant.threads.setSuggestedPrompts", channel_id=opened["channel"]["id"], prompts=prompts)


async def _figures(room: Room, text: str) -> None:
    """Post what holds figures, as answers are posted."""
    page = read_page(text)
    _check(holds=bool(page.needs), said="no figure is drawn")
    await _post(room, text=text, blocks=page.blocks())


async def _table(room: Room) -> None:
    await _figures(room, "| Tea | Cups |\n|---|---:|\n| Assam | 3 |\n| Mint | 5 |\n")


async def _chart(room: Room) -> None:
    await _figures(
        room, "```chart\nbar: Cups of tea\n| Day | Assam |\n|---|---|\n| Monday | 3 |\n| Friday | 5 |\n```\n"
    )


async def _whisper(room: Room) -> None:
    text = "for one person alone"
    where = {"channel": room.places["channel"], "user": room.places["person"]}
    await room.call("chat.postEphemeral", **where, text=text, blocks=[markdown(text)])


async def _channel(room: Room) -> None:
    found = await room.call("conversations.info", channel=room.places["channel"])
    _check(holds=bool(found["channel"].get("name")), said=sorted(found["channel"]))


async def _bad_blocks(room: Room) -> None:
    await expect_refusal(_post(room, text="x", blocks=[{"type": "nobody_has_this"}]), "invalid_blocks")


async def _person(room: Room) -> None:
    found = await room.call("users.info", user=room.places["person"])
    _check(holds="profile" in found["user"], said=sorted(found["user"]))


async def _home(room: Room) -> None:
    view = {"type": "home", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "a page for tests"}}]}
    await room.call("views.publish", user_id=room.places["person"], view=view)


async def _upload(room: Room) -> None:
    data = b"a file for tests"
    name = f"live-{int(time.time())}.txt"
    place = await room.call("files.getUploadURLExternal", filename=name, length=len(data))
    _check(holds=bool(place["upload_url"] and place["file_id"]), said=sorted(place))


async def _unknown(room: Room) -> None:
    try:
        await room.call("nobody.has.this")
    except Refused as refused:
        _check(holds=refused.is_unknown, said=refused)
        return
    raise Differs("it was taken")


PROBES: Final = [
    Probe("who the bot is", ["auth.test"], "user_id and team_id", _who),
    Probe("a message", ["chat.postMessage", "conversations.history"], "metadata comes back", _message),
    Probe("the longest message", ["chat.postMessage"], "12,000 characters of markdown_text", _longest),
    Probe("a thread", ["conversations.replies"], "its first message comes first", _replies),
    Probe("an edit", ["chat.update"], "markdown_text takes the place of text", _edit),
    Probe(
        "a message that grows",
        ["chat.startStream", "chat.appendStream", "chat.stopStream"],
        "tasks and text; nothing after its end",
        _stream,
        ["person"],
        has_fallback=True,
    ),
    Probe(
        "the state of a session",
        ["agents.sessions.setStatus"],
        "processing, suspended, active",
        _session,
        ["person"],
        has_fallback=True,
    ),
    Probe("the title of a session", ["agents.sessions.rename"], "1 to 200 characters", _title, has_fallback=True),
    Probe("the line of older apps", ["assistant.threads.setStatus"], "a line that goes", _line, has_fallback=True),
    Probe(
        "suggested prompts",
        ["assistant.threads.setSuggestedPrompts", "conversations.open"],
        "without thread_ts",
        _prompts,
        ["person"],
        has_fallback=True,
    ),
    Probe("a table", ["chat.postMessage"], "data_table", _table, has_fallback=True),
    Probe("a chart", ["chat.postMessage"], "data_visualization", _chart, has_fallback=True),
    Probe(
        "a message for one person alone",
        ["chat.postEphemeral"],
        "a member of the channel reads it",
        _whisper,
        ["person"],
        has_fallback=True,
    ),
    Probe("a channel", ["conversations.info"], "its name", _channel, has_fallback=True),
    Probe("blocks that nobody has", ["chat.postMessage"], "invalid_blocks", _bad_blocks),
    Probe("a person", ["users.info"], "a profile", _person, ["person"]),
    Probe(
        "the Home tab",
        ["views.publish"],
        "it is shown; a running bot publishes its own at the next visit",
        _home,
        ["person"],
    ),
    Probe("a file", ["files.getUploadURLExternal"], "an address and an id", _upload),
    Probe("a method that nobody has", [], "unknown_method", _unknown),
]
