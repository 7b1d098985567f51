"""Probes: one call of a platform each, and what the service takes for granted of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

_PAUSE_SECONDS = 1.1  # a message a second is what both platforms allow in a chat


class Verdict(StrEnum):
    """What came of a probe."""

    AS_ASSUMED = "as assumed"
    DIFFERS = "differs"
    NOT_THERE = "not there"  # the platform does not take it: people get what worked before
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe found."""

    platform: str
    name: str
    verdict: Verdict
    said: str = ""


class Differs(Exception):
    """The platform does something else than the service assumes."""


class NotThere(Exception):
    """The platform does not take it at all."""


@dataclass(slots=True)
class Room:
    """Where probes are made.

    Attributes:
        call: Calls a method of the platform; raises `Refused`.
        places: Ids of chats and people, by what they are for; what is not there is not tried.
        known: What earlier probes have found, such as the ids of messages.
    """

    call: Callable[..., Awaitable[Any]]
    places: Mapping[str, str]
    known: dict[str, Any] = field(default_factory=dict)


class Refused(Exception):
    """The platform refused a call; its words are the message.

    Attributes:
        is_unknown: Whether it says that it has no such method.
    """

    def __init__(self, said: str, *, is_unknown: bool = False) -> None:
        super().__init__(said)
        self.is_unknown = is_unknown


@dataclass(frozen=True, slots=True)
class Probe:
    """A call that is tried.

    Attributes:
        methods: The methods that it tries.
        assumes: What the service takes for granted.
        needs: The places that it needs.
        has_fallback: Whether people get something that worked before where it is refused.
    """

    name: str
    methods: Sequence[str]
    assumes: str
    run: Callable[[Room], Awaitable[None]]
    needs: Sequence[str] = ()
    has_fallback: bool = False


async def expect_refusal(call: Awaitable[Any], *words: str) -> None:
    """Return if a call is refused with one of these words.

    Raises:
        Differs: it is taken, or refused with other words.
    """
    try:
        await call
    except Refused as refused:
        if any(word in str(refused).lower() for word in words):
            return
        raise Differs(f"refused with other words: {refused}") from refused
    raise Differs("it was taken")


async def try_all(
    platform: str, probes: Sequence[Probe], room: Room, *, pause: float = _PAUSE_SECONDS
) -> list[Finding]:
    """Return what each probe finds, one after the other."""
    findings = []
    for probe in probes:
        missing = [name for name in probe.needs if name not in room.places]
        if missing:
            findings.append(Finding(platform, probe.name, Verdict.SKIPPED, f"needs {', '.join(missing)}"))
            continue
        findings.append(await _try(platform, probe, room))
        await asyncio.sleep(pause)
    return findings


async def _try(platform: str, probe: Probe, room: Room) -> Finding:
    try:
        await probe.run(room)
    except (Refused, NotThere) as refused:
        verdict = Verdict.NOT_THERE if probe.has_fallback else Verdict.DIFFERS
        return Finding(platform, probe.name, verdict, f"{refused}; assumed: {probe.assumes}")
    except Differs as differs:
        return Finding(platform, probe.name, Verdict.DIFFERS, f"{differs}; assumed: {probe.assumes}")
    except (LookupError, TypeError) as error:
        return Finding(
            platform, probe.name, Verdict.DIFFERS, f"an answer of another shape ({error!r}); assumed: {probe.assumes}"
        )
    return Finding(platform, probe.name, Verdict.AS_ASSUMED)


def report(findings: Sequence[Finding], *, is_json: bool) -> str:
    """Return the findings as text for people, or as JSON."""
    if is_json:
        return json.dumps([asdict(each) for each in findings], indent=2)
    lines = []
    for each in findings:
        said = f"\n      {each.said}" if each.said else ""
        lines.append(f"{each.verdict.value:<11} {each.platform:<9} {each.name}{said}")
    counts = ", ".join(f"{sum(each.verdict is verdict for each in findings)} {verdict.value}" for verdict in Verdict)
    return "\n".join([*lines, "", counts])
