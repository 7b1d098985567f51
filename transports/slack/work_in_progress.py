"""What a person sees while the bot is at work: a status with its stop button, its tools, its answer as it grows."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

from cachetools import FIFOCache

from botservice.core.errors import BotServiceError
from botservice.core.messages import ToolCall
from botservice.turns.transport import Live, StreamRecord
from botservice.turns.turn import Delivery, StoredEvent
from transports.common.growing_answers import Growing, joined
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.draft import SlackDraft, Style, Target
from transports.slack.growing_answer import Streams, Tasks
from transports.slack.inbound_events import EventSource, field, read_message, stored, timestamp, word
from transports.slack.refusals import Feature, SlackRefusals
from transports.slack.sessions import Idle, Statuses
from transports.slack.workspaces import SlackPeople, Workspace, Workspaces

logger = logging.getLogger(__name__)

_MAX_KNOWN = 10_000


class SlackLiveAnswers:
    """Opens a show for every turn that is answered in a channel."""

    def __init__(
        self,
        client: SlackClient,
        workspaces: Workspaces,
        people: SlackPeople,
        streams: Streams,
        style: Style,
        statuses: Statuses,
        idle: Idle,
        refusals: SlackRefusals,
    ) -> None:
        self._client = client
        self._workspaces = workspaces
        self._streams = streams
        self._style = style
        self._people = people
        self._statuses = statuses
        self._idle = idle
        self._refusals = refusals
        self._without_session: FIFOCache[tuple[str, str | None], None] = FIFOCache(_MAX_KNOWN)
        self._without_streams: set[tuple[str, str | None]] = set()  # of workspaces, or of one channel

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows a turn's progress, or None if nobody is answered in the open."""
        target = _target(context_keys, events)
        if target is None:
            return None
        return SlackLive(self, context_keys, target, partial(self._draft, target, record), self._style)

    def _draft(self, target: Target, record: StreamRecord) -> SlackDraft | None:
        """Return what an answer is shown on while it grows, or None if nothing can grow."""
        if not self._without_streams.isdisjoint({(target.team_id, None), (target.team_id, target.channel)}):
            return None
        return SlackDraft(self._client, self._streams, target, record, self._style, self._refusals)

    async def workspace(self, target: Target) -> Workspace:
        """Return where a show takes place."""
        return await self._workspaces.find(target.team_id)

    async def language(self, workspace: Workspace, target: Target) -> str | None:
        """Return the language of the person who is answered."""
        return (await self._people.find(workspace, target.user_id)).language

    async def begin(self, target: Target) -> None:
        """Show that the bot is at work."""
        self._without_session.pop((target.channel, target.thread_ts), None)
        workspace = await self.workspace(target)
        await self._statuses.begin(workspace, target.channel, target.thread_ts, target.user_id)

    async def end(self, context_keys: Mapping[str, str], target: Target, stream_ts: str | None) -> None:
        """Show that it is not any more; nobody waits for that, and the end of a stream may say so."""
        refused = await self._refusals.of(target.team_id)
        if stream_ts is not None and Feature.STATUS_AT_END not in refused:
            self._idle.rest_with(context_keys, target.channel, target.thread_ts, stream_ts)
        else:
            self._idle.rest(context_keys, target.channel, target.thread_ts)

    def rest(self, context_keys: Mapping[str, str], delivery: Delivery) -> None:
        """Show whether a session waits for a decision or rests, after a message has said so."""
        thread_ts = timestamp(delivery.payload.get("thread_ts") or context_keys.get("thread_ts"))
        self._without_session.pop((context_keys["channel_id"], thread_ts), None)
        self._idle.rest(context_keys, context_keys["channel_id"], thread_ts)

    def note_without_session(self, target: Target) -> None:
        """Take note that an answer was there before its session was begun; further down, an earlier one may have."""
        if target.begins_thread:
            self._without_session[target.channel, target.thread_ts] = None

    def may_have_session(self, context_keys: Mapping[str, str], delivery: Delivery) -> bool:
        """Return whether the thread of a delivery may be a session: one that answered at once has begun none."""
        return (context_keys["channel_id"], delivery.payload.get("thread_ts")) not in self._without_session

    def note_without_streams(self, target: Target, failure: SlackFailure) -> None:
        """Take note that a workspace, or a channel, has no streams: answers come as plain messages there."""
        is_of_channel = failure.is_about_place or failure.is_about_arguments  # some stream in threads alone
        self._without_streams.add((target.team_id, target.channel if is_of_channel else None))


