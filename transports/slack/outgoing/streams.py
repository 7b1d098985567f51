"""Answers that grow in Slack, from their first word until they are complete."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from transports.slack.outgoing.figures import Figure, as_chunks

_MAX_STREAMS = 5000
_MAX_LABEL = 75


@dataclass(frozen=True, slots=True)
class Task:
    """A tool, as a stream shows it.

    Attributes:
        said: What it says of its work; only while it runs.
        details: What it was called with.
        sources: The addresses that it reads.
    """

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
        tasks: The tools that it shows, by id.
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

    def last_chunks(self, text: str, figures: Sequence[Figure] = ()) -> list[dict[str, Any]]:
        """Return what is still missing of text, and the end of every tool."""
        chunks = [task.ended().chunk(name) for name, task in self.tasks.items() if not task.is_done]
        return [*chunks, *as_chunks(text, figures, len(self.text))]


class Streams:
    """Knows what grows in this process, so that the answer can go on where the stream stands."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, str], OpenStream] = {}

    def add(self, stream: OpenStream) -> None:
        """Take note of a stream."""
        if len(self._streams) >= _MAX_STREAMS:
            del self._streams[next(iter(self._streams))]
        self._streams[stream.channel, stream.ts] = stream

    def take(self, channel: str, ts: str) -> OpenStream | None:
        """Return a stream, and forget it: whatever comes of it, it is not what was known any more."""
        return self._streams.pop((channel, ts), None)
