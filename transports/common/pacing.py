"""How fast one process writes to a chat: it keeps to published limits, and slows down after a 429.

The message that got the 429 is tried again by the outbox (`botservice/turns/outbox.py`).

Source: core.telegram.org/bots/faq, "My bot is hitting limits": one message a second in a chat with short bursts
allowed, 20 a minute in a group, 30 a second over all. docs.slack.dev/apis/web-api/rate-limits, "Posting
messages": one a second in a channel with short bursts allowed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cachetools import FIFOCache

Sleep = Callable[[float], Awaitable[None]]

_GROUP_PER_MINUTE = 20
_ALL_PER_SECOND = 30
_CAREFUL_SECONDS = 60.0
_EVERY_SECONDS = 1.1  # a little more than one, because calls do not all take the same time
_MAX_CHATS = 10_000


@dataclass(slots=True)
class _Bucket:
    """Room for calls that fills up again with time."""

    size: float
    per_second: float
    room: float
    at: float

    def fill(self, now: float) -> float:
        self.room = min(self.size, self.room + (now - self.at) * self.per_second)
        self.at = now
        return self.room

    def wait(self, now: float) -> float:
        """Return the seconds until there is room for one call."""
        room = self.fill(now)
        return 0.0 if room >= 1 else (1 - room) / self.per_second


class Pace:
    """Lets calls pass at the pace that a platform allows.

    Answers pass at once until it refuses one; then its strict limits are kept for a minute.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._groups: FIFOCache[str, _Bucket] = FIFOCache(_MAX_CHATS)  # the oldest has long filled up
        self._not_before: dict[str, float] = {}
        self._last_turn: FIFOCache[str, tuple[object, float]] = FIFOCache(_MAX_CHATS)
        self._careful_until = 0.0
        self._all = _Bucket(_ALL_PER_SECOND, _ALL_PER_SECOND, _ALL_PER_SECOND, clock())

    async def turn(self, chat_id: str, turn_id: object = None) -> None:
        """Return when a message may be sent to a chat; the messages of one turn come one a second."""
        before, at = self._last_turn.pop(chat_id, (None, 0.0))
        if turn_id is not None and before == turn_id:
            self._not_before[chat_id] = max(self._not_before.get(chat_id, 0.0), at + _EVERY_SECONDS)
        while (wait := self._wait(chat_id)) > 0:
            await self._sleep(wait)
        self._take(chat_id)
        self._last_turn[chat_id] = (turn_id, self._clock())

    def may_show(self, chat_id: str, *, reserve: int = 0) -> bool:
        """Return whether something that need not be shown may be, and count it; reserve leaves room for answers."""
        now = self._clock()
        bucket = self._bucket(chat_id, now)
        if self._wait(chat_id) > 0 or (bucket is not None and bucket.fill(now) < 1 + reserve):
            return False
        self._take(chat_id)
        self._not_before[chat_id] = now + _EVERY_SECONDS
        return True

    def refused(self, chat_id: str, seconds: float) -> None:
        """Take note of a 429: the next messages to the chat wait, and those to all chats keep to the strict limits."""
        now = self._clock()
        self._not_before[chat_id] = max(self._not_before.get(chat_id, 0.0), now + seconds)
        self._careful_until = now + seconds + _CAREFUL_SECONDS

    def _wait(self, chat_id: str) -> float:
        now = self._clock()
        waits = [self._not_before.get(chat_id, 0.0) - now]
        bucket = self._bucket(chat_id, now)
        if bucket is not None:
            waits.append(bucket.wait(now))
        if now < self._careful_until:
            waits.append(self._all.wait(now))
        return max(waits)

    def _take(self, chat_id: str) -> None:
        now = self._clock()
        bucket = self._bucket(chat_id, now)
        if bucket is not None:
            bucket.room -= 1
        self._not_before.pop(chat_id, None)
        if now < self._careful_until:
            self._all.fill(now)
            self._all.room -= 1
            self._not_before[chat_id] = now + _EVERY_SECONDS

    def _bucket(self, chat_id: str, now: float) -> _Bucket | None:
        """Return the bucket of a Telegram group; other chats have none."""
        if not chat_id.startswith("-"):
            return None
        if chat_id not in self._groups:
            self._groups[chat_id] = _Bucket(_GROUP_PER_MINUTE, _GROUP_PER_MINUTE / 60, _GROUP_PER_MINUTE, now)
        return self._groups[chat_id]
