"""Updates that wait for the bot, and getUpdates, which hands them out."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from standins.bot_api.calls import ApiError, Call
from standins.bot_api.journal import UpdateConfirmed, UpdateMade, UpdateSent, UpdatesThrownAway
from standins.serving import Journal

FIRST_UPDATE_ID = 714_000_001
ONLY_WHEN_NAMED = frozenset(
    {"chat_member", "guest_message", "message_reaction", "message_reaction_count", "stopped_message_generation"}
)
MAX_LIMIT = 100
MAX_TIMEOUT_SECONDS = 50


def chat_of(update: dict[str, Any]) -> int | None:
    """Return the chat that an update is about, where it has one."""
    for value in update.values():
        if isinstance(value, dict):
            chat = value.get("chat") or (value.get("message") or {}).get("chat")
            if isinstance(chat, dict) and isinstance(chat.get("id"), int):
                return int(chat["id"])
    return None


class Updates:
    """What was not confirmed yet. Its owner holds the lock; `long_poll` takes it by itself."""

    def __init__(self, journal: Journal):
        self.journal = journal
        self.pending: dict[int, dict[str, Any]] = {}
        self.allowed: frozenset[str] | None = None
        self.attempts: dict[int, int] = {}
        self._ids = itertools.count(FIRST_UPDATE_ID)
        self._poll: asyncio.Future[None] | None = None
        self._polls = 0

    def allow(self, names: Any) -> None:
        """Set which kinds are made from now on; an empty list means the usual ones, None leaves it as it was."""
        if isinstance(names, list):
            self.allowed = frozenset(map(str, names)) or None

    def add(self, content: dict[str, Any]) -> int | None:
        """Queue an update, and return its id, or None where the bot did not ask for this kind."""
        kind = next((name for name in content if name != "update_id"), "")
        if kind not in self.allowed if self.allowed is not None else kind in ONLY_WHEN_NAMED:
            return None
        update_id = int(content.get("update_id") or next(self._ids))
        update = {"update_id": update_id, **{name: content[name] for name in content if name != "update_id"}}
        self.pending[update_id] = update
        self.journal.record(UpdateMade, update_id=update_id, chat_id=chat_of(update), update=update)
        return update_id

    def number_from(self, first: int) -> None:
        """Have the next updates be numbered from first on, as Telegram does again after a week without any."""
        self._ids = itertools.count(first)

    def sent(self, update_id: int, way: str) -> int:
        """Note that an update is handed out, and return which attempt it is."""
        attempt = self.attempts[update_id] = self.attempts.get(update_id, 0) + 1
        self.journal.record(UpdateSent, update_id=update_id, way=way, attempt=attempt)
        return attempt

    def confirm(self, update_id: int, way: str) -> None:
        if self.pending.pop(update_id, None) is not None:
            self.journal.record(UpdateConfirmed, update_id=update_id, way=way)

    def throw_away(self, call_seq: int) -> None:
        thrown, self.pending = tuple(self.pending), {}
        self.journal.record(UpdatesThrownAway, update_ids=thrown, call_seq=call_seq)

    def wake(self) -> None:
        """Let a waiting getUpdates look again. Runs in the server's loop."""
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)

    def interrupt(self, reason: str) -> None:
        """End a waiting getUpdates with a 409. Runs in the server's loop."""
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(ApiError(409, f"Conflict: terminated by {reason}"))
        self._poll = None

    def take(self, call: Call) -> list[dict[str, Any]]:
        """Confirm what the offset says, and return what comes next."""
        offset = call.integer("offset")
        if offset < 0:
            for update_id in list(self.pending)[:offset]:
                self.confirm(update_id, "polling")
        while self.pending and offset > 0:
            first = next(iter(self.pending))
            if first >= offset:
                break
            self.confirm(first, "polling")
        limit = call.integer("limit", MAX_LIMIT)
        limit = limit if 1 <= limit <= MAX_LIMIT else MAX_LIMIT
        taken = list(itertools.islice(self.pending.values(), limit))
        for update in taken:
            self.sent(update["update_id"], "polling")
        return taken

    async def long_poll(self, call: Call, take: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the next updates; wait for them as long as the call says.

        Raises:
            ApiError: another poll or a webhook came in between.
        """
        other = "other getUpdates request; make sure that only one bot instance is running"
        self.interrupt(other)
        self._polls += 1
        mine, loop = self._polls, asyncio.get_running_loop()
        deadline = loop.time() + min(call.integer("timeout"), MAX_TIMEOUT_SECONDS)
        while True:
            if mine != self._polls:
                raise ApiError(409, f"Conflict: terminated by {other}")
            waiting = self._poll = loop.create_future()
            taken = take()
            left = deadline - loop.time()
            if taken or left <= 0:
                self._poll = None
                return taken
            try:
                await asyncio.wait_for(waiting, left)
            except TimeoutError:
                self._poll = None if self._poll is waiting else self._poll
                return []
            except asyncio.CancelledError:
                self._poll = None if self._poll is waiting else self._poll
                raise
