"""What came of cases, as a table on a terminal. Everything is plain text: nothing that was said is markup."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from botservice.conversation.replay import visible
from botservice.core.quoting import shortened
from botservice.devtools.comparison_table import say_answer, say_cost, say_tokens
from botservice.devtools.running_cases import CaseResult, total_cost

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
