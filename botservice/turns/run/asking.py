"""Asking the model, again where that may help."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from botservice.errors import LLMError
from botservice.turns.retry import RetryPolicy, model_delay
from botservice.turns.run.interruption import Interruption

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def ask_model(call: Callable[[], Coroutine[Any, Any, T]], policy: RetryPolicy, interruption: Interruption) -> T:
    """Return what call returns, with the retries that the model's failures deserve.

    Raises:
        LLMError: it failed for good, or for too long.
        WorkCut: somebody interrupted it.
    """
    failed = 0
    first_failure = 0.0
    while True:
        try:
            if not failed:
                return await interruption.guard(call())
            async with asyncio.timeout(max(0.0, first_failure + policy.total_seconds - time.monotonic())):
                return await interruption.guard(call())
        except TimeoutError:
            raise LLMError("the model sent nothing in time") from None
        except LLMError as error:
            failed += 1
            first_failure = first_failure or time.monotonic() - error.failed_for_seconds
            delay = model_delay(policy, error, failed, time.monotonic() - first_failure)
            logger.warning("model.failed", extra={"reason": str(error), "wait_seconds": delay})
            if delay is None:
                raise
            await interruption.guard(asyncio.sleep(delay))
