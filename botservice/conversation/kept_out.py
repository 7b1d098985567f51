"""What the prompts of a conversation go without, because a model refuses it: known to every process, for a day."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Exists, bindparam, delete, select, update

from botservice.core.messages import Message
from botservice.history.shown import mention
from botservice.storage.database import Connection
from botservice.storage.statements import upserting
from botservice.storage.tables.models import refused_messages

_LASTS: Final = timedelta(days=1)
_IS_OF: Final = (refused_messages.c.context_id == bindparam("context")) & (
    refused_messages.c.model == bindparam("of_model")
)
_OF_CONTEXT: Final = select(refused_messages.c.kept_out, refused_messages.c.is_told).where(
    _IS_OF, refused_messages.c.expires_at > bindparam("now")
)
IS_KEPT_OUT: Final[Exists] = _OF_CONTEXT.exists()
"""Whether a context (:context) has prompts for a model (:of_model) that go without something now (:now)."""
_TELL: Final = update(refused_messages).where(_IS_OF).values(is_told=True)
_upsert: Final = upserting(refused_messages, "context_id", "model")


@dataclass(frozen=True, slots=True)
class KeptOut:
    """What of a conversation a prompt goes without.

    Attributes:
        up_to: Nothing older than this message, nor the message itself, is shown; 0 for no limit.
        messages: Single messages that are not shown.
        files_of: Messages of which the text is shown alone.
        step_pictures: Whether pictures that tools gave are named alone.
        is_question_alone: Neither earlier messages nor notes nor anything found is shown.
        is_told: Whether the person knows of it.
    """

    up_to: int = 0
    messages: frozenset[int] = frozenset()
    files_of: frozenset[int] = frozenset()
    step_pictures: bool = False
    is_question_alone: bool = False
    is_told: bool = True

    def shows(self, message: Message) -> bool:
        """Return whether an earlier message may stand in the prompt."""
        number = message.id or 0
        return not self.is_question_alone and number > self.up_to and number not in self.messages

    def shown(self, message: Message) -> Message:
        """Return a message as it may be shown."""
        if message.id not in self.files_of or not message.attachments:
            return message
        named = "\n".join([message.text, *map(mention, message.attachments)]).strip()
        return replace(message, text=named, attachments=(), token_count=None)


NOTHING_KEPT_OUT: Final = KeptOut()


@dataclass(frozen=True, slots=True)
class PromptBounds:
    """What the next prompt of a context is to keep to, because the one before it was refused.

    Attributes:
        max_tokens: How long it may be; None for the agent's own bound.
        kept_out: What it goes without; None for what is stored.
    """

    max_tokens: int | None = None
    kept_out: KeptOut | None = None


UNBOUNDED: Final = PromptBounds()


def read_kept_out(connection: Connection, context_id: int, model: str, now: datetime) -> KeptOut:
    """Return what the prompts of a context for a model go without."""
    row = connection.execute(_OF_CONTEXT, {"context": context_id, "of_model": model, "now": now}).one_or_none()
    if row is None:
        return NOTHING_KEPT_OUT
    kept: Mapping[str, Any] = row.kept_out
    messages, files_of = frozenset(kept["messages"]), frozenset(kept["files_of"])
    return KeptOut(kept["up_to"], messages, files_of, kept["step_pictures"], is_told=row.is_told)


def write_kept_out(connection: Connection, context_id: int, model: str, kept_out: KeptOut, now: datetime) -> None:
    """Store what the prompts of a context for a model go without from now on."""
    kept = {
        "up_to": kept_out.up_to,
        "messages": sorted(kept_out.messages),
        "files_of": sorted(kept_out.files_of),
        "step_pictures": kept_out.step_pictures,
    }
    row = {"context_id": context_id, "model": model, "kept_out": kept, "is_told": kept_out.is_told}
    connection.execute(_upsert(connection), {**row, "expires_at": now + _LASTS})


def note_told(connection: Connection, context_id: int, model: str) -> None:
    """Take note that the person knows that something is left out."""
    connection.execute(_TELL, {"context": context_id, "of_model": model})


def forget_kept_out(connection: Connection) -> int:
    """Delete what was kept out, of every context; return of how many."""
    return len(connection.execute(delete(refused_messages).returning(refused_messages.c.model)).all())
