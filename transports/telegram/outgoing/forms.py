"""New forms of messages: tried where a chat may take them, and never again where it did not."""

import logging
from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import ClassVar

from sqlalchemy import Connection

from botservice.turns.refused_forms import note_refused, refused_in
from transports.refusals import Refusals

logger = logging.getLogger(__name__)


class Forms(Refusals[Mapping[str, str], str, str]):
    """Which forms each conversation takes: what one refuses, it refuses for good, and others' notes count at once."""

    is_for_good: ClassVar[bool] = True
    fresh_seconds: ClassVar[float] = 0.0

    def _read(self, connection: Connection, where: Mapping[str, str], now: datetime) -> set[str]:  # noqa: ARG002
        return refused_in(connection, where)

    def _write(self, connection: Connection, where: Mapping[str, str], what: str, now: datetime) -> bool:
        return note_refused(connection, where, what, now)

    def _say(self, where: Mapping[str, str], what: str, why: str) -> None:  # noqa: ARG002 - ids stay out of the log
        logger.warning("transport.form_refused", extra={"form": what, "reason": why})

    def _name(self, where: Mapping[str, str]) -> Hashable:
        return tuple(sorted(where.items()))
