"""Holding what the real service has recorded against the rules of the model.

Each transaction has to be one that the table of moves knows, each message that is sent and each call that runs has to
be stored as such before, and of a conversation's turns one runs at a time.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from botservice.storage.transitions import Transition

from .moves import Change, explain, explain_deed, explain_turns

RECORDS = {"RECORD_TRANSITIONS": "on"}
"""The setting with which the service records."""


@dataclass
class Replay:
    """The states of all rows while a record is replayed.

    Attributes:
        states: By the kind and the name of each row.
        running: The turns that run, by conversation.
        deeds: Which deeds were done with which row.
    """

    states: dict[tuple[str, str], str] = field(default_factory=dict)
    running: dict[int, set[str]] = field(default_factory=dict)
    deeds: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def take(self, group: Sequence[Transition]) -> str | None:
        """Take what one transaction changed in a conversation; return why that is not allowed, or None."""
        if not group[0].before:
            return self._do(group[0])
        changes = [Change(each.thing, each.before, each.after) for each in group]
        is_held = any(each.is_held is not False for each in group)
        reason = explain(changes, holds=is_held, is_whole=group[0].tx is not None)
        for each in group:
            known = self.states.get((each.thing, each.name), "nothing")
            if known not in (each.before, "gone") and reason is None:
                reason = f"the {each.thing} is {known} and not {each.before}"
            self._note(each)
        running = self.running.get(group[0].context_id, set())
        return reason or explain_turns(["running"] * len(running))

    def _note(self, each: Transition) -> None:
        self.states[each.thing, each.name] = each.after
        running = self.running.setdefault(each.context_id, set())
        if each.thing in ("turn", "program"):
            (running.add if each.after == "running" else running.discard)(each.name)

    def _do(self, deed: Transition) -> str | None:
        row = deed.thing, deed.name
        done = self.deeds.setdefault(row, [])
        reason = explain_deed(deed.after, self.states.get(row, "nothing"), done)
        done.append(deed.after)
        return reason


def find_breaches(record: Iterable[Transition]) -> list[str]:
    """Return what in a record the model does not allow, in words."""
    replay, found = Replay(), list[str]()
    for group in _transactions(record):
        reason = replay.take(group)
        if reason is not None:
            first = group[0]
            rows = ", ".join(f"{each.thing} {each.name} {each.before} → {each.after}" for each in group)
            found.append(f"#{first.seq}, conversation {first.context_id}: {reason} ({rows})")
    return found


def _transactions(record: Iterable[Transition]) -> Iterable[list[Transition]]:
    """Yield what each transaction changed in each conversation; a deed stands alone."""
    entries = list(record)
    groups = dict[object, list[Transition]]()
    for each in entries:
        key = (each.tx, each.context_id) if each.tx is not None and each.before else each.seq
        groups.setdefault(key, []).append(each)
    return sorted(groups.values(), key=lambda group: group[0].seq)


def read_lines(path: Path) -> list[Transition]:
    """Return the record that `botservice prove --record` has written."""
    return [Transition(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def check_record(record: Sequence[Transition], *, least: int = 100) -> None:
    """Fail where the model does not allow what was recorded, or where next to nothing was.

    Args:
        least: How many changes there have to be, or the record shows nothing.
    """
    breaches = find_breaches(record)
    assert not breaches, "\n".join([f"{len(breaches)} of {len(record)} entries:", *breaches[:20]])
    assert len(record) >= least, f"only {len(record)} changes were recorded"
