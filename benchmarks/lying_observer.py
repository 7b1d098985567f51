"""Many made-up people, observed by a liar: is an invention kept, or read by others, or left of who was forgotten?

python benchmarks/lying_observer.py --turns 10000 --people 60 --groups 8
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).parents[1]
sys.path[:1] = [str(_ROOT), str(_ROOT / "tests")]  # instead of this folder, which has a `turns` of its own

from people.lying import observed  # noqa: E402 - found where the tests are

from botservice import Storage  # noqa: E402


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--database", default=None, help="its address; by default a new SQLite file")
    asked = parser.parse_args()
    forgotten = range(asked.people // 6, asked.people // 3)
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        async with Storage.open(asked.database or f"sqlite:///{folder}/bot.db", migrate=True) as storage:
            seen = await observed(
                storage, turns=asked.turns, people=asked.people, groups=asked.groups, forgotten=forgotten
            )
        seconds = time.monotonic() - started
    print(f"{asked.turns} turns in {seconds:.0f} s: {seen.findings.prompts} prompts, {seen.said_tokens} tokens said")
    print(f"{seen.calls} calls of the observer, one for {seen.said_tokens // max(1, seen.calls)} tokens")
    print(f"{seen.lies} lies; kept: {seen.notes} notes, {seen.facts} facts, of them {len(seen.invented)} inventions")
    left = len(seen.left_of_forgotten)
    print(f"{len(seen.findings.leaks)} leaks, {left} words left of {len(forgotten)} people who were forgotten")
    for leak in seen.findings.leaks[:20]:
        print(leak)
    sys.exit(bool(seen.findings.leaks or seen.invented or seen.left_of_forgotten))


asyncio.run(main())
