"""The people who write: some in a chat of their own with the bot, some in groups, none of them patient."""

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from botservice.proving.checker import PersonMessage, SimulationRecord

_GROUP_SIZES: Final = (5, 5, 4, 4, 4, 4)
_ALONE: Final = 24
_MOST_WAITING: Final = 3
_LOOK_SECONDS: Final = 0.05
# Telegram takes twenty messages a minute from a bot in a group, and so does the bot by itself.
_PAUSE_SECONDS: Final = {"private": 2.5, "group": 5.0}
_PAYING: Final = 0.25


@dataclass(frozen=True, slots=True)
class SimulatedChat:
    """A chat and who writes in it.

    Attributes:
        name: How its orders begin: p or g, and a number.
        id: What the platform calls it; below zero for a group.
    """

    name: str
    id: int
    people: Sequence[int]

    @property
    def is_group(self) -> bool:
        """Whether several people write in it."""
        return self.id < 0


Say = Callable[[SimulatedChat, int, str], None]
"""Takes what a person writes in a chat, as a platform's server does."""


def settle() -> list[SimulatedChat]:
    """Return the chats of a town: fifty people in thirty chats."""
    alone = [SimulatedChat(f"p{number}", 1000 + number, (1000 + number,)) for number in range(1, _ALONE + 1)]
    groups = [
        SimulatedChat(f"g{number}", -2000 - number, [3000 + 10 * number + each for each in range(size)])
        for number, size in enumerate(_GROUP_SIZES, 1)
    ]
    return [*alone, *groups]


@dataclass(frozen=True, slots=True)
class SimulatedUsers:
    """Makes everyone write until it is cancelled."""

    chats: Sequence[SimulatedChat]
    record: SimulationRecord
    say: Say
    clock: Callable[[], float]

    async def write(self, seed: str) -> None:
        """Write in every chat until cancelled; what each says is drawn from the seed."""
        async with asyncio.TaskGroup() as group:
            for chat in self.chats:
                group.create_task(self._write_in(chat, random.Random(f"{seed} {chat.name}")))  # noqa: S311 - no secret

    async def _write_in(self, chat: SimulatedChat, chance: random.Random) -> None:
        pause = _PAUSE_SECONDS["group" if chat.is_group else "private"]
        for number in itertools.count(1):
            await asyncio.sleep(chance.uniform(0.2, 1.8) * pause)
            while self.record.waiting(chat.name) >= _MOST_WAITING:  # noqa: ASYNC110 - people look now and then
                await asyncio.sleep(_LOOK_SECONDS)
            self._say(chat, f"{chat.name}-{number}", chance)

    def _say(self, chat: SimulatedChat, order: str, chance: random.Random) -> None:
        asks_to_pay = chance.random() < _PAYING
        self.record.say(PersonMessage(order, chat.name, self.clock(), asks_to_pay))
        wish = f"please pay order {order}" if asks_to_pay else f"please take note of order {order}"
        self.say(chat, chance.choice(chat.people), wish)
