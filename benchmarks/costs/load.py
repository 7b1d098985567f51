"""Many chats at once: turns a second and how long each takes, by the service and by the bare client."""

import asyncio
import statistics
import time
from dataclasses import dataclass, field


@dataclass
class Load:
    """What came of a load.

    Attributes:
        seconds: How long each turn took since it was asked: the first ones all at the same moment.
    """

    chats: int
    each: int
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)
    errors: int = 0

    @property
    def per_second(self):
        return len(self.seconds) / self.wall_seconds

    @property
    def cpu_ms(self):
        return self.cpu_seconds / len(self.seconds) * 1000

    def percentile(self, percent):
        """Return how many milliseconds so many of a hundred turns took at most."""
        return statistics.quantiles(self.seconds, n=100)[percent - 1] * 1000


async def put_under_load(turns, each):
    """Return what came of chats that ask at once, each so many times, one after the other.

    Args:
        turns: One function for each chat, that asks.
    """
    load = Load(len(turns), each)

    async def chat(turn):
        asked_at = clock  # not when its task gets to begin: others' work on their turns holds that up
        for number in range(each):
            try:
                await turn(number)
            except Exception:  # noqa: BLE001 - whatever it is, it is counted
                load.errors += 1
            else:
                load.seconds.append(time.perf_counter() - asked_at)
            asked_at = time.perf_counter()

    cpu, clock = time.process_time(), time.perf_counter()
    await asyncio.gather(*map(chat, turns))
    load.wall_seconds, load.cpu_seconds = time.perf_counter() - clock, time.process_time() - cpu
    return load


def show_loads(named):
    """Print what came of several rounds of each, and the first one's ratio to each other: medians.

    Args:
        named: The rounds of the bare client first, then those of each database.
    """
    print("| | turns a second | p50, ms | p99, ms | ms of CPU a turn | errors | turns a second, to the bare | p99 |")
    print("|---|---|---|---|---|---|---|---|")
    bare = next(iter(named.values()))

    def middle(figures):
        return statistics.median(figures)

    for name, rounds in named.items():
        pairs = list(zip(rounds, bare, strict=True))
        rate = middle(own.per_second / other.per_second for own, other in pairs)
        late = middle(own.percentile(99) / other.percentile(99) for own, other in pairs)
        print(
            f"| {name} | {middle(each.per_second for each in rounds):.0f} "
            f"| {middle(each.percentile(50) for each in rounds):.0f} "
            f"| {middle(each.percentile(99) for each in rounds):.0f} "
            f"| {middle(each.cpu_ms for each in rounds):.2f} | {sum(each.errors for each in rounds)} "
            f"| {rate:.2f} | {late:.2f} |",
            flush=True,
        )
