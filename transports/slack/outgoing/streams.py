"""Answers that grow in Slack, from their first word until they are complete."""

from dataclasses import dataclass, field
from typing import Any

_MAX_STREAMS = 5000


@dataclass(frozen=True, slots=True)
class Task:
    """A tool, as a stream shows it.

    Attributes:
        said: What it says of its work; only while it runs.
    """

    title: str
    is_done: bool = False
    said: str = ""

    def ended(self) -> "Task":
        """Return it as it stands there when it has done its work."""
        return Task(self.title, is_done=True)

    def chunk(self, name: str) -> dict[str, Any]:
        """Return it as it is sent. A title takes the place of the one before; details would be added to each other."""
        title = f"{self.title}: {self.said}" if self.said else self.title
        status = "complete" if self.is_done else "in_progress"
        return {"type": "task_update", "id": name, "title": title[:250] or "…", "status": status}


@dataclass(slots=True)
class OpenStream:
    """A message that grows.

    Attributes:
        text: What Slack has taken of it.
        tasks: The tools that it shows, by id.
        is_open: Whether Slack still takes more; after about five minutes it does not.
        is_certain: Whether it is known what Slack has taken.
    """

    channel: str
    ts: str
    text: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    is_open: bool = True
    is_certain: bool = True

    def can_become(self, text: str) -> bool:
        """Return whether text is what the stream says, with more behind it."""
        return self.is_open and self.is_certain and text.startswith(self.text)

    def last_chunks(self, text: str) -> list[dict[str, Any]]:
        """Return what is still missing of text, and the end of every tool."""
        chunks = [task.ended().chunk(name) for name, task in self.tasks.items() if not task.is_done]
        rest = text[len(self.text) :]
        return [*chunks, {"type": "markdown_text", "text": rest}] if rest else chunks


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
