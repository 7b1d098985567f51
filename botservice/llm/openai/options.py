"""What a call of an OpenAI-compatible server is made with, besides its messages and tools."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from botservice.llm.chat import AnswerSchema
from botservice.settings import OPENAI_API_URL

_OPENAI_HOST = urlsplit(OPENAI_API_URL).hostname or ""


@lru_cache(maxsize=64)
def is_openai(base_url: str) -> bool:
    """Return whether a server is OpenAI's own, in whatever region."""
    host = urlsplit(base_url).hostname or ""
    return host == _OPENAI_HOST or host.endswith(f".{_OPENAI_HOST}")


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The same for every call of one model.

    Attributes:
        model: The model's name, as the server knows it.
        base_url: The server.
        reasoning_effort: How hard the model thinks; None for what it does by itself.
        reasoning_summary: How its thoughts are summed up: auto, concise or detailed; None for not at all.
        max_answer_tokens: How long an answer may become; None for what the server allows.
        temperature: None for what the server takes by itself.
        schema: The form that this answer has to have; None for any.
        refused: Fields of requests that the server has refused.
    """

    model: str
    base_url: str = OPENAI_API_URL
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    max_answer_tokens: int | None = None
    temperature: float | None = None
    schema: AnswerSchema | None = None
    refused: frozenset[str] = frozenset()
