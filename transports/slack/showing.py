"""What makes answers visible in Slack: its parts, put together."""

from collections.abc import Callable
from dataclasses import dataclass

from botservice.storage import Storage
from transports.pacing import Pace
from transports.slack.client import SlackClient
from transports.slack.outgoing.draft import Style
from transports.slack.outgoing.ending import Ending
from transports.slack.outgoing.idle import Idle, IsWaiting
from transports.slack.outgoing.outbound import ReadFile, Sender
from transports.slack.outgoing.status import Statuses
from transports.slack.outgoing.streaming import Stage
from transports.slack.outgoing.streams import Streams
from transports.slack.outgoing.titles import Titles
from transports.slack.workspaces.people import People
from transports.slack.workspaces.refusals import Refusals
from transports.slack.workspaces.workspaces import Workspaces


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of workspaces, and who asks Slack for more of it."""

    client: SlackClient
    workspaces: Workspaces
    people: People
    refusals: Refusals
    storage: Callable[[], Storage | None]


@dataclass(frozen=True, slots=True)
class Showing:
    """What sends answers, what shows them while they grow, and what sessions are called."""

    sender: Sender
    stage: Stage
    titles: Titles


def build_showing(known: Known, style: Style, pace: Pace, read_file: ReadFile, is_waiting: IsWaiting) -> Showing:
    """Return the parts, which know of the same streams and sessions."""
    client, workspaces, refusals = known.client, known.workspaces, known.refusals
    streams, statuses = Streams(), Statuses(client, known.people)
    idle = Idle(workspaces, statuses, is_waiting)
    ending = Ending(client, refusals, idle)
    return Showing(
        Sender(client, workspaces, streams, pace, read_file, refusals, ending, previews=style.previews),
        Stage(client, workspaces, known.people, streams, style, statuses, idle, refusals),
        Titles(client, workspaces, statuses, refusals, known.storage),
    )
