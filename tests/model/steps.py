"""What may happen next in a conversation: what people do, and what a worker does that has its claim.

A step is one commit, or one thing that others see: a message that is shown, a tool that runs. What a process does in
its memory between two of them is seen by nobody, so it belongs to the next one. Reading and writing are two steps
wherever something may come in between.

    None → holds → reads → asks → calls → ran → asks → sends → go → sent → holds → None
                 → owes → sends → …
"""

from collections.abc import Iterator

from .commits import Situation, Step
from .people import people
from .states import WORKERS
from .worker import Worker


def steps_in(now: Situation) -> Iterator[Step]:
    """Yield all that may happen next in a conversation."""
    yield from people(now)
    for worker in range(WORKERS):
        if now.world.process[worker] == "up":
            yield from Worker(now, worker).steps()
