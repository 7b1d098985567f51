"""What a growing answer is shown on: Slack's own stream, and a message that is edited when that has ended."""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from botservice.texts import in_language
from botservice.turns.transport import StreamRecord
from transports.markdown.reading import read_markdown
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.figures import SlackPage, as_page, read_page, suspect
from transports.slack.formatting import MAX_CHARACTERS, Pings, find_address, format_answer, settled_text
from transports.slack.growing_answer import OpenStream, Streams, Task
from transports.slack.refusals import Feature, SlackRefusals
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

_ENDED = ("message_not_in_streaming_state", "message_not_found", "stream_not_found")


@dataclass(frozen=True, slots=True)
class SlackTempo:
    """How soon and how often progress is shown. All in seconds.

    Attributes:
        first_sign: An answer that comes sooner needs no sign of life.
        first_text: So long an answer has to grow before a stream shows it: a short one is there before.
        append: Between two pieces of a stream. Source: docs.slack.dev, chat.appendStream, tier 4.
        edit: Between two states of a message that is edited. Source: chat.update, tier 3.
    """

    first_sign: float = 0.2
    first_text: float = 1.0
    append: float = 0.7
    edit: float = 3.0


@dataclass(frozen=True, slots=True)
class Style:
    """How progress is shown.

    Attributes:
        previews: Whether Slack may show what lies behind links. Streams and changed messages always may, so that
            without it they show an answer only up to its first address.
    """

    tempo: SlackTempo
    pings: Pings
    previews: bool = False


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


