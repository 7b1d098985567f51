"""What every run of a service shares."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from botservice.agent.agent import Agent
from botservice.conversation.callbacks import StepCallbacks
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.storage.database import Storage
from botservice.turns.retry_policies import MODEL_RETRIES, RetryPolicy

if TYPE_CHECKING:
    from botservice.turns.listening import ListeningGate
    from botservice.turns.spoken_answers import Speaker

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the present moment, aware."""
    return datetime.now(UTC)


def clock_of(storage: Storage | None) -> Clock:
    """Return the clock of a storage, which all its replicas share; without one, that of this machine."""
    return utc_now if storage is None else storage.now


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What every run of a service shares."""

    agent: Agent
    callbacks: StepCallbacks
    max_steps: int
    clock: Clock = utc_now
    model_retries: RetryPolicy = MODEL_RETRIES
    budgets: Budgets = field(default_factory=Budgets)
    access: Access = field(default_factory=Access)
    approval_lasts: timedelta = timedelta(hours=24)
    speaker: "Speaker | None" = None
    gate: "ListeningGate | None" = None
