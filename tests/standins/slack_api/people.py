"""What people do in the workspace, and what is to be seen there."""

from typing import TYPE_CHECKING, Any

from standins.slack_api.world import APP_ID, BOT_USER, TEAM, Post

if TYPE_CHECKING:
    import threading

    from standins.slack_api.events import Events
    from standins.slack_api.world import World


class People:
    """The part of the stand-in that acts as its users."""

    world: "World"
    condition: "threading.Condition"
    events: "Events"

    @property
    def base(self) -> str:
        raise NotImplementedError

    def person_says(
        self,
        text: str,
        *,
        channel: str = "D0ALICE",
        user: str = "U0ALICE",
        thread_ts: str | None = None,
        files: list[dict[str, Any]] | None = None,
        team: str = TEAM,
        deliver: bool = True,
        **extra: Any,
    ) -> str:
        """Have a person write, deliver what the app is subscribed to, and return the message's ts."""
        with self.condition:
            post = Post(channel, self.world.next_ts(), user, text, thread_ts=thread_ts, files=files or [])
            self.world.add(post)
            self.condition.notify_all()
        event = self.message_event(post, **extra)
        if deliver:
            if f"<@{BOT_USER}>" in text and not self.world.is_dm(channel):
                mention = {name: value for name, value in event.items() if name not in ("channel_type", "subtype")}
                self.send_event({**mention, "type": "app_mention"}, team=team)
            self.send_event(event, team=team)
        return post.ts

    def app_says(
        self, text: str = "", *, channel: str = "C0GENERAL", app: str = "Grafana", deliver: bool = True, **parts: Any
    ) -> str:
        """Have another app write, as alerts do: often without a text, in attachments or blocks; return its ts."""
        with self.condition:
            post = Post(channel, self.world.next_ts(), "U0OTHERBOT", text, bot_id="B0OTHER", app_name=app, **parts)
            self.world.add(post)
            self.condition.notify_all()
        if deliver:
            self.send_event({**post.wire(), "channel": channel, "channel_type": "channel", "event_ts": post.ts})
        return post.ts

    def message_event(self, post: Post, **extra: Any) -> dict[str, Any]:
        kind = "im" if self.world.is_dm(post.channel) else "channel"
        event = {
            "type": "message",
            "user": post.user,
            "text": post.text,
            "ts": post.ts,
            "channel": post.channel,
            "channel_type": kind,
            "event_ts": post.ts,
            "team": TEAM,
            "client_msg_id": f"client-{post.ts}",
            "blocks": [{"type": "rich_text", "block_id": "x", "elements": []}],
        }
        if post.thread_ts is not None:
            event["thread_ts"] = post.thread_ts
        if post.files:
            event |= {"files": post.files, "subtype": "file_share"}
        return {**event, **extra}

    def changed_event(self, channel: str, ts: str, text: str) -> dict[str, Any]:
        """Have a person change what they wrote, and return the event that says so."""
        with self.condition:
            post = self.world.find(channel, ts)
            before, post.text = post.wire(), text
            change = {"message": post.wire() | {"edited": {"user": post.user, "ts": ts}}, "previous_message": before}
            return self._change("message_changed", channel) | change

    def deleted_event(self, channel: str, ts: str) -> dict[str, Any]:
        """Have a person take back what they wrote, and return the event that says so: it has its place in a thread."""
        with self.condition:
            post = self.world.find(channel, ts)
            before = post.wire()
            if any(each is not post for each in self.world.thread(channel, ts)):
                post.user, post.text, post.markdown_text = "USLACKBOT", "This message was deleted.", None
                now = {**post.wire(), "subtype": "tombstone", "thread_ts": ts, "hidden": True}
                return self._change("message_changed", channel) | {"message": now, "previous_message": before}
            self.world.posts.remove(post)
            return self._change("message_deleted", channel) | {"deleted_ts": ts, "previous_message": before}

    def _change(self, subtype: str, channel: str) -> dict[str, Any]:
        at = self.world.next_ts()
        kind = "im" if self.world.is_dm(channel) else "channel"
        return {
            "type": "message",
            "subtype": subtype,
            "hidden": True,
            "channel": channel,
            "channel_type": kind,
            "ts": at,
            "event_ts": at,
        }

    def send_event(self, event: dict[str, Any], *, team: str = TEAM, event_id: str | None = None, **more: Any) -> str:
        """Deliver an event and return its id."""
        with self.condition:
            event_id = event_id or self.world.next_id("Ev")
        self.events.send("events_api", self.envelope(event, event_id, team) | more)
        return event_id

    def envelope(self, event: dict[str, Any], event_id: str, team: str = TEAM) -> dict[str, Any]:
        return {
            "token": "verification",
            "team_id": team,
            "api_app_id": APP_ID,
            "event": event,
            "type": "event_callback",
            "event_id": event_id,
            "event_time": 1_763_640_000,
            "authorizations": [{"team_id": team, "user_id": BOT_USER, "is_bot": True, "enterprise_id": None}],
            "is_ext_shared_channel": False,
        }

    def rename_session(self, channel: str, thread_ts: str, title: str, *, user: str = "U0ALICE") -> None:
        """Have a person give a session another title."""
        with self.condition:
            at = self.world.next_ts()
            self.world.titles[channel, thread_ts] = title
        place = {"channel": channel, "thread_ts": thread_ts, "event_ts": at}
        self.send_event({"type": "agent_session_title_changed", "title": title, "user": user, **place})

    def person_reacts(self, post: Post, name: str, *, user: str = "U0ALICE", is_removed: bool = False) -> None:
        """Have a person put a reaction at a message, or take it away; deliver it where the app is subscribed."""
        with self.condition:
            if ((user, name) in post.reactions) is not is_removed:
                return
            (post.reactions.remove if is_removed else post.reactions.append)((user, name))
            kind, scopes = "reaction_removed" if is_removed else "reaction_added", self.world.scopes
            is_told = kind in self.world.subscribed and (scopes is None or "reactions:read" in scopes)
            event = {
                "type": kind,
                "user": user,
                "reaction": name,
                "item_user": post.user,
                "item": {"type": "message", "channel": post.channel, "ts": post.ts},
                "event_ts": self.world.next_ts(),
            }
        if is_told:
            self.send_event(event)

    def command(self, text: str, *, channel: str = "C0GENERAL", user: str = "U0ALICE") -> str:
        """Have a person give the slash command; return the name of its response_url."""
        name = self.world.next_id("R")
        body = {
            "command": "/botservice",
            "text": text,
            "user_id": user,
            "user_name": self.world.users[user]["name"],
            "team_id": TEAM,
            "channel_id": channel,
            "channel_name": "general",
            "trigger_id": self.world.next_id("t"),
            "response_url": f"{self.base}/response/{name}",
            "api_app_id": APP_ID,
        }
        self.events.send("slash_commands", body, retries=False)
        return name

    def interact(self, kind: str, *, user: str = "U0ALICE", retries: bool = False, **fields: Any) -> dict[str, Any]:
        """Have a person press, choose or submit something; return the body that is delivered."""
        body = {
            "type": kind,
            "team": {"id": TEAM, "domain": "team"},
            "user": {"id": user, "team_id": TEAM, "name": self.world.users[user]["name"]},
            "api_app_id": APP_ID,
            "trigger_id": self.world.next_id("t"),
            **fields,
        }
        self.events.send("interactive", body, retries=retries)
        return body

    def press(self, post: Post, element: dict[str, Any], *, user: str = "U0ALICE", value: str | None = None) -> None:
        """Have a person press something in a message."""
        action = {
            "type": element["type"],
            "action_id": element["action_id"],
            "block_id": "b",
            "action_ts": self.world.next_ts(),
        }
        action["value"] = value if value is not None else element.get("value", "")
        container = {"type": "message", "message_ts": post.ts, "channel_id": post.channel}
        if post.thread_ts:
            container["thread_ts"] = post.thread_ts
        self.interact(
            "block_actions",
            user=user,
            actions=[action],
            channel={"id": post.channel, "name": "x"},
            message=post.wire(),
            container=container,
            response_url=f"{self.base}/response/pressed",
        )

    def add_file(self, name: str, data: bytes, mimetype: str, **extra: Any) -> dict[str, Any]:
        """Return a file that a person can send."""
        with self.condition:
            file_id = self.world.next_id("F")
            url = f"{self.base}/files/{file_id}"
            file = {
                "id": file_id,
                "name": name,
                "mimetype": mimetype,
                "size": len(data),
                "url_private": url,
                "url_private_download": url,
                "mode": "hosted",
                **extra,
            }
            self.world.files[file_id] = file
            self.world.file_bytes[file_id] = data
            return file

    def bot_posts(self, channel: str = "D0ALICE") -> list[Post]:
        """Return what the bot has written in a channel and does not write on any more."""
        with self.condition:
            return [
                post
                for post in self.world.posts
                if post.channel == channel and post.user == BOT_USER and not post.is_streaming
            ]

    def said(self, channel: str = "D0ALICE") -> list[str]:
        """Return the texts that the bot has written in a channel, without those that grow."""
        return [post.shown for post in self.bot_posts(channel)]

    def end_streams(self) -> int:
        """End every stream, as Slack does after five minutes; return how many there were."""
        with self.condition:
            growing = [post for post in self.world.posts if post.is_streaming]
            for post in growing:
                post.is_streaming = False
            return len(growing)
