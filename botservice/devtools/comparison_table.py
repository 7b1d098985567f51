"""Two answers side by side on a terminal. Everything is plain text: nothing that was said is markup."""

import json
from typing import TYPE_CHECKING

from botservice.conversation.masked_secrets import mask
from botservice.conversation.replay import visible
from botservice.core.policies import NANO
from botservice.devtools.replayed_answers import CallMade, Comparison, ReplayedAnswer, ResultOrigin

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_UNKNOWN = "-"


def render_comparison(comparison: Comparison) -> "RenderableType":
    """Return both answers of a comparison for `botservice.conversation.replay.show`."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    then, again = comparison.then, comparison.again
    table = Table(box=box.ROUNDED, expand=True, show_lines=True)
    table.add_column("")
    table.add_column("then", ratio=1, overflow="fold")
    table.add_column("again", ratio=1, overflow="fold")
    for label, value in (
        ("answer", say_answer),
        ("tools", say_calls),
        ("model", lambda each: ", ".join(each.models) or _UNKNOWN),
        ("calls", lambda each: str(each.calls)),
        ("tokens", say_tokens),
        ("cost", lambda each: say_cost(each.cost, comparison.currency)),
        ("time", lambda each: _UNKNOWN if each.seconds is None else f"{each.seconds:.2f} s"),
    ):
        table.add_row(label, _text(value(then)), _text(value(again)))
    changed = ", ".join(comparison.changed) or "nothing changed"
    title = f"Turn {comparison.turn_id} from call {comparison.call} on, asked again: {changed}"
    return Group(_text(title, "bold"), table, *(_text(line) for line in say_difference(comparison)))


def say_answer(answer: ReplayedAnswer) -> str:
    """Return the text of an answer, or why there is none."""
    return answer.text if answer.error is None else f"No answer: {answer.error}"


def say_calls(answer: ReplayedAnswer) -> str:
    """Return which tools were called, and where their results come from."""
    return "\n".join(map(say_call, answer.tool_calls)) or _UNKNOWN


def say_call(call: CallMade) -> str:
    """Return a call in a line; secrets among its arguments are not shown."""
    note = f"  [{call.origin.value}]" if call.origin is ResultOrigin.MISSING else "  [failed]" if call.is_error else ""
    return f"{call.name} {json.dumps(mask(call.arguments), ensure_ascii=False)}{note}"


def say_tokens(answer: ReplayedAnswer) -> str:
    """Return how many tokens an answer took."""
    usage = answer.usage
    if usage is None:
        return _UNKNOWN
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out"


def say_cost(cost: int | None, currency: str) -> str:
    """Return a cost as text."""
    return _UNKNOWN if cost is None else f"{cost / NANO:,.6f} {currency}"


def say_difference(comparison: Comparison) -> list[str]:
    """Return in lines how the answers differ, and which calls had no result."""
    lines = ["Both answers are the same."] if comparison.is_same and comparison.again.error is None else []
    facts = []
    if comparison.more_tokens is not None:
        facts.append(f"{comparison.more_tokens:+,} tokens")
    if comparison.more_cost is not None:
        facts.append(f"{comparison.more_cost / NANO:+,.6f} {comparison.currency}")
    if facts:
        lines.append(f"Difference: {', '.join(facts)}.")
    missing = comparison.again.missing
    if missing:
        names = ", ".join(dict.fromkeys(each.name for each in missing))
        times = "1 call is" if len(missing) == 1 else f"{len(missing)} calls are"
        lines.append(f"{times} not in the record, so the model was told that there is no result: {names}.")
    return lines


def _text(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(visible(text), style=style, overflow="fold")
