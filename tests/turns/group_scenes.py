"""Scenes of groups, played to a bot that listens: see `data/group_scenes.toml`."""

import asyncio
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text
from standins.clocks import LastingMinute

from botservice import ScriptedChatLLM, Storage
from botservice.people.budgets import GATE, Budgets
from botservice.people.usage import UsageBy
from botservice.people.usage_queries import list_usage
from botservice.turns.listening import QUIET, ListeningGate

LANGUAGES = ("en", "de", "es")
PER_HOUR = 3
A_BLOCK = 5  # scenes, ten minutes apart; then nothing is said for an hour
_PATH = Path(__file__).parents[1] / "data" / "group_scenes.toml"
_OPEN = text("SELECT count(*) FROM turns WHERE status IN ('queued', 'running')")
_OWED = text("SELECT count(*) FROM deliveries WHERE status IN ('pending', 'attempting')")
_EVENTS = text("SELECT count(*) FROM events")
_DECISIONS = text("SELECT decision FROM gate_decisions ORDER BY turn_id")


@dataclass(frozen=True, slots=True)
class Scene:
    """What is said, what the models answer, and what comes of it: answer, silent or limit."""

    language: str
    says: tuple[tuple[str, str], ...]
    gate: str
    agent: str
    expect: str


def read_scenes(language: str) -> list[Scene]:
    """Return the scenes of a language."""
    found = tomllib.loads(_PATH.read_text(encoding="utf-8"))["scene"]
    return [
        Scene(
            each["language"],
            tuple(tuple(line.split(": ", 1)) for line in each["says"]),
            each["gate"],
            each.get("agent", ""),
            each["expect"],
        )
        for each in found
        if each["language"] == language
    ]


def is_of_gate(prompt: Sequence[Any]) -> bool:
    """Return whether a prompt asks whether to speak."""
    return str(prompt[0]["content"]).startswith("You decide whether an assistant")


@dataclass(slots=True)
class TwoModels:
    """The models of the gate and of the agent: what they answer now, and what they were asked."""

    gate: str = "no"
    agent: str = "An answer."
    asked_gate: list[str] = field(default_factory=list)
    asked_agent: list[str] = field(default_factory=list)

    def __call__(self, prompt: Sequence[Any]) -> str:
        """Answer as a script of a ScriptedChatLLM."""
        if is_of_gate(prompt):
            self.asked_gate.append(prompt[-1]["content"])
            return self.gate
        self.asked_agent.append(str(prompt))
        return self.agent


def gate_of(script: Any, *, budgets: Budgets | None = None, **options: Any) -> ListeningGate:
    """Return a gate that asks a script, and listens in every group."""
    options = {"listens": True, "per_hour": PER_HOUR, **options}
    return ListeningGate.of(
        script if hasattr(script, "chat") else ScriptedChatLLM(script), budgets or Budgets(), **options
    )


async def settle(storage: Storage, *, events: int | None = None, is_whole: bool = True) -> None:
    """Return when so many events are stored, and, for whole, nothing is left to do."""

    def look(connection: Any) -> bool:
        counts = [connection.execute(each).scalar_one() for each in (_EVENTS, _OPEN, _OWED)]
        is_done = not is_whole or counts[1:] == [0, 0]
        return is_done and events in (None, counts[0])

    async with asyncio.timeout(60):
        while not await storage.read(look):  # noqa: ASYNC110 - only the database tells
            await asyncio.sleep(0.01)


async def decisions(storage: Storage) -> list[str | None]:
    """Return what was decided, in order."""
    return list(await storage.read(lambda connection: connection.execute(_DECISIONS).scalars().all()))


async def count_calls(storage: Storage) -> int:
    """Return how many calls of the gate were paid for."""
    since = datetime(2026, 1, 1, tzinfo=UTC)
    lines = await storage.read(lambda connection: list_usage(connection, UsageBy.MODEL, since))
    return sum(each.calls for each in lines if each.subject == GATE)


async def play(
    scenes: Sequence[Scene],
    models: TwoModels,
    storage: Storage,
    clock: LastingMinute,
    say: Callable[[str, str], object],
    shown: Callable[[], Sequence[str]],
) -> None:
    """Play scenes in a group, and check what people see and what was asked after each."""
    said, answers, before = 0, list[str](), 0
    for number, scene in enumerate(scenes):
        models.gate, models.agent = scene.gate, scene.agent
        for who, line in scene.says:
            say(who, line)
        said += len(scene.says)
        await settle(storage, events=said, is_whole=False)
        clock.pass_(seconds=QUIET.total_seconds() + 1)
        await settle(storage, events=said)
        if scene.expect == "answer":
            answers.append(scene.agent)
        assert list(shown()) == answers, scene
        clock.pass_(minutes=10)
        if (number + 1) % A_BLOCK == 0:
            asked = await count_calls(storage)
            assert asked == len(models.asked_gate), "every call is paid for once"
            assert asked - before == _count_asked(scenes[number + 1 - A_BLOCK : number + 1]), "the cost of an hour"
            before = asked
            clock.pass_(hours=1)


def _count_asked(hour: Sequence[Scene]) -> int:
    """Return for how many scenes of an hour the gate asks: none after the limit, and none for other bots' commands."""
    asked = answered = 0
    for scene in hour:
        asked += answered < PER_HOUR and not scene.says[0][1].startswith("/")
        answered += scene.expect == "answer"
    return asked
