"""For how long, and when, a message that could not be delivered is sent again."""

from botservice.core.errors import DeliveryError, DeliveryRefused
from botservice.turns.retry_policies import RetryPolicy

# A platform may be away for hours: what is owed to a person stays owed for a day, which is so many tries. After the
# first minutes, waits are about as long as the platform was away, and a quarter of an hour at most: thousands of chats
# that nobody can reach cost little.
DELIVERY_RETRIES = RetryPolicy(
    max_attempts=107, first_delay_seconds=0.5, max_delay_seconds=900.0, least_seconds=86_400.0
)


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
