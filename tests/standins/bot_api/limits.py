"""Telegram's published rate limits, off unless a test switches them on.

Source: core.telegram.org/bots/faq, "My bot is hitting limits": 1 message a second in a chat, 20 a minute in a group,
30 a second over all.
"""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

COUNTED = ("send", "edit", "copy", "forward")
NOT_COUNTED = frozenset({"sendchataction", "sendmessagedraft", "sendrichmessagedraft"})


@dataclass(slots=True)
class RateLimits:
    """The limits, and what was sent lately.

    `clock` lets a test move the time by itself. `second` says how long a second is taken for: a busy machine lets
    requests that were sent a second apart arrive with less between them.
    """

    chat_per_second: int = 1
    group_per_minute: int = 20
    all_per_second: int = 30
    clock: Callable[[], float] = time.monotonic
    second: float = 1.0
    refused: int = 0
    _sent: dict[object, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def wait_needed(self, method: str, chat_id: int, *, is_group: bool) -> int:
        """Return the whole seconds to wait, or 0 after counting the call."""
        method = method.lower()
        if not method.startswith(COUNTED) or method in NOT_COUNTED:
            return 0
        now = self.clock()
        rules: list[tuple[object, int, float]] = [
            (chat_id, self.chat_per_second, self.second),
            ("all", self.all_per_second, self.second),
        ]
        if is_group:
            rules.append((("group", chat_id), self.group_per_minute, 60.0))
        wait = max(self._wait(key, count, seconds, now) for key, count, seconds in rules)
        if wait > 0:
            self.refused += 1
            return max(1, math.ceil(wait))
        for key, _, _ in rules:
            self._sent[key].append(now)
        return 0

    def _wait(self, key: object, count: int, seconds: float, now: float) -> float:
        sent = self._sent[key]
        while sent and sent[0] <= now - seconds:
            sent.popleft()
        return 0.0 if len(sent) < count else sent[len(sent) - count] + seconds - now
