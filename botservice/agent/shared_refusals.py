"""What models and their servers refuse, in the database: learned by one process, known to all of them."""

import logging
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from botservice.conversation.refusal_queries import list_refusals, write_refusals
from botservice.core.errors import BotServiceError
from botservice.llm.chat import ChatLLM
from botservice.llm.server_limits import ServerLimits
from botservice.storage.database import Storage

logger = logging.getLogger(__name__)

_FRESH_SECONDS: Final = 60.0


class SharedRefusals:
    """Shares what a model refuses with all processes of a storage. What others learn is seen within a minute."""

    def __init__(self, llm: ChatLLM, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Share what a model learns.

        Args:
            clock: Seconds that never go back.
        """
        self._limits = list(_limits_of(llm))
        self._clock = clock
        self._read_at: weakref.WeakKeyDictionary[Storage, float] = weakref.WeakKeyDictionary()

    async def refresh(self, storage: Storage) -> None:
        """Have the model go by what is stored. A database that does not answer changes nothing."""
        read_at = self._read_at.get(storage)
        is_fresh = read_at is not None and self._clock() < read_at + _FRESH_SECONDS
        if is_fresh or not self._limits:
            return
        self._read_at[storage] = self._clock()
        now = storage.now()
        try:
            found = await storage.read(lambda connection: list_refusals(connection, now))
        except BotServiceError as error:
            logger.info("model.refusals_not_read", extra={"reason": type(error).__name__})
            return
        for limits in self._limits:
            of_model = [each for each in found if (each.server, each.model) == (limits.server, limits.model)]
            limits.share({each.what: (each.expires_at - now).total_seconds() for each in of_model})

    async def store(self, storage: Storage) -> None:
        """Store what the model has learned since. Where that fails, it is stored with what is learned next."""
        for limits in self._limits:
            if not limits.has_news:
                continue
            news, now = limits.take_news(), storage.now()
            try:
                await storage.write(
                    partial(write_refusals, server=limits.server, model=limits.model, news=news, now=now)
                )
            except BotServiceError as error:
                limits.give_back_news(news)
                logger.info("model.refusals_not_stored", extra={"reason": type(error).__name__})
                return
            extra = {"server": limits.server, "model": limits.model, "refused": ", ".join(sorted(news))}
            logger.warning("model.refusal_learned", extra=extra)


def _limits_of(llm: ChatLLM) -> Iterator[ServerLimits]:
    """Yield what is known of the servers of a model, and of those that are asked where it cannot answer."""
    for member in llm.llms:
        if member.limits is not None:
            yield member.limits
        elif member is not llm:
            yield from _limits_of(member)
