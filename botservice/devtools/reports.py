"""Turns, comparisons and results of cases as a person reads them on a terminal. Nothing that was said is markup."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from botservice.conversation.replay import render_steps, usage_text, visible
from botservice.conversation.sub_runs import usage_of
from botservice.core.quoting import shortened
from botservice.devtools.conversations import TurnRecord
from botservice.devtools.evaluation import CaseResult, total_cost
from botservice.devtools.replayed_answers import (
    UNKNOWN,
    Comparison,
    say_answer,
    say_calls,
    say_cost,
    say_difference,
    say_tokens,
)


def render_comparison(comparison: Comparison) -> RenderableType:
    """Return both answers of a comparison for `botservice.conversation.replay.show`."""
    then, again = comparison.then, comparison.again
    table = Table(box=box.ROUNDED, expand=True, show_lines=True)
    table.add_column("")
    table.add_column("then", ratio=1, overflow="fold")
    table.add_column("again", ratio=1, overflow="fold")
    for label, value in (
        ("answer", say_answer),
        ("tools", say_calls),
        ("model", lambda each: ", ".join(each.models) or UNKNOWN),
        ("calls", lambda each: str(each.calls)),
        ("tokens", say_tokens),
        ("cost", lambda each: say_cost(each.cost, comparison.currency)),
        ("time", lambda each: UNKNOWN if each.seconds is None else f"{each.seconds:.2f} s"),
    ):
        table.add_row(label, _text(value(then)), _text(value(again)))
    changed = ", ".join(comparison.changed) or "nothing changed"
    title = f"Turn {comparison.turn_id} from call {comparison.call} on, asked again: {changed}"
    return Group(_text(title, "bold"), table, *(_text(line) for line in say_difference(comparison)))


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style, overflow="fold")


_LONGEST: Final = 240  # characters of an answer
_LONGEST_NAME: Final = 80


def render_results(results: Sequence[CaseResult], currency: str) -> RenderableType:
    """Return results for `botservice.conversation.replay.show`."""
    table = Table(box=box.ROUNDED, expand=True, show_lines=True)
    table.add_column("")
    table.add_column("case", ratio=2, overflow="fold")
    table.add_column("answer, and what is wrong with it", ratio=5, overflow="fold")
    table.add_column("tokens, cost", ratio=2, overflow="fold")
    for each in results:
        mark = Text("✓", style="green") if each.passes else Text("✗", style="red")
        answer = Text(_in_short(say_answer(each.answer), _LONGEST), style="dim" if each.passes else "")
        wrong = [Text(visible(f"✗ {failure}"), style="red") for failure in each.failures]
        costs = "\n".join([say_tokens(each.answer), say_cost(each.answer.cost, currency)])
        table.add_row(mark, Text(_in_short(each.name, _LONGEST_NAME)), Group(answer, *wrong), Text(costs))
    return Group(table, Text(say_sum(results, currency)))


def say_sum(results: Sequence[CaseResult], currency: str) -> str:
    """Return in a line how many cases pass, and what all of them cost."""
    passed = sum(1 for each in results if each.passes)
    cost = total_cost(results)
    paid = "" if cost is None else f", {say_cost(cost, currency)}"
    return f"{passed} of {len(results)} pass{paid}."


def _in_short(text: str, limit: int) -> str:
    return shortened(" ".join(visible(text).split()), limit)


def render_turns(turns: Iterable[TurnRecord], *, detailed: bool = False) -> RenderableType:
    """Return turns, each with its steps, for `botservice.conversation.replay.show`.

    Args:
        detailed: Show everything uncut, and what the model was given; otherwise long texts are cut.
    """
    return Group(*(block for turn in turns for block in _blocks(turn, detailed=detailed)))


def _blocks(turn: TurnRecord, *, detailed: bool) -> list[RenderableType]:
    title = _text(f"== {_title(turn)}", "bold cyan")
    failed = [_text(f"Failed: {turn.error}", "red")] if turn.error else []
    gone = [] if turn.compacted_at is None else [_text(_compacted(turn.compacted_at), "dim")]
    waited = [_text(each, "yellow") for each in turn.waited]
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
