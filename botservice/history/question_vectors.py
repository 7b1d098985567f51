"""The vector of a question: in time for the answer, or not at all."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from botservice.core.errors import BotServiceError
from botservice.history.embeddings import Embedder

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 2.0
_PAUSE_SECONDS = 30.0  # after a failure: words do until then, and nobody waits
_REMEMBERED = 256  # every step of a turn asks the same again


class QuestionVectors:
    """Embeds questions within a time limit; a failure costs nothing but the meaning."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embedder = embedder
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], NDArray[Any]] = OrderedDict()
        self._paused_until = float("-inf")

    @property
    def model_key(self) -> str:
        """What names the vectors that questions can be compared with."""
        return self._embedder.model_key

    async def vector_of(self, text: str) -> NDArray[Any] | None:
        """Return the vector of text; None if the embedder fails or takes too long."""
        key = (self._embedder.model_key, text)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        if self._clock() < self._paused_until:
            return None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                found = np.asarray(await self._embedder.embed_query(text), np.float32).ravel()
        except Exception as error:  # a border: an embedder is foreign code, and no reply fails for it
            self._paused_until = self._clock() + _PAUSE_SECONDS
            is_expected = isinstance(error, BotServiceError | TimeoutError)
            reason = str(error) if isinstance(error, BotServiceError) else type(error).__name__
            logger.warning("search.not_embedded", extra={"reason": reason}, exc_info=not is_expected)
            return None
        self._known[key] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found
