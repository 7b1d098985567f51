"""When a failed model call, turn or delivery is tried again, and when it is given up: how long a 429 lets it wait.

Pure functions of what went wrong and for how long.
"""

import math
from dataclasses import dataclass

from botservice.core.errors import DeliveryError, DeliveryRefused, LLMError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays and limits of retries.

    Attributes:
        max_attempts: The number of attempts.
        first_delay_seconds: The delay before the second attempt; each further delay is twice as long.
        max_delay_seconds: The longest delay.
        total_seconds: The time from the first failure after which no attempt starts or lasts; None for no limit.
        least_seconds: The least time before giving up, regardless of the number of attempts.
    """

    max_attempts: int
    first_delay_seconds: float
    max_delay_seconds: float
    total_seconds: float = math.inf
    least_seconds: float = 0.0

    def delay(self, attempt: int) -> float:
        """Compute the delay after a number of failed attempts, 1 or more."""
        return min(self.first_delay_seconds * 2.0 ** min(attempt - 1, 30), self.max_delay_seconds)


# A person is told within 30 seconds of the model's first failure.
MODEL_RETRIES = RetryPolicy(max_attempts=5, first_delay_seconds=0.5, max_delay_seconds=8.0, total_seconds=20.0)
TURN_RETRIES = RetryPolicy(max_attempts=4, first_delay_seconds=1.0, max_delay_seconds=60.0)
# A platform may be away for hours: what is owed to a person stays owed for a day, which is so many tries. After the
# first minutes, waits are about as long as the platform was away, and a quarter of an hour at most: thousands of chats
# that nobody can reach cost little.
DELIVERY_RETRIES = RetryPolicy(
    max_attempts=107, first_delay_seconds=0.5, max_delay_seconds=900.0, least_seconds=86_400.0
)

# A turn that was begun so often without storing one step, message or answer takes its process down with it.
MAX_CUT_OFF_BEGINNINGS = 20
# One that was begun so often may be such a turn. Only a few of them run side by side, and none before its process has
# lived a while: where processes die young, those that were in the way by chance do not count one more beginning.
SUSPICIOUS_BEGINNINGS = 4
SUSPECTS_AT_ONCE = 4
_ANY = 2**31 - 1


def turn_delay(policy: RetryPolicy, attempt: int) -> float | None:
    """Return the seconds to wait before a turn is tried again, or None to set it aside.

    Args:
        attempt: How many tries have failed.
    """
    return None if attempt >= policy.max_attempts else policy.delay(attempt)


def seconds_alive_first(beginnings: int) -> float:
    """Return how many seconds a process is to have lived before it begins a turn that was begun so often: up to 8."""
    return 2.0 ** min(3, (beginnings - SUSPICIOUS_BEGINNINGS) // 4) if beginnings >= SUSPICIOUS_BEGINNINGS else 0.0


def beginnings_not_yet(seconds_alive: float) -> int:
    """Return from how many beginnings on a process that has lived so long leaves a turn alone."""
    return next((n for n in range(MAX_CUT_OFF_BEGINNINGS) if seconds_alive_first(n) > seconds_alive), _ANY)


def model_delay(policy: RetryPolicy, error: LLMError, attempt: int, elapsed_seconds: float) -> float | None:
    """Return the seconds to wait before the model is asked again, or None to give up.

    Args:
        attempt: How many tries have failed.
        elapsed_seconds: Since the first of them failed.
    """
    if not error.is_transient or attempt >= policy.max_attempts:
        return None
    delay = max(policy.delay(attempt), error.retry_after_seconds or 0.0)
    return delay if elapsed_seconds + delay < policy.total_seconds else None


def delivery_delay(policy: RetryPolicy, error: DeliveryError, attempt: int, age_seconds: float) -> float | None:
    """Return the seconds to wait before a message is sent again, or None to give up.

    Args:
        attempt: How many tries have failed.
        age_seconds: Since the message was to be sent.
    """
    is_tried_enough = attempt >= policy.max_attempts and age_seconds >= policy.least_seconds
    if isinstance(error, DeliveryRefused) or is_tried_enough:
        return None
    if error.retry_after_seconds is not None:
        return error.retry_after_seconds
    return policy.delay(attempt)