class SlackDraft:
    """Shows an answer that grows in one message. Its own calls only: it never waits by itself."""

    patience_seconds = 5.0
    refresh_seconds: float | None = None

    def __init__(
        self,
        client: SlackClient,
        streams: Streams,
        target: Target,
        record: StreamRecord,
        style: Style,
        refusals: SlackRefusals,
    ) -> None:
        self.language: str | None = None
        self._client = client
        self._streams = streams
        self._target = target
        self._record = record
        self._tempo = style.tempo
        self._pings = style.pings
        self._previews = style.previews
        self._refusals = refusals
        self._refused: frozenset[Feature] = frozenset()
        self._stream: OpenStream | None = None
        self._text_since: float | None = None
        self._painted_at = 0.0
        self._is_full = False

    @property
    def stream_ts(self) -> str | None:
        """The message that grows; None before it is there, and once Slack has ended its stream."""
        return self._stream.ts if self._stream is not None and self._stream.is_open else None

    def wait(self, text: str, tasks: Mapping[str, Task]) -> float | None:
        """Return the seconds until this should be shown; None if it need not be."""
        now = time.monotonic()
        stream = self._stream
        is_text = bool(text) if stream is not None else bool(self._showable(text).text)
        if is_text and self._text_since is None:
            self._text_since = now
        if stream is None:
            if not is_text and not tasks:
                return None
            since = self._text_since or now
            return 0.0 if tasks else max(0.0, since + self._tempo.first_text - now)
        if not stream.is_certain or self._is_full:
            return None
        is_told = not stream.is_open or dict(tasks) == stream.tasks  # a message that is edited shows no tasks
        if is_told and stream.text.startswith(self._showable(text).text):
            return None
        pause = self._tempo.append if stream.is_open else self._tempo.edit
        return max(0.0, self._painted_at + pause - now)

    def rest(self) -> float:
        """Return the seconds for which nothing will be shown, whatever comes."""
        if self._stream is None:
            return 0.0
        pause = self._tempo.append if self._stream.is_open else self._tempo.edit
        return max(0.0, self._painted_at + pause - time.monotonic())

    def fade(self) -> None:
        """What a stream shows stays."""

    async def paint(self, workspace: Workspace, text: str, tasks: Mapping[str, Task]) -> None:
        """Show it."""
        self._painted_at = time.monotonic()
        self._refused = await self._refusals.of(workspace.team_id)
        await self._record.confirm()
        shown = self._showable(text)
        if len(shown.text) > MAX_CHARACTERS:  # the rest is for further messages, which come with the whole answer
            shown, self._is_full = read_page(format_answer(text, self._pings)[0]).refusing(self._refused), True
        if self._stream is None:
            await self._open(workspace, shown, tasks)
        elif self._stream.is_open:
            await self._append(workspace, self._stream, shown, tasks)
        else:
            await self._edit(workspace, self._stream, shown)

    def _showable(self, text: str) -> SlackPage:
        """Return so much of a text that grows as may be shown already."""
        blocks = read_markdown(settled_text(text[: 2 * MAX_CHARACTERS], self._pings))
        page = as_page(blocks, is_growing=True).refusing(self._refused)
        address = None if self._previews else find_address(page.text)
        return page.before(len(page.text) if address is None else address)

    async def _open(self, workspace: Workspace, shown: SlackPage, tasks: Mapping[str, Task]) -> None:
        """Open the stream: its intent is stored before, and its timestamp right after."""
        target = self._target
        ts = await self._record.opening()
        if ts is not None:  # an earlier process opened it
            self._stream = self._streams[target.channel, ts] = OpenStream(target.channel, ts, is_open=False)
            return
        drawn = (each.begin for each in shown.figures if each.block is not None)
        begun = shown.before(next(drawn, len(shown.text)))  # what may be refused opens no stream
        is_plan = len(tasks) > 1 and Feature.PLANS not in self._refused
        chunks = _chunks(begun.words, tasks, self._plan(tasks) if is_plan else None)
        answer = await self._start(workspace, chunks, is_plan=is_plan)
        is_plan = is_plan and Feature.PLANS not in await self._refusals.of(workspace.team_id)
        stream = OpenStream(target.channel, str(answer.get("ts")), begun.text, dict(tasks), is_plan=is_plan)
        self._streams[stream.channel, stream.ts] = stream
        await self._record.opened(stream.ts)
        self._stream = stream

    async def _start(self, workspace: Workspace, chunks: Sequence[dict[str, Any]], *, is_plan: bool) -> dict[str, Any]:
        target = self._target
        try:
            return await self._client.call(
                workspace.token,
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
        self, workspace: Workspace, stream: OpenStream, shown: SlackPage, tasks: Mapping[str, Task]
    ) -> None:
        if stream.text.startswith(shown.text):
            shown = replace(shown, text=stream.text)
        elif not shown.text.startswith(stream.text):
            stream.is_certain = False  # it reads differently now: the whole answer takes its place
            return
        changed = {name: task for name, task in tasks.items() if stream.tasks.get(name) != task}
        has_grown = len(tasks) > len(stream.tasks)
        plan = self._plan(tasks) if stream.is_plan and has_grown else None
        chunks = _chunks("", changed, plan, known=stream.tasks) + shown.chunks(len(stream.text))
        stream.is_certain = False  # until Slack says that it took it
        try:
            await self._client.call(
                workspace.token, "chat.appendStream", channel=stream.channel, ts=stream.ts, chunks=chunks
            )
        except SlackFailure as failure:
            stream.is_certain = not failure.is_unknown
            if shown.needs and failure.is_about_figures:
                await self._refusals.note(workspace.team_id, suspect(shown.needs), failure)
                return  # the next state has words in their place
            if failure.code not in _ENDED:
                raise
            logger.info("slack.stream_ended", extra={"reason": failure.code})
            stream.is_open = False  # it grows on by being edited
        else:
            stream.is_certain, stream.text, stream.tasks = True, shown.text, dict(tasks)

    def _plan(self, tasks: Mapping[str, Task]) -> str:
        """Return what stands above the tools of an answer that takes several steps."""
        return in_language("status.steps", self.language, count=len(tasks))

    async def _edit(self, workspace: Workspace, stream: OpenStream, shown: SlackPage) -> None:
        if not shown.text:
            return
        try:
            await self._client.call(workspace.token, "chat.stopStream", channel=stream.channel, ts=stream.ts)
        except SlackFailure as failure:
            if failure.code not in _ENDED:
                raise
        await self._client.call(
            workspace.token, "chat.update", channel=stream.channel, ts=stream.ts, markdown_text=f"{shown.words} …"
        )
        stream.text = shown.text


def _chunks(
    text: str, tasks: Mapping[str, Task], plan: str | None = None, known: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return what a stream is told: the title of its plan, its tools, its text."""
    chunks: list[dict[str, Any]] = [{"type": "plan_update", "title": plan}] if plan is not None else []
    chunks += [task.chunk(name, is_new=name not in known) for name, task in tasks.items()]
    return [*chunks, {"type": "markdown_text", "text": text}] if text else chunks
