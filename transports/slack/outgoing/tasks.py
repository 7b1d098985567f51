"""The tools of an answer as tasks: one for each call, from its beginning to its end."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from botservice.messages import ToolCall
from transports.slack.outgoing.formatting import Pings, without_pings
from transports.slack.outgoing.streams import Task

_MAX_ARGUMENTS: Final = 6
_MAX_VALUE_CHARACTERS: Final = 100
_MAX_SOURCES: Final = 5
_WEB: Final = ("https://", "http://")


class Tasks:
    """Knows what runs, and what has run.

    Attributes:
        shown: The tasks by their ids, in order.
    """

    def __init__(self, pings: Pings, *, has_details: bool, has_sources: bool) -> None:
        """Begin with nothing.

        Args:
            has_details: Whether whoever reads along may see what tools are called with.
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
