"""Showing the progress of long commands: a bar on a terminal, elsewhere a line every few seconds."""

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator

import typer

from botservice.cli.console import begin_collecting, tell
from botservice.core.progress import Progress

EVERY_SECONDS = 5.0
_LEAST_FOR_AN_ESTIMATE = 0.01  # of less, an estimate may be days for what takes seconds
INTERRUPTED = 130  # what a shell says of a command that Ctrl+C ended


@contextlib.contextmanager
def long_work(what: str, *, left: str) -> Iterator[Progress]:
    """Show how far work is while the block runs, on standard error.

    Args:
        what: What is done, in a word or two.
        left: What Ctrl+C leaves behind.
    """
    begin_collecting()
    lines = LineProgress(what, tell, time.monotonic)
    try:
        with _bar(what) if sys.stderr.isatty() else contextlib.nullcontext(lines) as progress:
            yield progress
    except KeyboardInterrupt:
        tell(f"botservice: stopped. {left}", logging.WARNING)
        raise typer.Exit(INTERRUPTED) from None


@contextlib.contextmanager
def _bar(what: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None, note="")
        yield lambda done, total, note="": bars.update(task, completed=done, total=total or None, note=note)


class LineProgress:
    """Writes the progress of work in lines, for logs and screen readers."""

    def __init__(self, what: str, say: Callable[[str], object], clock: Callable[[], float]) -> None:
        self._what = what
        self._say = say
        self._clock = clock
        self._began = self._said = clock()

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """Write a line, unless the last one was just now."""
        now = self._clock()
        if now - self._said < EVERY_SECONDS:
            return
        self._said = now
        parts = [f"{self._what}: {self._state(done, total, now - self._began)}", note]
        self._say(", ".join(filter(None, parts)))

    @staticmethod
    def _state(done: float, total: float, passed: float) -> str:
        if total <= 0:
            return f"{passed:.0f} s"
        part = min(done / total, 1.0)
        if part < _LEAST_FOR_AN_ESTIMATE:
            return f"{part:.0%}"
        return f"{part:.0%}, about {passed * (1 - part) / part:.0f} s left"
