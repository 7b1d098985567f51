"""Speaking answers to spoken questions: if it fails, the answer is still sent as text."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Protocol

from botservice.core.errors import BotServiceError
from botservice.core.messages import Attachment, TokenUsage, is_blank
from botservice.people.usage import ModelCall
from botservice.turns.run_options import RunOptions

logger = logging.getLogger(__name__)

_LONGEST: Final = 1_000  # characters: a longer text is read faster than it is spoken, and is no caption
_MOST_BYTES: Final = 1024 * 1024  # Bot API: a larger file is not shown as a voice message
_SECONDS: Final = 20.0


class Speaker(Protocol):
    """Turns text into speech.

    Attributes:
        model: What its use is counted under.
    """

    model: str

    async def speak(self, text: str) -> bytes:
        """Return text as Ogg with Opus.

        Raises:
            BotServiceError: it could not be spoken.
        """

    async def close(self) -> None:
        """Let go of its connections."""


@dataclass(frozen=True, slots=True)
class Speech:
    """An answer as it is spoken, and what that cost: a character counts as a token."""

    attachment: Attachment
    call: ModelCall


async def speak(options: RunOptions, text: str) -> Speech | None:
    """Return a text as speech; None without a speaker, or if it is empty or too long."""
    speaker = options.speaker
    if speaker is None or is_blank(text) or len(text) > _LONGEST:
        return None
    try:
        async with asyncio.timeout(_SECONDS):
            data = await speaker.speak(text)
    except (BotServiceError, TimeoutError) as error:
        logger.warning("answer.not_spoken", extra={"reason": type(error).__name__})
        return None
    call = options.budgets.price(speaker.model, TokenUsage(len(text), 0))
    if not data or len(data) > _MOST_BYTES:
        logger.warning("answer.not_spoken", extra={"reason": f"{len(data)} bytes"})
        return None
    return Speech(Attachment("audio/ogg", "answer.ogg", data), call)
