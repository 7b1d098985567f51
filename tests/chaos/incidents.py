"""What happened, when, and to which process."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Harm(Enum):
    """What an incident may do to the work that is under way."""

    NONE = "nothing is lost"
    ENDS_PROCESS = "what one process had begun is lost, and it does nothing more"
    CUTS_PROCESS_OFF = "what one process had begun may be lost"
    CUTS_ALL_OFF = "what any process had begun may be lost"


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happened; the times are those of the stand-ins' journals."""

    name: str
    harm: Harm
    process: str
    started: float
    ended: float


class Chronicle:
    """Notes what happens, and says it before it happens: whoever reads a run that failed knows what led to it.

    Attributes:
        incidents: What is over.
    """

    def __init__(self, title: str) -> None:
        self.incidents: list[Incident] = []
        self._began = time.monotonic()
        self._lines: list[str] = []
        self._guard = threading.Lock()
        self._say(f"\n{title}")

    def __str__(self) -> str:
        with self._guard:
            return "\n".join(self._lines)

    @contextlib.contextmanager
    def during(self, name: str, harm: Harm, process: str) -> Iterator[None]:
        """Note something that happens while the block runs."""
        started = time.monotonic()
        place = "" if harm in (Harm.NONE, Harm.CUTS_ALL_OFF) else f" {process}"
        self._say(f"{started - self._began:8.3f} {name}{place}")
        try:
            yield
        finally:
            ended = time.monotonic()
            self._say(f"{ended - self._began:8.3f} {name}{place} is over")
            self.incidents.append(Incident(name, harm, process, started, ended))

    def seconds(self, moment: float) -> float:
        """Return when a moment was, as the lines count."""
        return moment - self._began

    def _say(self, line: str) -> None:
        with self._guard:
            self._lines.append(line)
        print(line, flush=True)  # noqa: T201 - shown with -s, and where a run fails
