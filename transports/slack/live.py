"""What a person sees while the bot is at work: a status with its stop button, its tools, its answer as it grows."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cachetools import FIFOCache

from botservice.texts import in_language
from botservice.turns.transport import Live, StreamRecord
from botservice.turns.turn import Delivery, StoredEvent
from transports.common.growing_answer import GrowingAnswer, Step, Surface
from transports.common.json_fields import field
from transports.markdown.reading import read_markdown
from transports.slack.answer_blocks import SlackPage, as_page, read_page, suspect
from transports.slack.client import SlackFailure
from transports.slack.context import Manners, SlackContext
from transports.slack.formatting import MAX_CHARACTERS, find_address, format_answer, settled_text
from transports.slack.inbound_events import EventSource, stored, timestamp, word
from transports.slack.refusals import Feature
from transports.slack.sessions import Statuses
from transports.slack.streams import ENDED, OpenStream, Streams, TaskStyle
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

_MAX_KNOWN: Final = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """Where and for whom an answer grows.

    Attributes:
        thread_ts: None in a code channel, which is a session by itself.
    """

    channel: str
    thread_ts: str | None
    team_id: str
    user_id: str
    user_team_id: str
    begins_thread: bool = False

    @property
    def is_direct(self) -> bool:
        """Whether nobody but the person reads it."""
        return self.channel.startswith("D")


class SlackLiveAnswers:
    """Opens a show for every turn that is answered in a channel."""

    def __init__(self, slack: SlackContext, streams: Streams) -> None:
        self.slack = slack
        self.streams = streams
        self.statuses = Statuses(slack)
        self._without_session: FIFOCache[tuple[str, str | None], None] = FIFOCache(_MAX_KNOWN)
        self._without_streams: set[tuple[str, str | None]] = set()  # of workspaces, or of one channel

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows a turn's progress, or None if nobody is answered in the open."""
        target = _target(context_keys, events)
        if target is None:
            return None
        surface = SlackSurface(self, context_keys, target, record)
        return GrowingAnswer(surface, first_sign_seconds=self.slack.manners.tempo.first_sign)

    def rest(self, context_keys: Mapping[str, str], delivery: Delivery) -> None:
        """Show whether a session waits for a decision or rests, after a message has said so."""
        thread_ts = timestamp(delivery.payload.get("thread_ts") or context_keys.get("thread_ts"))
        self.note_session(context_keys["channel_id"], thread_ts)
        self.statuses.rest(context_keys, context_keys["channel_id"], thread_ts)

    def note_session(self, channel: str, thread_ts: str | None) -> None:
        """Take note that a session was begun."""
        self._without_session.pop((channel, thread_ts), None)

    def note_without_session(self, target: Target) -> None:
        """Take note that an answer was there before its session was begun; further down, an earlier one may have."""
        if target.begins_thread:
            self._without_session[target.channel, target.thread_ts] = None

    def may_have_session(self, context_keys: Mapping[str, str], delivery: Delivery) -> bool:
        """Return whether the thread of a delivery may be a session: one that answered at once has begun none."""
        return (context_keys["channel_id"], delivery.payload.get("thread_ts")) not in self._without_session

    def has_streams(self, target: Target) -> bool:
        """Return whether an answer can grow, as far as is known."""
        return self._without_streams.isdisjoint({(target.team_id, None), (target.team_id, target.channel)})

    def note_without_streams(self, target: Target, failure: SlackFailure) -> None:
        """Take note that a workspace, or a channel, has no streams: answers come as plain messages there."""
        is_of_channel = failure.is_about_place or failure.is_about_arguments  # some stream in threads alone
        self._without_streams.add((target.team_id, target.channel if is_of_channel else None))


