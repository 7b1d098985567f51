"""What the prompts of a conversation go without, because a model refuses it: known to every process, for a day."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from botservice.core.messages import Message
from botservice.history.message_rendering import mention


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


@dataclass(frozen=True, slots=True)
class ModelRefusal:
    """What one model of one server does not take.

    Attributes:
        what: As the table of errors calls it, such as "image" or "stream_options".
        wording: By which words of its own the server said so, with "…" for all others.
        expires_at: When the server is asked for it again.
    """

    server: str
    model: str
    what: str
    wording: str | None
    learned_at: datetime
    expires_at: datetime
