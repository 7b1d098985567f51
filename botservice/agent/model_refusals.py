"""What models and their servers refuse, in the database: learned by one process, known to all of them."""

import logging
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import bindparam, delete, select

from botservice.conversation.queries import forget_kept_out
from botservice.core.errors import BotServiceError
from botservice.llm.chat import ChatLLM
from botservice.llm.openai.options import REMEMBERED_SECONDS, ServerLimits
from botservice.storage.database import Connection, Storage
from botservice.storage.statements import upserting
from botservice.storage.tables.models import model_refusals

logger = logging.getLogger(__name__)

_FRESH_SECONDS: Final = 60.0
_LASTS: Final = timedelta(seconds=REMEMBERED_SECONDS)
_KNOWN: Final = (
    select(model_refusals)
    .where(model_refusals.c.expires_at > bindparam("now"))
    .order_by(model_refusals.c.server, model_refusals.c.model, model_refusals.c.learned_at, model_refusals.c.what)
)
_EXPIRED: Final = delete(model_refusals).where(model_refusals.c.expires_at <= bindparam("now"))
_upsert: Final = upserting(model_refusals, "server", "model", "what")


@dataclass(frozen=True, slots=True)
class ModelRefusal:
    """What one model of one server does not take.

    Attributes:
        what: As the table of errors calls it, such as "image" or "stream_options".
        wording: By which words of its own the server said so, with "…" for all others.
        expires_at: When the server is asked for it again.
    """

    server: str
    model: str
    what: str
    wording: str | None
    learned_at: datetime
    expires_at: datetime


def list_refusals(connection: Connection, now: datetime) -> list[ModelRefusal]:
    """Return what is known, by server and model."""
    return [ModelRefusal(**row._asdict()) for row in connection.execute(_KNOWN, {"now": now}).all()]


def forget_refusals(connection: Connection) -> int:
    """Delete all that was learned, also which messages models refuse; return how many rows there were."""
    gone = connection.execute(delete(model_refusals).returning(model_refusals.c.what)).all()
    return len(gone) + forget_kept_out(connection)


def _write(connection: Connection, limits: ServerLimits, news: Mapping[str, str | None], now: datetime) -> None:
    connection.execute(_EXPIRED, {"now": now})
    for what, wording in sorted(news.items()):
        row: dict[str, Any] = {"server": limits.server, "model": limits.model, "what": what, "wording": wording}
        connection.execute(_upsert(connection), {**row, "learned_at": now, "expires_at": now + _LASTS})


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
            found = await storage.read(lambda connection: list_refusals(connection, now), is_short=True)
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
                await storage.write(partial(_write, limits=limits, news=news, now=now))
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
