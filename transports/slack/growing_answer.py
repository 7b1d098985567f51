"""Answers that grow in Slack, from their first word until they are complete."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cachetools import FIFOCache

from botservice.core.messages import ToolCall
from transports.slack.figures import SlackPage
from transports.slack.formatting import Pings, without_pings

MAX_STREAMS = 5000
_MAX_LABEL = 75

_MAX_ARGUMENTS: Final = 6
_MAX_VALUE_CHARACTERS: Final = 100
_MAX_SOURCES: Final = 5
_WEB: Final = ("https://", "http://")


@dataclass(frozen=True, slots=True)
class Task:
    """A tool, as a stream shows it."""

    title: str
    is_done: bool = False
    said: str = ""
    has_failed: bool = False
    details: str = ""
    sources: tuple[str, ...] = ()

    def ended(self, *, has_failed: bool = False) -> "Task":
        """Return it as it stands there when it has done its work."""
        return self if self.is_done else replace(self, is_done=True, said="", has_failed=has_failed)

    def chunk(self, name: str, *, is_new: bool = False) -> dict[str, Any]:
        """Return it as it is sent.

        A title takes the place of the one before; details and sources are added to each other, so they are sent once.
        """
        title = f"{self.title}: {self.said}" if self.said else self.title
        status = "in_progress" if not self.is_done else "error" if self.has_failed else "complete"
        chunk: dict[str, Any] = {"type": "task_update", "id": name, "title": title[:250] or "…", "status": status}
        if is_new and self.details:
            chunk["details"] = self.details
        if is_new and self.sources:
            chunk["sources"] = [{"type": "url", "url": each, "text": each[:_MAX_LABEL]} for each in self.sources]
        return chunk


@dataclass(slots=True)
class OpenStream:
    """A message that grows.

    Attributes:
        text: What Slack has taken of it.
        is_open: Whether Slack still takes more; after about five minutes it does not.
        is_certain: Whether it is known what Slack has taken.
        is_plan: Whether its tools stand together, below a title of their own.
    """

    channel: str
    ts: str
    text: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    is_open: bool = True
    is_certain: bool = True
    is_plan: bool = False

    def can_become(self, text: str) -> bool:
        """Return whether text is what the stream says, with more behind it."""
        return self.is_open and self.is_certain and text.startswith(self.text)

    def last_chunks(self, page: SlackPage) -> list[dict[str, Any]]:
        """Return what is still missing of an answer, and the end of every tool."""
        chunks = [task.ended().chunk(name) for name, task in self.tasks.items() if not task.is_done]
        return [*chunks, *page.chunks(len(self.text))]


Streams = FIFOCache[tuple[str, str], OpenStream]
"""What grows in this process, by channel and timestamp, so that the answer can go on where the stream stands."""


class Tasks:
    """Knows what runs, and what has run."""

    def __init__(self, pings: Pings, *, has_details: bool, has_sources: bool) -> None:
        """Begin with nothing.

        Args:
            has_details: Whether the readers may see the arguments of calls.
            has_sources: Whether Slack may fetch what lies behind addresses.
        """
        self.shown: dict[str, Task] = {}
        self._pings = pings
        self._has_details = has_details
        self._has_sources = has_sources
        self._of_calls: dict[str, str] = {}

    def begin(self, activity: str) -> str:
        """Take what begins, and return the id of its task."""
        name = f"task-{len(self.shown) + 1}"
        self.shown[name] = Task(without_pings(activity.replace("_", " "), self._pings))
        return name

    def begin_call(self, call: ToolCall) -> None:
        """Take a call that begins."""
        name = self._of_calls[call.id] = self.begin(call.name)
        details, sources = "", ()
        if self._has_details:
            details = without_pings(_describe(call.arguments), self._pings)
        if self._has_details and self._has_sources:
            sources = tuple(each for each in call.arguments.values() if _is_address(each))[:_MAX_SOURCES]
        self.shown[name] = replace(self.shown[name], details=details, sources=sources)

    def tell(self, call: ToolCall, text: str) -> bool:
        """Take what a call says of its work; return whether that is shown."""
        name = self._of_calls.get(call.id)
        if name is None or self.shown[name].is_done:
            return False
        self.shown[name] = replace(self.shown[name], said=without_pings(text, self._pings))
        return True

    def end_call(self, call: ToolCall, *, has_failed: bool) -> None:
        """Take the end of a call."""
        name = self._of_calls.get(call.id)
        if name is not None:
            self.shown[name] = self.shown[name].ended(has_failed=has_failed)

    def end_all(self) -> None:
        """Take the end of whatever runs."""
        self.shown = {name: task.ended() for name, task in self.shown.items()}


def _describe(arguments: Mapping[str, object]) -> str:
    """Return what a tool is called with, one line for each, without addresses and what is not plain."""
    plain = [(name, each) for name, each in arguments.items() if _is_plain(each) and not _is_address(each)]
    lines = [f"{name.replace('_', ' ')}: {_short(str(each))}" for name, each in plain[:_MAX_ARGUMENTS]]
    return "\n".join(lines)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip() != ""


def _is_address(value: object) -> bool:
    return isinstance(value, str) and value.startswith(_WEB)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_VALUE_CHARACTERS else f"{line[: _MAX_VALUE_CHARACTERS - 1]}…"