class SlackLive(Live):
    """A turn's progress. Whatever goes wrong with it, it ends without a word: the answer comes all the same."""

    def __init__(
        self,
        stage: SlackLiveAnswers,
        context_keys: Mapping[str, str],
        target: Target,
        open_draft: Callable[[], SlackDraft | None],
        style: Style,
    ) -> None:
        self._stage = stage
        self._keys = context_keys
        self._target = target
        self._open_draft = open_draft
        self._draft: SlackDraft | None = None
        self._style = style
        self._shown_before = ""
        self._is_working = False
        self._has_status = False
        self._is_closed = False
        self._text: list[str] = []
        self._changed = asyncio.Event()
        self._growing: Growing | None = None
        self._first_sign = asyncio.get_running_loop().call_later(style.tempo.first_sign, self._begin)

    @cached_property
    def _tasks(self) -> Tasks:
        return Tasks(self._style.pings, has_details=self._target.is_direct, has_sources=self._style.previews)

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""
        if self._is_working:  # what was said before a tool ran is not the answer, but stands there until it comes
            self._is_working = False
            said = "".join(self._text)
            self._shown_before = f"{said}\n\n" if said.strip() else ""
            self._text = [self._shown_before] if self._shown_before else []
            self._tasks.end_all()
        self._text.append(piece)
        self._changed.set()

    def on_activity(self, activity: str) -> None:
        """Take what the bot does now."""
        self._is_working = True
        self._tasks.begin(activity)
        self._changed.set()

    def on_call(self, call: ToolCall) -> None:
        """Take a call that begins."""
        self._is_working = True
        self._tasks.begin_call(call)
        self._changed.set()

    def on_call_end(self, call: ToolCall, *, is_error: bool) -> None:
        """Take what became of a call."""
        self._tasks.end_call(call, has_failed=is_error)
        self._changed.set()

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Take what a tool says of its work."""
        if self._tasks.tell(call, text):
            self._changed.set()

    def on_restart(self) -> None:
        """Keep what was said of an answer that begins anew apart from what comes."""
        self._is_working = True

    async def close(self) -> None:
        """End it, and have the session rest."""
        self._first_sign.cancel()
        if self._growing is not None:
            await self._growing.close()
        was_closed, self._is_closed = self._is_closed, True
        if self._has_status and not was_closed:
            await self._end()
        elif not was_closed:
            self._stage.note_without_session(self._target)

    async def _end(self) -> None:
        try:
            await self._stage.end(self._keys, self._target, None if self._draft is None else self._draft.stream_ts)
        except BotServiceError as error:
            logger.debug("slack.status_left", extra={"reason": str(error)})

    def _begin(self) -> None:
        self._has_status = True
        self._draft, self._growing = self._open_draft(), Growing(self._changed)
        works = () if self._draft is None else (self._show(self._draft, self._growing),)
        self._growing.begin(self._status(), *works)

    async def _status(self) -> None:
        try:
            await self._stage.begin(self._target)
        except BotServiceError as error:
            logger.debug("slack.status_not_set", extra={"reason": str(error)})

    async def _show(self, draft: SlackDraft, growing: Growing) -> None:
        try:
            workspace = await self._stage.workspace(self._target)
            draft.language = await self._stage.language(workspace, self._target)
            paint = partial(self._paint, draft, growing, workspace)
            await growing.grow(draft, lambda: draft.wait(joined(self._text), self._tasks.shown), paint)
        except SlackFailure as failure:
            logger.info("slack.stream_left_alone", extra={"reason": failure.code})
            if failure.is_without_streams or (self._target.thread_ts is None and failure.is_about_arguments):
                self._stage.note_without_streams(self._target, failure)
        except BotServiceError as error:
            logger.info("slack.stream_left_alone", extra={"reason": type(error).__name__})
        except Exception:  # a border: showing what is half written must not cost the answer
            logger.exception("slack.stream_failed")

    async def _paint(self, draft: SlackDraft, growing: Growing, workspace: Workspace) -> None:
        try:
            await growing.finish(draft.paint(workspace, joined(self._text), dict(self._tasks.shown)))
        except SlackFailure as failure:
            if failure.code != "ratelimited":
                raise
            await asyncio.sleep(failure.retry_after_seconds or 1.0)


def _target(context_keys: Mapping[str, str], events: Sequence[StoredEvent]) -> Target | None:
    """Return where an answer is shown, or None if only the asker sees it, or nobody asked."""
    if not events:
        return None
    way, body, kept = stored(events[-1].raw)
    if way is EventSource.MESSAGE:
        message = read_message(body)
        if message is None:
            return None
        team = word(field(body, "event", "user_team")) or message.team_id
        begins = message.root_ts == message.ts
        return Target(message.channel_id, message.answer_ts, message.team_id, message.user_id, team, begins)
    user = word(field(body, "user", "id"))
    thread_ts = timestamp(kept.get("thread_ts"))
    if way is EventSource.BUTTON and user is not None and "thread_ts" in kept:
        return Target(context_keys["channel_id"], thread_ts, context_keys["team_id"], user, context_keys["team_id"])
    return None
