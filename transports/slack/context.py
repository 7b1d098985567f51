"""What every part of the Slack transport works with: the workspaces, how the bot behaves there, and the storage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from botservice.config.setting_choices import SlackListen, SlackPings
from botservice.storage.database import Storage
from transports.common.background_tasks import BackgroundTasks
from transports.common.documents import DocumentReaders
from transports.slack.refusals import SlackRefusals
from transports.slack.workspaces import Workspaces


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
class Manners:
    """How the bot behaves.

    Attributes:
        listening: What it hears in channels besides what is meant for it.
        previews: Whether Slack may fetch what lies behind links, to show it. Streams and changed messages always may,
            so that without it they show an answer only up to its first address.
        reading: What can be read besides text; by default PDFs.
        tools: Returns the names of the agent's tools, for what people may press to ask.
    """

    listening: SlackListen = SlackListen.THREADS
    pings: SlackPings = SlackPings.NONE
    previews: bool = False
    tempo: SlackTempo = field(default_factory=SlackTempo)
    reading: DocumentReaders = field(default_factory=DocumentReaders.of_installation)
    tools: Callable[[], Sequence[str]] = tuple


class SlackContext:
    """What the parts of one transport share.

    Attributes:
        storage: None until the transport starts.
        background: Work that no answer waits for; the end of the transport cuts it off.
    """

    def __init__(self, workspaces: Workspaces, manners: Manners) -> None:
        self.workspaces = workspaces
        self.manners = manners
        self.storage: Storage | None = None
        self.refusals = SlackRefusals(lambda: self.storage)
        self.background = BackgroundTasks()
