"""The event stream of one open page: brings it up to what is stored and what is being written, again and again."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from botservice.core.errors import StorageError
from botservice.core.messages import Role
from botservice.storage.database import Storage
from transports.common.growing_answer import Step
from transports.web.outbound import show_running
from transports.web.streaming import Channel, Hub, WebDraft
from transports.web.timeline import News, StreamPosition, TimelineCursor, read_news

logger = logging.getLogger(__name__)

_RETRY_MILLISECONDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class StreamPace:
    """How often a stream does something unasked, in seconds.

    Attributes:
        working: Between looks at storage while an answer is awaited: another process may be the one that writes it.
        idle: Between looks at storage otherwise.
        heartbeat: Of silence before a sign of life; proxies close what is silent for a minute.
    """

    working: float = 1.0
    idle: float = 5.0
    heartbeat: float = 15.0


PACE: Final = StreamPace()


def format_event(name: str, data: Any, event_id: object = None) -> str:
    """Return an event as it is written on the wire.

    Source: HTML standard, 9.2.6.
    """
    head = "" if event_id is None else f"id: {event_id}\n"
    return f"{head}event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


@dataclass(frozen=True, slots=True)
class DraftPosition:
    """What a page has of the draft."""

    complete: int = 0
    open_block: str = ""
    steps: tuple[Step, ...] = ()
    progress: tuple[str, str] | None = None


class PageStream:
    """What one page has been told, and what it is to be told next."""

    def __init__(self, storage: Storage, hub: Hub, session: str, cursor: TimelineCursor, pace: StreamPace) -> None:
        self._storage = storage
        self._hub = hub
        self._session = session
        self._channel: Channel = hub.channel(session)
        self._cursor = cursor
        self._pace = pace
        self._seen = StreamPosition()
        self._is_working: bool | None = None
        self._is_in_trouble = False
        self._draft: WebDraft | None = None
        self._shown = DraftPosition()

    async def events(self) -> AsyncIterator[str]:
        """Yield events until the hub closes."""
        loop = asyncio.get_running_loop()
        yield f"retry: {_RETRY_MILLISECONDS}\n\n"
        with self._channel.watching() as changed:
            seen: int | None = None
            said_at = polled_at = loop.time()
            is_quiet = False
            while not self._hub.is_closed:
                changed.clear()
                text = ""
                if seen != self._channel.changes or loop.time() - polled_at >= self._poll_seconds:
                    is_first = seen is None
                    seen, polled_at = self._channel.changes, loop.time()
                    text = "".join(await self._follow_storage(is_first=is_first))
                has_read_all = seen == self._channel.changes
                text += "".join(await self._follow_draft(has_read_all=has_read_all, is_quiet=is_quiet))
                if not text and loop.time() - said_at >= self._pace.heartbeat:
                    text = ": still here\n\n"
                if text:
                    said_at = loop.time()
                    yield text
                is_quiet = await _wait(changed, min(self._poll_seconds, self._pace.heartbeat))

    @property
    def _poll_seconds(self) -> float:
        return self._pace.working if self._is_working else self._pace.idle

    async def _follow_storage(self, *, is_first: bool) -> list[str]:
        try:
            news = await self._storage.read(
                lambda connection: read_news(connection, self._session, self._cursor, self._seen)
            )
        except StorageError as error:
            logger.warning("web.storage_unavailable", extra={"reason": str(error)})
            is_news, self._is_in_trouble = not self._is_in_trouble, True
            return [format_event("trouble", {})] if is_news else []
        told = list(self._tell(news, is_first=is_first))
        self._cursor, self._seen = news.cursor, news.seen
        return told

    def _tell(self, news: News, *, is_first: bool) -> Iterator[str]:
        cursor = self._cursor
        if news.begins_anew:
            cursor = TimelineCursor()
            yield format_event("reset", {}, cursor)
        if news.span.has_earlier:
            yield format_event("earlier", {})
        version = news.cursor.version
        for message in news.span.messages:
            cursor = TimelineCursor(message["id"], cursor.notice_id, version)
            if message["role"] == Role.ASSISTANT:
                self._draft = None  # the page puts the answer in its place
            yield format_event("message", message, cursor)
        for notice in news.span.notices:
            cursor = TimelineCursor(cursor.message_id, notice["id"], version)
            yield format_event("notice", notice, cursor)
        for waiting in news.waiting:
            yield format_event("waiting", waiting)
        for question in news.unanswered:
            yield format_event("stopped", question)
        is_news = self._is_in_trouble or news.is_working != self._is_working
        is_answered = not news.is_working and (
            news.span.messages or news.span.notices
        )  # also where it was there at once
        if is_first or is_news or is_answered:
            self._is_working, self._is_in_trouble = news.is_working, False
            yield format_event("state", {"working": news.is_working})

    async def _follow_draft(self, *, has_read_all: bool, is_quiet: bool) -> list[str]:
        """Return what the draft has more than the page.

        A draft that ended stays until its answer takes its place, or until nothing is worked on; and the next one waits
        for that, too.

        Args:
            is_quiet: Whether nothing has come for a while: then what there is is shown to the last word.
        """
        draft = self._channel.draft
        if draft is not self._draft and not has_read_all:
            return []
        if draft is None or (draft.is_closed and (draft is not self._draft or not self._is_working)):
            return self._end_draft()
        is_new = draft is not self._draft
        await draft.format(is_all=is_new or is_quiet)
        if is_new:
            self._draft, self._shown = draft, DraftPosition()
        return list(self._tell_draft(draft, is_new=is_new))

    def _end_draft(self) -> list[str]:
        if self._draft is None or self._is_working:
            return []
        self._draft = None
        return [format_event("draft_end", {})]

    def _tell_draft(self, draft: WebDraft, *, is_new: bool) -> Iterator[str]:
        shown, steps, at_work = self._shown, draft.answer.steps, draft.answer.at_work
        if is_new:
            activity = at_work.name if at_work is not None else None
            yield format_event("draft", {"activity": activity, "blocks": draft.all_blocks})
        elif (len(draft.blocks), draft.open_block) != (shown.complete, shown.open_block):
            yield format_event("blocks", {"at": shown.complete, "blocks": draft.all_blocks[shown.complete :]})
        if steps is not shown.steps:
            yield format_event("calls", {"calls": show_running(steps)})
        progress = (at_work.name, at_work.said) if at_work is not None and at_work.said else shown.progress
        if progress is not None and progress != shown.progress:
            yield format_event("progress", dict(zip(("activity", "text"), progress, strict=True)))
        self._shown = DraftPosition(len(draft.blocks), draft.open_block, steps, progress)


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Return when an event is set, or when the time is over: whether that is why."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return True
    return False
