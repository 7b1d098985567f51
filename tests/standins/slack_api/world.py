"""Everything that a workspace holds: people, channels, messages, streams, files."""

import itertools
import re
import time
from dataclasses import dataclass, field
from typing import Any

from standins.slack_api.mrkdwn import read_mrkdwn

TEAM = "T0001"
BOT_USER = "U0BOT"
BOT_ID = "B0BOT"
APP_ID = "A0001"


class SlackError(Exception):
    """A refusal, as the Web API words it."""

    def __init__(self, error: str, **extra: Any):
        super().__init__(error)
        self.error = error
        self.extra = extra


def _words(element: dict[str, Any]) -> str:
    """Return what is to be read of rich text: no sign of it is markup."""
    inner = element.get("elements", ())
    match element["type"]:
        case "rich_text":
            return "\n".join(_words(each) for each in inner).rstrip("\n")
        case "rich_text_list":
            return "\n".join(f"{'  ' * element.get('indent', 0)}• {_words(each)}" for each in inner)
        case "rich_text_section" | "rich_text_preformatted":
            return "".join(_words(each) for each in inner)
        case "date":
            return str(element.get("fallback") or element["format"])
        case _:
            return str(element.get("text", ""))


@dataclass(slots=True)
class Post:
    """A message as it stands in a channel."""

    channel: str
    ts: str
    user: str
    text: str = ""
    markdown_text: str | None = None
    blocks: list[dict[str, Any]] = field(default_factory=list)
    thread_ts: str | None = None
    metadata: dict[str, Any] | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    bot_id: str | None = None
    app_name: str | None = None
    is_streaming: bool = False
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    task_display_mode: str | None = None
    plan: str | None = None
    states: list[str] = field(default_factory=list)
    unfurl: bool = True
    mrkdwn: bool = True
    reactions: list[tuple[str, str]] = field(default_factory=list)

    @property
    def shown(self) -> str:
        """What is to be read."""
        if self.markdown_text is not None:
            return _unescaped(self.markdown_text)
        drawn = ("data_table", "data_visualization")
        parts = [
            _unescaped(b["text"])
            if b["type"] == "markdown"
            else _words(b)
            if b["type"] == "rich_text"
            else f"⟦{b['type']}⟧"
            for b in self.blocks
            if b["type"] in ("markdown", "rich_text", *drawn)
        ]
        if parts or self.user != BOT_USER:
            return "\n\n".join(parts) or self.text
        return read_mrkdwn(self.text, has_marks=self.mrkdwn)

    def wire(self) -> dict[str, Any]:
        text = self.shown if self.markdown_text is not None or self.blocks else self.text
        message: dict[str, Any] = {"type": "message", "user": self.user, "ts": self.ts, "text": text}
        for name in ("thread_ts", "bot_id", "metadata"):
            if getattr(self, name) is not None:
                message[name] = getattr(self, name)
        if self.app_name is not None:
            message |= {"subtype": "bot_message", "username": self.app_name, "bot_profile": {"name": self.app_name}}
            del message["user"]
        for name in ("files", "attachments", "blocks"):
            if getattr(self, name):
                message[name] = getattr(self, name)
        return message


class World:
    """One workspace with one bot. Every method is called with the server's lock held."""

    def __init__(self) -> None:
        self.users: dict[str, dict[str, Any]] = {
            "U0ALICE": {"id": "U0ALICE", "name": "alice", "profile": {"display_name": "Alice"}, "locale": "en-US"},
            "U0BOB": {"id": "U0BOB", "name": "bob", "profile": {"display_name": "Bob"}, "locale": "de-DE"},
            BOT_USER: {"id": BOT_USER, "name": "botty", "is_bot": True, "profile": {"display_name": "Botty"}},
        }
        self.ims = {"U0ALICE": "D0ALICE", "U0BOB": "D0BOB"}
        self.channels: dict[str, set[str]] = {
            "C0GENERAL": {"U0ALICE", "U0BOB", BOT_USER},
            "C0OTHER": {"U0ALICE", "U0BOB"},
            "D0ALICE": {"U0ALICE", BOT_USER},
            "D0BOB": {"U0BOB", BOT_USER},
        }
        self.posts: list[Post] = []
        self.files: dict[str, dict[str, Any]] = {}
        self.file_bytes: dict[str, bytes] = {}
        self.uploads: dict[str, dict[str, Any]] = {}
        self.views: dict[str, dict[str, Any]] = {}
        self.modals: list[dict[str, Any]] = []
        self.fetched: list[str] = []  # addresses that this server has asked, to show what lies behind them
        self.responses: list[tuple[str, dict[str, Any]]] = []
        self.whispers: list[tuple[str, str, str]] = []
        self.statuses: list[tuple[str, str | None, str]] = []
        self.titles: dict[tuple[str, str], str] = {}
        self.prompts: dict[str, list[dict[str, str]]] = {}
        self.canvases: dict[str, str] = {}
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self.without: set[str] = set()  # what this workspace does not have yet
        self.subscribed = {"reaction_added", "reaction_removed"}
        self.is_agent = True
        self.has_stop_button = True
        self.scopes: set[str] | None = None
        self.channel_names: dict[str, str] = {}  # where one is called otherwise than its id says
        self.code_channels: dict[str, list[str]] = {}  # each for one task, with the agents that it is assigned to
        self.tokens: dict[str, str] = {}
        self.rotates = False  # whether tokens of installations end, as an app chooses once and for all
        self.token_seconds = 43_200
        self.refresh_tokens: dict[str, str] = {}
        self.codes: dict[str, str] = {}
        self._seconds = itertools.count(int(time.time()))
        self._numbers = itertools.count(1)

    def next_ts(self) -> str:
        return f"{next(self._seconds)}.{next(self._numbers) % 1_000_000:06d}"

    def next_id(self, kind: str) -> str:
        return f"{kind}{next(self._numbers):08d}"

    def find(self, channel: str, ts: object, error: str = "message_not_found") -> Post:
        for post in self.posts:
            if post.channel == channel and post.ts == ts:
                return post
        raise SlackError(error)

    def thread(self, channel: str, thread_ts: str) -> list[Post]:
        return [each for each in self.posts if each.channel == channel and thread_ts in (each.ts, each.thread_ts)]

    def add(self, post: Post) -> Post:
        self.posts.append(post)
        post.states.append(post.shown)
        return post

    def preview(self, text: str) -> None:
        """Fetch what lies behind the links of a text."""
        self.fetched += re.findall(r"https?://[^\s<>|)\]]+", text)

    def is_dm(self, channel: str) -> bool:
        return channel.startswith("D")

    def team_of(self, token: str) -> str | None:
        return self.tokens.get(token)


def _unescaped(markdown: str) -> str:
    """Return Markdown without the backslashes that keep a sign from being a mark, as Slack shows it."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)
