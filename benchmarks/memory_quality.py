"""What a memory holds: does the prompt of the default agent hold what answers, with and without an observer?

    python benchmarks/memory_quality.py [--half held-out] [--language en] [--observer good] [--found 1000] [--misses]

The chats are those of tests/data/memory. Each is stored in a database twice, by two people: one is observed while the
chat goes on, as often as the product would, by a scripted observer; the other is searched only, and gets as many tokens
as the first. A reader that knows what it looks for judges both prompts (tests/memory_quality/reader.py).
docs/memory-quality.md says what that shows, and what not.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

_ROOT = Path(__file__).parents[1]
sys.path[:1] = [str(_ROOT), str(_ROOT / "tests")]  # instead of this folder, which has a `turns` of its own

from memory_quality.chats import Chat, read_chats  # noqa: E402 - found where the tests are
from memory_quality.comparing import Cost, Row, Sizes, measure  # noqa: E402
from memory_quality.reader import Verdict  # noqa: E402

from botservice import Storage  # noqa: E402
from botservice.llm.tokens import counter_for  # noqa: E402

_CHANGING = ("update", "preference")


async def run(chats: Sequence[Chat], kind: str, sizes: Sizes) -> tuple[list[Row], Cost]:
    """Measure in a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with Storage.open(f"sqlite:///{Path(folder) / 'memory.db'}", migrate=True) as storage:
            return await measure(storage, chats, kind, sizes)


def share(rows: Sequence[Row], arm: int, verdict: Verdict = Verdict.ANSWERED) -> float:
    """Return how many of the questions came out so; arm 0 is searching alone, arm 1 with an observer."""
    return statistics.fmean(row.verdicts[arm] is verdict for row in rows)


def ratio_interval(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of both, by bootstrap over questions with a fixed seed."""
    chance, ratios = random.Random(0), []
    for _ in range(1000):
        drawn = chance.choices(rows, k=len(rows))
        ratios.append(share(drawn, 1) / max(share(drawn, 0), 1 / len(drawn)))
    ratios.sort()
    return ratios[25], ratios[974]


def table(rows: Sequence[Row], title: str) -> Table:
    """Return the figures by kind of question."""
    shown = Table(title=title)
    columns = ("kind", "questions", "alone", "observed", "misled alone", "misled observed", "tokens", "per 1,000")
    for name in columns:
        shown.add_column(name, justify="left" if name == "kind" else "right")
    kinds = [("all", rows), ("update + preference", [row for row in rows if row.kind in _CHANGING])]
    kinds += [(kind, [row for row in rows if row.kind == kind]) for kind in sorted({row.kind for row in rows})]
    for name, part in kinds:
        tokens = [statistics.fmean(row.tokens[arm] for row in part) for arm in (0, 1)]
        shown.add_row(
            name,
            str(len(part)),
            *(f"{share(part, arm):.2f}" for arm in (0, 1)),
            *(f"{share(part, arm, Verdict.MISLED):.2f}" for arm in (0, 1)),
            " / ".join(f"{each:.0f}" for each in tokens),
            " / ".join(f"{1000 * share(part, arm) / tokens[arm]:.2f}" for arm in (0, 1)),
        )
    return shown


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("development", "held-out"), default="development")
    parser.add_argument("--language", choices=("de", "en", "ru"))
    parser.add_argument("--observer", choices=("good", "bad", "lying"), action="append")
    parser.add_argument("--window", type=int, default=1200, help="tokens of the newest messages (1200)")
    parser.add_argument("--found", type=int, default=1000, help="tokens of what is found beside notes and facts (1000)")
    parser.add_argument("--notes", type=int, default=600, help="tokens of notes (600)")
    parser.add_argument("--trifles", type=int, default=0, help="how many more facts of little weight are said (0)")
    parser.add_argument("--misses", action="store_true", help="list what is not answered with an observer")
    options = parser.parse_args()
    console, chats = Console(width=120), read_chats(options.half, options.language, trifles=options.trifles)
    sizes = Sizes(options.window, options.found, options.notes)
    console.print(f"{len(chats)} chats, half: {options.half}; tokens by: {counter_for().name}")
    for kind in options.observer or ("good", "bad", "lying"):
        started = time.process_time()
        rows, cost = asyncio.run(run(chats, kind, sizes))
        console.print(table(rows, f"observer: {kind}"))
        changing = [row for row in rows if row.kind in _CHANGING]
        low, high = ratio_interval(changing)
        ratio = share(changing, 1) / max(share(changing, 0), 1 / len(changing))
        console.print(
            f"updates and preferences: {ratio:.2f} times searching alone (95 % interval {low:.2f} to {high:.2f})"
        )
        console.print(
            f"{cost.calls} calls for {cost.said_tokens} tokens: one for {cost.said_tokens // max(1, cost.calls)}; "
            f"dropped {cost.dropped}; {time.process_time() - started:.0f} s of CPU"
        )
        for row in rows if options.misses else ():
            if row.verdicts[1] is not Verdict.ANSWERED:
                console.print(f"  [{row.chat}] {row.kind} {row.verdicts[1]}: {row.text}", markup=False)


if __name__ == "__main__":
    main()
