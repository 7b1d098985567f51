"""Whole turns as a person reads them on a terminal: what was asked, found, done and answered."""

from collections.abc import Iterable
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from botservice.conversation.replay import render_steps, usage_text, visible
from botservice.conversation.sub_runs import usage_of
from botservice.devtools.conversations import TurnRecord


def render_turns(turns: Iterable[TurnRecord], *, detailed: bool = False) -> RenderableType:
    """Return turns, each with its steps, for `botservice.conversation.replay.show`.

    Args:
        detailed: Show everything uncut, and what the model was given; otherwise long texts are cut.
    """
    return Group(*(block for turn in turns for block in _blocks(turn, detailed=detailed)))


def _blocks(turn: TurnRecord, *, detailed: bool) -> list[RenderableType]:
    title = Text(f"== {visible(_title(turn))}", style="bold cyan", overflow="fold")
    failed = [Text(visible(f"Failed: {turn.error}"), style="red", overflow="fold")] if turn.error else []
    gone = [] if turn.compacted_at is None else [Text(_compacted(turn.compacted_at), style="dim", overflow="fold")]
    waited = [Text(visible(each), style="yellow", overflow="fold") for each in turn.waited]
    return [title, render_steps(turn.steps, detailed=detailed), *waited, *gone, *failed, Text("")]


def _compacted(at: datetime) -> str:
    return f"Compacted on {at:%Y-%m-%d}: its steps are not kept any more (KEEP_STEPS_DAYS); what was said is."


def _title(turn: TurnRecord) -> str:
    usage = usage_of(turn.steps)
    facts = [f"Turn {turn.id}", f"{turn.created_at:%Y-%m-%d %H:%M:%S} UTC", turn.outcome or turn.status]
    if turn.worked_seconds is not None:
        facts.append(f"{turn.worked_seconds:.2f} s")
    if usage is not None:
        facts.append(usage_text(usage))
    return " | ".join(facts)
