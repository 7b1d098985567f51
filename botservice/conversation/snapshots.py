"""Reading everything that a context holds at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from botservice.conversation.pausing import Pause, read_chat_pause
from botservice.conversation.prompt_log import PromptLog, read_prompt_log
from botservice.conversation.queries import find_asked_by, find_next_position, find_state, list_newest_turns
from botservice.conversation.step_records import StoredStep, read_steps
from botservice.conversation.steps import TaskStep
from botservice.core.errors import StorageError
from botservice.core.messages import Author, Message
from botservice.history.queries import find_message
from botservice.history.recent import RecentMessages
from botservice.storage.database import Connection
from botservice.storage.statements import LARGEST_ID

_TURNS_AT_ONCE = 64
_STEPS_BETWEEN = 2**20  # that find room before the steps of the turns that follow


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a context holds at one moment.

    Attributes:
        chat_pause: The pause of the whole chat, where the context is a thread or a topic of it.
        last_position: Of all steps of the context.
        stride: How far from each other new steps of the turn stand: those of other turns may follow.
        asked_by: On whose behalf the turn has waited.
        knows_last_message: Whether last_user_message was looked for.
    """

    context_keys: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    last_user_message: Message | None = None
    turn_id: int | None = None
    steps: Sequence[StoredStep] = ()
    logs: Mapping[int, PromptLog] = field(default_factory=dict)
    last_position: float = 0.0
    steps_taken: int = 0
    last_step_number: int = 0
    has_open_calls: bool = True
    has_running_turn: bool = False
    chat_pause: Pause | None = None
    stride: float = 1.0
    asked_by: Author | None = None
    knows_last_message: bool = False


NOTHING_STORED: Final = Snapshot()


def read_snapshot(
    connection: Connection,
    context_id: int,
    turn_id: int | None = None,
    *,
    with_steps: bool = True,
    with_last_message: bool = True,
    recents: RecentMessages | None = None,
) -> Snapshot:
    """Return what a context holds, with the steps in view of a turn, of the newest by default.

    Args:
        with_last_message: Whether to look for a person's last message, which is the one that the steps answer.
        recents: Messages that are known without reading.
    """
    state, last_user_message = find_state(connection, context_id, with_last_message=with_last_message)
    if state is None:
        known = f"there is no context {context_id}"
        raise StorageError(f"{known}; where it was deleted: get it again with AgentContext.get_or_create")
    turns = turns_in_view(connection, context_id, turn_id) if with_steps else []
    in_view = [row.id for row in turns]
    logs: dict[int, PromptLog] = {}
    recent = None if recents is None else recents.known(context_id, state.deletion_version)
    stored = read_steps(connection, context_id, turn_ids=in_view, logs=logs, recent=recent) if in_view else []
    current = in_view[0] if in_view else None
    if current is not None and current not in logs:
        logs[current] = read_prompt_log(connection, context_id, current, recent)
    stride, asked_by = 1.0, None
    if turn_id is not None and turns and turns[0].question_id is not None:  # it has waited: others may have asked since
        last_user_message = find_message(connection, context_id, turns[0].question_id)
        asked_by = find_asked_by(connection, turns[0].id)
        last = max((each.position for each in stored if each.turn_id == turns[0].id), default=None)
        following = None if last is None else find_next_position(connection, context_id, last)
        stride = 1.0 if last is None or following is None else (following - last) / _STEPS_BETWEEN
    return Snapshot(
        state.context_keys,
        state.metadata,
        last_user_message,
        current,
        stored,
        logs,
        state.last_position or 0.0,
        turns[0].steps_taken if turns else 0,
        state.last_step_number or 0,
        state.has_open_calls,
        state.has_running_turn,
        read_chat_pause(connection, state.context_keys),
        stride,
        asked_by,
        with_last_message,
    )


def find_task(stored: Sequence[StoredStep], turn_id: int | None) -> TaskStep | None:
    """Return the task that a turn began with: the first that was stored; others were put in later."""
    own = [each for each in stored if each.turn_id == turn_id and isinstance(each.item, TaskStep)]
    first = min(own, key=lambda each: each.row_id, default=None)
    return first.item if first is not None and isinstance(first.item, TaskStep) else None


def turns_in_view(connection: Connection, context_id: int, turn_id: int | None = None) -> list[Any]:
    """Return the rows of the turns whose steps are in view, the newest first: back to the last that began again."""
    in_view: list[Any] = []
    before, limit = LARGEST_ID if turn_id is None else turn_id + 1, 1
    while rows := list_newest_turns(connection, context_id, before, limit):  # nearly always one round: most begin again
        for row in rows:
            in_view.append(row)
            if not row.keeps_steps:
                return in_view
        before, limit = in_view[-1].id, _TURNS_AT_ONCE
    return in_view
