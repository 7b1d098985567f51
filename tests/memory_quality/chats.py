"""The chats of data/memory: written sessions with what people ask besides between them, at fixed times.

Reading them twice gives the same: chance is drawn from the name of a chat.
"""

import itertools
import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "memory"
_TASKS = 72  # of the 96 that the subjects make
_ASIDES = 15
_TAIL = 14  # tasks after the last session, so that no written session stands in the window
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and what a person who reads well would keep of it.

    Attributes:
        who: None is the bot.
        facts: Topics with the quotations that say them.
        note: What a note says of this message and those before it in its session.
    """

    at: datetime
    who: str | None
    text: str
    facts: tuple[tuple[str, str], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what has to stand in a prompt for its answer.

    Attributes:
        needs: All of them have to stand there; each is some wordings, one of which is enough, and some beginnings of
            dates, one of which has to stand next to it where there are any.
        outdated: What was true once.
        lure: What is said of others, and is no answer.
    """

    kind: str
    text: str
    needs: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    outdated: tuple[str, ...] = ()
    lure: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat of some months, with the questions of one of its people."""

    id: str
    language: str
    half: str
    speaker: str
    is_group: bool
    asked_at: datetime
    said: list[Said] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)


def read_chats(half: str | None = None, language: str | None = None, *, trifles: int = 0) -> list[Chat]:
    """Return the chats, of one half or one language only where that is given.

    Args:
        trifles: How many more facts of little weight a person says in each.
    """
    chats = []
    for path in sorted(FOLDER.glob("*_*.toml")):
        data = _read(path)
        if "chats" in data and half in (None, data["half"]) and language in (None, data["language"]):
            chats += [read_chat(chat, data["language"], data["half"], trifles) for chat in data["chats"]]
    return chats


def read_chat(data: dict[str, Any], language: str, half: str, trifles: int) -> Chat:
    """Return a chat with everything between its sessions."""
    start = _time(data["sessions"][0]["at"])
    asked_at = _time(data["asked"]) + timedelta(hours=10)
    sessions = [list(_read_talk(each["talk"], data["speaker"], _time(each["at"]))) for each in data["sessions"]]
    people = sorted({said.who for session in sessions for said in session if said.who is not None})
    chance, times = random.Random(data["id"]), (start, sessions[-1][-1].at, asked_at)
    besides = [*_besides(chance, language, people, times), *_trifles(chance, language, people, times, trifles)]
    said = sorted(itertools.chain(*sessions, *besides), key=lambda each: each.at)
    questions = [_read_question(each) for each in data["questions"]]
    is_group = data.get("group", False)
    return Chat(data["id"], language, half, data["speaker"], is_group, asked_at, said, questions)


def read_filler(language: str) -> tuple[list[tuple[str, str]], list[list[Said]]]:
    """Return what is asked besides with its answers, and what is said of oneself besides, in a language."""
    data = _read(FOLDER / f"filler_{language}.toml")
    tasks = [
        (each["ask"].format(subject), _capital(each["answer"].format(subject)))
        for each in data["tasks"]
        for subject in each["subjects"]
    ]
    lines = list(_read_talk(data["asides"], "", datetime.min.replace(tzinfo=UTC)))
    return tasks, [lines[place : place + 2] for place in range(0, len(lines), 2)]


def _besides(
    chance: random.Random, language: str, people: list[str], times: tuple[datetime, datetime, datetime]
) -> Iterator[list[Said]]:
    """Yield what is said besides: between the first and the last session, and some tasks after that."""
    start, end, asked_at = times
    tasks, asides = read_filler(language)
    for place, (ask, answer) in enumerate(chance.sample(tasks, _TASKS)):
        since, until = (end, asked_at) if place < _TAIL else (start, end)
        note = f"{ask[0].upper()}{ask[1:]}" if place % 3 == 0 else ""
        at = _somewhen(chance, since, until)
        yield [Said(at, chance.choice(people), ask), Said(at + _MINUTE, None, answer, note=note)]
    for aside in chance.sample(asides, _ASIDES):
        at, who = _somewhen(chance, start, end), chance.choice(people)
        yield [replace(said, at=at + place * _MINUTE, who=said.who and who) for place, said in enumerate(aside)]


def _trifles(
    chance: random.Random, language: str, people: list[str], times: tuple[datetime, datetime, datetime], count: int
) -> Iterator[list[Said]]:
    """Yield facts that nobody asks for one day."""
    data = _read(FOLDER / f"filler_{language}.toml")
    subjects = [subject for task in data["tasks"] for subject in task["subjects"]]
    for subject in chance.sample(subjects, count):
        text = data["trifle"].format(subject)
        said = Said(_somewhen(chance, *times[:2]), chance.choice(people), text, ((f"possession: {subject}", text),))
        yield [said, Said(said.at + _MINUTE, None, "👍")]


def _somewhen(chance: random.Random, since: datetime, until: datetime) -> datetime:
    """Return a time of a day in between, at an hour at which no session begins."""
    days = max(1, (until.date() - since.date()).days - 1)
    day = since.date() + timedelta(days=1 + chance.randrange(days))
    return datetime(day.year, day.month, day.day, chance.choice([1, 2, 3, 4, 5]), chance.randrange(58), tzinfo=UTC)


def _read_talk(talk: str, speaker: str, at: datetime) -> Iterator[Said]:
    """Yield the messages of a session, a minute apart. data/memory/README.md says how they are written."""
    said: Said | None = None
    for line in filter(None, talk.splitlines()):
        head, _, text = line.partition(" ")
        if head == "@":
            topic, _, quote = text.partition(" | ")
            assert said is not None, line
            assert quote in said.text, line
            said = replace(said, facts=(*said.facts, (topic, quote)))
        elif head == "#":
            assert said is not None, line
            said = replace(said, note=f"{said.note} {text}".strip())
        else:
            assert head == "<" or head.endswith(">"), line
            if said is not None:
                yield said
                at += _MINUTE
            said = Said(at, None if head == "<" else head[:-1] or speaker or "x", text)
    if said is not None:
        yield said


def _read_question(data: dict[str, Any]) -> Asked:
    needs = tuple(_read_need(each) for each in data.get("needs", ()))
    return Asked(data["kind"], data["text"], needs, tuple(data.get("outdated", ())), tuple(data.get("lure", ())))


def _read_need(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    wordings, _, dates = text.partition(" @")
    return tuple(wordings.split("|")), tuple(filter(None, dates.split("|")))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
