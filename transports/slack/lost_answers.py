"""Asking Slack whether a message has arrived whose answer was lost, so that it is not sent twice."""

import logging
from collections.abc import Mapping
from typing import Any

from cachetools import FIFOCache

from botservice.core.errors import DeliveryError
from botservice.turns.turn import Delivery
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.formatting import mark_of
from transports.slack.inbound_events import field, items_of, timestamp
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

_PAGE = 15  # the most that apps outside the marketplace are given at once
_MAX_PAGES = 20
_MAX_KNOWN = 10_000
# Slack could not be asked at all: sending may repeat a message, never asking again would keep it back for ever.
_CANNOT_ASK = ("missing_scope", "not_in_channel", "thread_not_found", "method_not_supported_for_channel_type")


class LostAnswers:
    """Finds messages that were sent. What was surely refused is not looked for."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._refused: FIFOCache[int, int] = FIFOCache(_MAX_KNOWN)
        self._cursors: dict[int, str] = {}

    def note(self, delivery: Delivery, failure: SlackFailure) -> None:
        """Take note of how an attempt went."""
        if not failure.is_unknown and self._refused.get(delivery.id, 0) == delivery.attempts:
            self._refused[delivery.id] = delivery.attempts + 1

    async def find(
        self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery, *, file: tuple[str, int] | None = None
    ) -> str | None:
        """Return the timestamp of a delivery that has arrived before, or None if it has not.

        Args:
            file: The name and the size by which a file is known, because files carry no metadata.

        Raises:
            DeliveryError: Slack cannot be asked now; the message waits, because otherwise it might come twice.
        """
        if delivery.attempts <= self._refused.get(delivery.id, 0):
            return None
        try:
            return await self._search(workspace, place, delivery, file)
        except SlackFailure as failure:
            if failure.code in _CANNOT_ASK:
                logger.warning("slack.arrival_unknown", extra={"delivery": delivery.id, "reason": failure.code})
                return None
            wait = failure.retry_after_seconds
            raise DeliveryError("asking Slack whether it arrived", retry_after_seconds=wait) from failure

    async def _search(
        self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery, file: tuple[str, int] | None
    ) -> str | None:
        thread_ts = place["thread_ts"]
        method = "conversations.replies" if thread_ts else "conversations.history"
        oldest = timestamp(delivery.payload.get("asked_at"))
        for _ in range(_MAX_PAGES):
            answer = await self._client.ask(
                workspace.token,
                method,
                channel=place["channel"],
                ts=thread_ts or None,
                oldest=oldest,
                limit=str(_PAGE),
                include_all_metadata="true",
                cursor=self._cursors.get(delivery.id),
            )
            for message in items_of(answer, "messages"):
                if _is(message, delivery, file, workspace):
                    self._cursors.pop(delivery.id, None)
                    return timestamp(field(message, "ts"))
            cursor = field(answer, "response_metadata", "next_cursor")
            if not isinstance(cursor, str) or not cursor or (thread_ts is None and oldest is None):
                break
            self._cursors[delivery.id] = cursor  # after a refusal, asking goes on here
        self._cursors.pop(delivery.id, None)
        return None


def _is(message: object, delivery: Delivery, file: tuple[str, int] | None, workspace: Workspace) -> bool:
    if file is None:
        metadata, mark = field(message, "metadata"), mark_of(delivery)
        is_ours = bool(field(metadata, "event_type") == mark["event_type"])
        is_this = field(metadata, "event_payload", "delivery") == mark["event_payload"]["delivery"]
        return is_ours and bool(is_this)
    if field(message, "user") != workspace.bot_user_id:
        return False
    return any((field(each, "name"), field(each, "size")) == file for each in items_of(message, "files"))
