"""The calls of tools that a turn makes, as a page shows them while it waits for the answer."""

from typing import Any, Final

from botservice.messages import ToolCall
from botservice.turns.waiting.arguments import readable

_MOST: Final = 30  # calls; of more, the newest


class ShownCalls:
    """What a page shows of calls: the name, the arguments as people read them, without secrets, and the state.

    Attributes:
        version: Grows with every change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._calls: list[tuple[ToolCall, dict[str, Any]]] = []

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The newest calls as JSON, in the order in which they began."""
        return [shown for _, shown in self._calls]

    def begin(self, call: ToolCall) -> None:
        """Show a call that begins."""
        arguments, _ = readable(call.arguments)
        shown = {"name": call.name, "arguments": arguments, "state": "running", "said": ""}
        self._calls = [*self._calls, (call, shown)][-_MOST:]
        self.version += 1

    def note_progress(self, call: ToolCall, text: str) -> None:
        """Show what a call says of its work."""
        self._change(call, said=text)

    def end(self, call: ToolCall, *, is_error: bool) -> None:
        """Show what became of a call."""
        self._change(call, state="failed" if is_error else "done")

    def _change(self, call: ToolCall, **changes: str) -> None:
        for held, shown in self._calls:
            if held is call:
                shown.update(changes)
                self.version += 1
