"""The vectors of messages as they are stored, and that of a question: in time for the answer, or not at all."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from botservice.core.errors import BotServiceError
from botservice.history.embeddings import Embedder
from botservice.storage.database import Row

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


_KEPT_AS = np.dtype("<f2")  # half floats: half the bytes rank the same


@dataclass(frozen=True, slots=True)
class VectorPage:
    """Some vectors of one context.

    Attributes:
        last_id: Where the next page begins.
    """

    message_ids: list[int]
    matrix: NDArray[np.float16]
    last_id: int

    @classmethod
    def of(cls, rows: Sequence[Row[*tuple[Any, ...]]]) -> Self | None:
        """Return the vectors of rows; None if there are none."""
        if not rows:
            return None
        width = len(rows[-1].data)
        rows_of_width = [row for row in rows if len(row.data) == width]
        matrix = np.frombuffer(b"".join(row.data for row in rows_of_width), _KEPT_AS).reshape(len(rows_of_width), -1)
        return cls([row.message_id for row in rows_of_width], matrix, rows[-1].id)


def as_unit_rows(found: ArrayLike, count: int) -> NDArray[np.float16]:
    """Return what an embedder gave as it is kept: one unit vector per row.

    Raises:
        ValueError: it is not one vector of finite numbers for each of count texts.
    """
    matrix = np.asarray(found, np.float32)
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0 or not np.isfinite(matrix).all():
        raise ValueError(f"{count} texts were to be embedded, and what came back has the shape {matrix.shape}")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return (matrix / np.where(lengths > 0, lengths, 1)).astype(_KEPT_AS)
