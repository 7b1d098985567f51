"""A reader that knows what it looks for: does a prompt hold what answers a question?

It stands in for a model that misses nothing and invents nothing. What it cannot find, no model can say.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from memory_quality.chats import Asked

from botservice.agent.prompt import Prompt
from botservice.llm.tokens import TokenCounter

MEMORY = ("notes", "person", "found")
_RECORD = re.compile(r"^(?=\[)", re.MULTILINE)
_HEADING = re.compile(r"^\[[^]]*\]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Verdict(StrEnum):
    """What a reader can do with a prompt."""

    ANSWERED = "answered"
    MISSING = "missing"
    MISLED = "misled"


@dataclass(frozen=True, slots=True)
class Record:
    """A line of a prompt that stands for itself."""

    section: str
    text: str

    def says(self, wordings: tuple[str, ...], dates: tuple[str, ...]) -> bool:
        """Return whether one of the wordings stands here, with one of the dates where there are any."""
        heading = _HEADING.match(self.text)
        for wording in wordings:
            place = self.text.find(_plain(wording), heading.end() if heading else 0)
            if place >= 0 and (not dates or any(date.startswith(dates) for date in self._dates_at(place))):
                return True
        return False

    @property
    def is_dated(self) -> bool:
        """Whether it says when that was so; the window goes by its order."""
        return self.section == "window" or bool(_DATE.search(self.text))

    def _dates_at(self, place: int) -> set[str]:
        """Return the last date before a place, or all of the heading where none is nearer."""
        heading = _HEADING.match(self.text)
        nearer = _DATE.findall(self.text, heading.end() if heading else 0, place)
        return set(nearer[-1:] or _DATE.findall(heading[0] if heading else self.text[:place]))


def judge(prompt: Prompt, asked: Asked) -> Verdict:
    """Return what a reader can do with a prompt."""
    records = list(read_records(prompt))
    if asked.kind == "none":
        known = [record for record in records if record.section == "person"]
        return Verdict.MISLED if any(each.says(asked.lure, ()) for each in known) else Verdict.ANSWERED
    outdated = [record for record in records if asked.outdated and record.says(asked.outdated, ())]
    if all(any(record.says(*need) for record in records) for need in asked.needs):
        return Verdict.ANSWERED if all(record.is_dated for record in outdated) else Verdict.MISLED
    return Verdict.MISLED if outdated else Verdict.MISSING


def read_records(prompt: Prompt) -> Iterator[Record]:
    """Yield what a prompt says before the question, without the agent's own instructions."""
    for section, (first, end) in prompt.sections().items():
        for message in prompt[first:end]:
            text = str(message["content"])
            if section == "window":
                yield Record(section, _plain(text))
            elif section in MEMORY:
                for part in _RECORD.split(text):
                    if part.startswith("["):
                        yield Record(section, _plain(part))


def memory_tokens(prompt: Prompt, counter: TokenCounter) -> dict[str, int]:
    """Return how many tokens each part of what is remembered takes."""
    sections = prompt.sections()
    return {
        name: sum(counter.count(str(message["content"])) for message in prompt[slice(*sections.get(name, (0, 0)))])
        for name in MEMORY
    }


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
