"""Many made-up people on one service, and a look at every prompt, answer, export and log line: does any word get out?

python benchmarks/isolation.py --turns 100000 --people 2000 --groups 200
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).parents[1]
sys.path[:1] = [str(_ROOT), str(_ROOT / "tests")]  # instead of this folder, which has a `turns` of its own

from people.generated import generate  # noqa: E402 - found where the tests are

from botservice import Storage  # noqa: E402


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--people", type=int, default=2_000)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", default=None, help="its address; by default a new SQLite file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        async with Storage.open(asked.database or f"sqlite:///{folder}/bot.db", migrate=True) as storage:
            found = await generate(
                storage, turns=asked.turns, people=asked.people, groups=asked.groups, seed=asked.seed
            )
        seconds = time.monotonic() - started
    print(f"{asked.turns} turns of {asked.people} people in {seconds:.0f} s: {found.prompts} prompts,")
    print(f"{found.with_facts} with facts, {found.with_found} with found messages, {len(found.leaks)} leaks")
    for leak in found.leaks[:20]:
        print(leak)
    sys.exit(bool(found.leaks))


asyncio.run(main())
