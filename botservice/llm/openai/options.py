"""The options of a call of an OpenAI-compatible server."""

from dataclasses import dataclass

from botservice.config.settings import OPENAI_API_URL
from botservice.llm.chat import AnswerSchema
from botservice.llm.server_limits import is_openai


def address_of(base_url: str, path: str) -> str:
    """Return where a path of a server is; a query of its base URL, such as api-version=, comes after the path."""
    base, mark, query = base_url.partition("?")
    return f"{base.rstrip('/')}{path}{mark}{query}"


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The same for every call of one model.

    Attributes:
        model: The model's name on the server.
        base_url: The address of the server.
        is_responses_set: A setting says that it has OpenAI's Responses: it is OpenAI, or a gateway before it.
        reasoning_effort: How hard the model thinks; None for what it does by itself.
        reasoning_summary: How its thoughts are summed up: auto, concise or detailed; None for not at all.
        max_answer_tokens: The most tokens of an answer; None for the server's limit.
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
    is_responses_set: bool = False

    @property
    def is_openai(self) -> bool:
        """Whether OpenAI's models are behind the server, as far as is known."""
        return self.is_responses_set or is_openai(self.base_url)
