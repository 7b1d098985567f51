"""Slack's own streams: messages that grow in this process, the tools that they show, and how they end."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cachetools import FIFOCache

from botservice.config.setting_choices import SlackPings
from botservice.core.messages import ToolCall
from transports.common.growing_answer import Step
from transports.slack.answer_blocks import SlackPage, suspect
from transports.slack.client import SlackFailure
from transports.slack.formatting import without_pings
from transports.slack.refusals import Feature, SlackRefusals
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

MAX_STREAMS: Final = 5000
ENDED: Final = ("message_not_in_streaming_state", "message_not_found", "stream_not_found")
_ALL: Final = frozenset(Feature)
_MAX_LABEL: Final = 75
_MAX_TITLE: Final = 250
_MAX_ARGUMENTS: Final = 6
_MAX_VALUE_CHARACTERS: Final = 100
_MAX_SOURCES: Final = 5
_WEB: Final = ("https://", "http://")


@dataclass(frozen=True, slots=True)
class TaskStyle:
    """How the steps of an answer are shown as tasks of its stream.

    Attributes:
        has_details: Whether the readers may see the arguments of calls.
        has_sources: Whether Slack may fetch what lies behind addresses in them.
    """

    pings: SlackPings
    has_details: bool = False
    has_sources: bool = False

    def chunks(self, steps: Sequence[Step], known: Sequence[Step] = ()) -> list[dict[str, Any]]:
        """Return what a stream is told of steps of which it knows some."""
        return [
            self._chunk(f"task-{at + 1}", step, is_new=at >= len(known))
            for at, step in enumerate(steps)
            if at >= len(known) or known[at] != step
        ]

    def _chunk(self, name: str, step: Step, *, is_new: bool) -> dict[str, Any]:
        """Return a step as it is sent.

        A title takes the place of the one before; details and sources are added to each other, so they are sent once.
        """
        title = without_pings(step.name.replace("_", " "), self.pings)
        title = f"{title}: {without_pings(step.said, self.pings)}" if step.said else title
        status = "in_progress" if not step.is_done else "error" if step.has_failed else "complete"
        chunk = {"type": "task_update", "id": name, "title": title[:_MAX_TITLE] or "…", "status": status}
        return chunk | (self._about(step.call) if is_new and step.call is not None and self.has_details else {})

    def _about(self, call: ToolCall) -> dict[str, Any]:
        """Return what a tool is called with: the details of its task, and the pages that it is to read."""
        details = without_pings(_describe(call.arguments), self.pings)
        addresses = [str(each) for each in call.arguments.values() if _is_address(each)][:_MAX_SOURCES]
        sources = [{"type": "url", "url": each, "text": each[:_MAX_LABEL]} for each in addresses if self.has_sources]
        return ({"details": details} if details else {}) | ({"sources": sources} if sources else {})


@dataclass(slots=True)
class OpenStream:
    """A message that grows.

    Attributes:
        text: What Slack has taken of it.
        steps: The steps that it shows.
        is_open: Whether Slack still takes more; after about five minutes it does not.
        is_certain: Whether it is known what Slack has taken.
        is_plan: Whether its tools stand together, below a title of their own.
    """

    channel: str
    ts: str
    style: TaskStyle
    text: str = ""
    steps: tuple[Step, ...] = ()
    is_open: bool = True
    is_certain: bool = True
    is_plan: bool = False

    def can_become(self, text: str) -> bool:
        """Return whether text is what the stream says, with more behind it."""
        return self.is_open and self.is_certain and text.startswith(self.text)

    def last_chunks(self, page: SlackPage) -> list[dict[str, Any]]:
        """Return what is still missing of an answer, and the end of every tool."""
        ended = self.style.chunks([step.ended() for step in self.steps], self.steps)
        return [*ended, *page.chunks(len(self.text))]

    async def complete(self, workspace: Workspace, answer: SlackPage, refusals: SlackRefusals, **below: Any) -> bool:
        """Return whether the stream has become the whole answer.

        Raises:
            SlackFailure: it is not known, or may go later.
        """
        for refused in (await refusals.of(workspace.team_id), _ALL):  # one more call, whatever is not drawn there
            page = answer.refusing(refused)
            chunks = self.last_chunks(page) or None
            try:
                await workspace.call("chat.stopStream", channel=self.channel, ts=self.ts, chunks=chunks, **below)
            except SlackFailure as failure:
                if failure.is_later:
                    raise
                if not page.needs or not (failure.is_about_figures or failure.is_about_arguments):
                    logger.info("slack.stream_replaced", extra={"reason": failure.code})
                    return False
                await refusals.note(workspace.team_id, suspect(page.needs), failure)
            else:
                return True
        return False


Streams = FIFOCache[tuple[str, str], OpenStream]
"""What grows in this process, by channel and timestamp, so that the answer can go on where the stream stands."""


async def stop_stream(workspace: Workspace, channel: str, ts: str) -> None:
    """End a stream as it is, unless it has ended.

    Raises:
        SlackFailure: it may go later.
    """
    try:
        await workspace.call("chat.stopStream", channel=channel, ts=ts)
    except SlackFailure as failure:
        if failure.is_later:
            raise


def _describe(arguments: Mapping[str, object]) -> str:
    """Return what a tool is called with, one line for each, without addresses and what is not plain."""
    plain = [(name, each) for name, each in arguments.items() if _is_plain(each) and not _is_address(each)]
    lines = [f"{name.replace('_', ' ')}: {_short(str(each))}" for name, each in plain[:_MAX_ARGUMENTS]]
    return "\n".join(lines)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip() != ""


def _is_address(value: object) -> bool:
    return isinstance(value, str) and value.startswith(_WEB)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_VALUE_CHARACTERS else f"{line[: _MAX_VALUE_CHARACTERS - 1]}…"