class SlackSurface(Surface):
    """Shows an answer in one message: Slack's own stream, which is edited when that has ended.

    Its own calls only: it never waits for its turn by itself.
    """

    name = "slack"

    def __init__(
        self, stage: SlackLiveAnswers, context_keys: Mapping[str, str], target: Target, record: StreamRecord
    ) -> None:
        self._stage = stage
        self._workspaces = stage.slack.workspaces
        self._refusals = stage.slack.refusals
        self._manners = manners = stage.slack.manners
        self._keys = context_keys
        self._target = target
        self._record = record
        self._tasks = TaskStyle(manners.pings, has_details=target.is_direct, has_sources=manners.previews)
        self._refused: frozenset[Feature] = frozenset()
        self._language: str | None = None
        self._stream: OpenStream | None = None
        self._is_full = not stage.has_streams(target)

    async def open(self) -> None:
        """Show that the bot is at work."""
        target = self._target
        self._stage.note_session(target.channel, target.thread_ts)
        workspace = await self._workspaces.find(target.team_id)
        await self._stage.statuses.begin(workspace, target.channel, target.thread_ts, target.user_id)

    def pause(self, answer: GrowingAnswer) -> float | None:
        """Return how long to wait before the stream is opened, or told more."""
        stream = self._stream
        if self._is_full:
            return None
        if stream is None:
            if answer.steps:
                return 0.0
            return self._manners.tempo.first_text if self._showable(answer).text else None
        if not stream.is_certain:
            return None
        is_told = not stream.is_open or stream.steps == answer.steps  # a message that is edited shows no tasks
        return None if is_told and stream.text.startswith(self._showable(answer).text) else self.pause_seconds

    async def update(self, answer: GrowingAnswer) -> None:
        """Open the stream, or tell it what is new."""
        workspace = await self._workspaces.find(self._target.team_id)
        self._refused = await self._refusals.of(workspace.team_id)
        await self._record.confirm()
        shown, steps = self._showable(answer), answer.steps
        if len(shown.text) > MAX_CHARACTERS:  # the rest is for further messages, which come with the whole answer
            first = format_answer(answer.earlier + answer.text, self._tasks.pings)[0]
            shown, self._is_full = read_page(first).refusing(self._refused), True
        if self._stream is None:
            await self._open(workspace, shown, steps)
        elif self._stream.is_open:
            await self._append(workspace, self._stream, shown, steps)
        else:
            await self._edit(workspace, self._stream, shown)
        is_edited = self._stream is not None and not self._stream.is_open
        self.pause_seconds = self._manners.tempo.edit if is_edited else self._manners.tempo.append

    async def finish(self, *, was_opened: bool) -> None:
        """Have the session rest; nobody waits for that."""
        target = self._target
        if was_opened:
            self._stage.statuses.rest(self._keys, target.channel, target.thread_ts)
        else:
            self._stage.note_without_session(target)

    def after_failure(self, error: Exception) -> float | None:
        """Return how long Slack asks to wait; where it has no streams, none is tried again."""
        if not isinstance(error, SlackFailure):
            return None
        if error.code == "ratelimited":
            return error.retry_after_seconds or 1.0
        logger.info("slack.stream_left_alone", extra={"reason": error.code})
        if error.is_without_streams or (self._target.thread_ts is None and error.is_about_arguments):
            self._stage.note_without_streams(self._target, error)
        return None

    def _showable(self, answer: GrowingAnswer) -> SlackPage:
        return showable(answer.earlier + answer.text, self._manners, self._refused)

    async def _open(self, workspace: Workspace, shown: SlackPage, steps: tuple[Step, ...]) -> None:
        """Open the stream: its intent is stored before, and its timestamp right after."""
        target = self._target
        ts = await self._record.opening()
        if ts is not None:  # an earlier process opened it
            stream = OpenStream(target.channel, ts, self._tasks, is_open=False)
            self._stream = self._stage.streams[target.channel, ts] = stream
            return
        drawn = (each.begin for each in shown.figures if each.block is not None)
        begun = shown.before(next(drawn, len(shown.text)))  # what may be refused opens no stream
        is_plan = len(steps) > 1 and Feature.PLANS not in self._refused
        chunks = self._tasks.chunks(steps)
        if is_plan:
            self._language = (await self._workspaces.find_person(workspace, target.user_id)).language
            chunks.insert(0, self._plan(steps))
        if words := begun.words:
            chunks.append({"type": "markdown_text", "text": words})
        answer = await self._start(workspace, chunks, is_plan=is_plan)
        is_plan = is_plan and Feature.PLANS not in await self._refusals.of(workspace.team_id)
        ts = str(answer.get("ts"))
        stream = OpenStream(target.channel, ts, self._tasks, begun.text, steps, is_plan=is_plan)
        self._stage.streams[stream.channel, stream.ts] = stream
        await self._record.opened(stream.ts)
        self._stream = stream

    async def _start(self, workspace: Workspace, chunks: Sequence[dict[str, Any]], *, is_plan: bool) -> dict[str, Any]:
        target = self._target
        try:
            return await workspace.call(
                "chat.startStream",
                channel=target.channel,
                thread_ts=target.thread_ts,
                recipient_team_id=target.user_team_id,
                recipient_user_id=target.user_id,
                chunks=chunks or None,
                task_display_mode="plan" if is_plan else None,
            )
        except SlackFailure as failure:
            if not is_plan or not (failure.is_about_arguments or failure.is_about_figures):
                raise
            rest = [each for each in chunks if each["type"] != "plan_update"]
            started = await self._start(workspace, rest, is_plan=False)
            await self._refusals.note(workspace.team_id, Feature.PLANS, failure)
            return started

    async def _append(
        self, workspace: Workspace, stream: OpenStream, shown: SlackPage, steps: tuple[Step, ...]
    ) -> None:
        if stream.text.startswith(shown.text):
            shown = replace(shown, text=stream.text)
        elif not shown.text.startswith(stream.text):
            stream.is_certain = False  # it reads differently now: the whole answer takes its place
            return
        plan = [self._plan(steps)] if stream.is_plan and len(steps) > len(stream.steps) else []
        chunks = [*plan, *self._tasks.chunks(steps, stream.steps), *shown.chunks(len(stream.text))]
        stream.is_certain = False  # until Slack says that it took it
        try:
            await workspace.call("chat.appendStream", channel=stream.channel, ts=stream.ts, chunks=chunks)
        except SlackFailure as failure:
            stream.is_certain = not failure.is_unknown
            if shown.needs and failure.is_about_figures:
                await self._refusals.note(workspace.team_id, suspect(shown.needs), failure)
                return  # the next state has words in their place
            if failure.code not in ENDED:
                raise
            logger.info("slack.stream_ended", extra={"reason": failure.code})
            stream.is_open = False  # it grows on by being edited
        else:
            stream.is_certain, stream.text, stream.steps = True, shown.text, steps

    def _plan(self, steps: Sequence[Step]) -> dict[str, Any]:
        """Return what stands above the tools of an answer that takes several steps."""
        return {"type": "plan_update", "title": in_language("status.steps", self._language, count=len(steps))}

    async def _edit(self, workspace: Workspace, stream: OpenStream, shown: SlackPage) -> None:
        if not shown.text:
            return
        try:
            await workspace.call("chat.stopStream", channel=stream.channel, ts=stream.ts)
        except SlackFailure as failure:
            if failure.code not in ENDED:
                raise
        await workspace.call("chat.update", channel=stream.channel, ts=stream.ts, markdown_text=f"{shown.words} …")
        stream.text = shown.text


def showable(text: str, manners: Manners, refused: frozenset[Feature] = frozenset()) -> SlackPage:
    """Return so much of a text that grows as may be shown already."""
    blocks = read_markdown(settled_text(text[: 2 * MAX_CHARACTERS], manners.pings))
    page = as_page(blocks, is_growing=True).refusing(refused)
    address = None if manners.previews else find_address(page.text)
    return page.before(len(page.text) if address is None else address)


def _target(context_keys: Mapping[str, str], events: Sequence[StoredEvent]) -> Target | None:
    """Return where an answer is shown, or None if only the asker sees it, or nobody asked."""
    if not events:
        return None
    asked = stored(events[-1].raw)
    if (message := asked.message) is not None:
        team = word(field(asked.body, "event", "user_team")) or message.team_id
        begins = message.root_ts == message.ts
        return Target(message.channel_id, message.answer_ts, message.team_id, message.user_id, team, begins)
    user = word(field(asked.body, "user", "id"))
    thread_ts = timestamp(asked.kept.get("thread_ts"))
    if asked.way is EventSource.BUTTON and user is not None and "thread_ts" in asked.kept:
        return Target(context_keys["channel_id"], thread_ts, context_keys["team_id"], user, context_keys["team_id"])
    return None
