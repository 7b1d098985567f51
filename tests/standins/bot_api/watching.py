"""What a test sees, counts and waits for: on a condition, with a time limit, from any thread but the server's."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from standins.bot_api.chats import DRAFT_SECONDS, Chat, Draft, Visible, World, seen
from standins.bot_api.journal import CallAnswered, CallReceived, DraftShown
from standins.bot_api.updates import Updates
from standins.serving import DEFAULT_TIMEOUT_SECONDS, LOOK_SECONDS, Served

Wanted = str | Callable[[Visible], bool] | None


class Watching(Served):
    """The half of the stand-in that tests look at."""

    world: World
    updates: Updates

    def visible_messages(self, chat_id: int, *, from_bot: bool | None = None) -> list[Visible]:
        """Return what a person sees in a chat now, oldest first; of the bot, of people, or both."""
        with self.condition:
            chat = self.world.chats.get(chat_id)
            if chat is None:
                return []
            return [
                seen(chat, message)
                for message in chat.messages.values()
                if not message.deleted and from_bot in (None, message.from_bot)
            ]

    def visible_texts(self, chat_id: int, *, from_bot: bool | None = True) -> list[str]:
        return [message.text for message in self.visible_messages(chat_id, from_bot=from_bot)]

    def wait_for_messages(
        self,
        chat_id: int,
        count: int = 1,
        wanted: Wanted = None,
        *,
        after: int = 0,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        from_bot: bool | None = True,
    ) -> list[Visible]:
        """Return the visible messages that are wanted, once there are at least `count`.

        Args:
            wanted: A piece of text, or a predicate over `Visible`; None wants every message.
            after: Only messages with a larger message_id, such as `said.message_id`.

        Raises:
            TimeoutError: there were not so many in time; says what is visible.
        """
        fits = _predicate(wanted)
        found: list[Visible] = []
        version = -1

        def arrived() -> bool:
            nonlocal found, version
            chat = self.world.chats.get(chat_id)
            if chat is None or chat.version == version:
                return False
            version = chat.version
            found = [message for message in self._after(chat, after, from_bot) if fits(message)]
            return len(found) >= count

        with self.condition:
            if self.condition.wait_for(arrived, timeout):
                return found
        visible = self.visible_messages(chat_id)
        lines = "\n  ".join(f"{m.message_id} {'bot' if m.from_bot else 'person'}: {m.text[:100]!r}" for m in visible)
        raise TimeoutError(
            f"{len(found)} of {count} wanted messages in chat {chat_id} within {timeout} s; visible:\n  {lines}"
        )

    def wait_for_message(self, chat_id: int, wanted: Wanted = None, **how: Any) -> Visible:
        """Return the first message that is wanted, as `wait_for_messages` does."""
        return self.wait_for_messages(chat_id, 1, wanted, **how)[0]

    async def message(self, chat_id: int, wanted: Wanted = None, **how: Any) -> Visible:
        """Return what `wait_for_message` does, without holding up the test's own event loop."""
        return await asyncio.to_thread(self.wait_for_message, chat_id, wanted, **how)

    async def messages(self, chat_id: int, count: int, wanted: Wanted = None, **how: Any) -> list[Visible]:
        """Return what `wait_for_messages` does, without holding up the test's own event loop."""
        return await asyncio.to_thread(self.wait_for_messages, chat_id, count, wanted, **how)

    def wait_until(
        self, holds: Callable[[], object], *, timeout: float = DEFAULT_TIMEOUT_SECONDS, what: str = "it"
    ) -> None:
        """Wait until `holds()` is true; it is asked, under the lock, after every entry of the journal and now and then.

        Raises:
            TimeoutError: it did not come true in time.
        """
        end = time.monotonic() + timeout
        with self.condition:
            while not holds():
                left = end - time.monotonic()
                if left <= 0:
                    tail = "\n  ".join(repr(entry)[:300] for entry in self.journal.entries()[-12:])
                    raise TimeoutError(f"{what} did not come true within {timeout} s; the last entries:\n  {tail}")
                self.condition.wait(min(left, LOOK_SECONDS))

    async def until(self, holds: Callable[[], object], **how: Any) -> None:
        """Wait as `wait_until` does, without holding up the test's own event loop."""
        await asyncio.to_thread(self.wait_until, holds, **how)

    async def all_taken(self) -> None:
        """Return when the bot has stored whatever people did: nothing is confirmed before."""
        await self.until(lambda: not self.updates.pending, what="that all is taken in")

    def calls(self, method: str | None = None, *, chat_id: int | None = None, since: int = 0) -> list[CallReceived]:
        """Return the calls received, of a method, about a chat, after a sequence number."""
        return [call for call in self.journal.entries(CallReceived, since=since) if _is_about(call, method, chat_id)]

    def answers(self, method: str | None = None, *, chat_id: int | None = None, since: int = 0) -> list[CallAnswered]:
        """Return how calls ended, of a method, about a chat, after a sequence number."""
        return [call for call in self.journal.entries(CallAnswered, since=since) if _is_about(call, method, chat_id)]

    def wait_for_call(
        self,
        method: str,
        predicate: Callable[[CallReceived], bool] = lambda _: True,
        *,
        chat_id: int | None = None,
        since: int = 0,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> CallReceived:
        """Return the first such call, waiting for it if need be."""
        return self.journal.wait_for(
            CallReceived,
            lambda call: _is_about(call, method, chat_id) and predicate(call),
            since=since,
            timeout=timeout,
        )

    async def call(self, method: str, predicate: Callable[[CallReceived], bool] = lambda _: True, **how: Any) -> Any:
        """Return what `wait_for_call` does, without holding up the test's own event loop."""
        return await asyncio.to_thread(self.wait_for_call, method, predicate, **how)

    def drafts(self, chat_id: int) -> list[DraftShown]:
        """Return every draft that was shown in a chat, as it grew."""
        return [draft for draft in self.journal.entries(DraftShown) if draft.chat_id == chat_id]

    def visible_draft(self, chat_id: int) -> Draft | None:
        """Return the draft that a person sees now: it vanishes with the next message, or after 30 s."""
        with self.condition:
            chat = self.world.chats.get(chat_id)
            draft = chat.draft if chat is not None else None
            is_old = draft is not None and time.monotonic() - draft.shown_at > DRAFT_SECONDS
            return None if is_old else draft

    @staticmethod
    def _after(chat: Chat, after: int, from_bot: bool | None) -> list[Visible]:
        return [
            seen(chat, message)
            for message_id, message in chat.messages.items()
            if message_id > after and not message.deleted and from_bot in (None, message.from_bot)
        ]


def _predicate(wanted: Wanted) -> Callable[[Visible], bool]:
    if wanted is None:
        return lambda _: True
    if isinstance(wanted, str):
        return lambda message: wanted in message.text
    return wanted


def _is_about(call: CallReceived | CallAnswered, method: str | None, chat_id: int | None) -> bool:
    return (method is None or call.method.lower() == method.lower()) and chat_id in (None, call.chat_id)
