"""Keeping what a model was sent, and what it sent back."""

from collections.abc import Sequence
from typing import Protocol

from botservice.agents import Prompt
from botservice.contexts.prompt_log import PromptLog
from botservice.llm.chat import ChatMessage, ModelItem
from botservice.memory import MemoryStep
from botservice.messages import TokenUsage


class Said(Protocol):
    """What an agent made of an answer of its model."""

    @property
    def token_usage(self) -> TokenUsage | None:
        """What it took."""

    @property
    def model(self) -> str | None:
        """The model that answered."""

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended."""

    @property
    def model_items(self) -> Sequence[ModelItem]:
        """What the model wants to read again."""


def record_prompt(step: MemoryStep, prompt: Sequence[ChatMessage], log: PromptLog) -> None:
    """Write into step what the model was sent for it, and where the parts of that come from."""
    if isinstance(prompt, Prompt):
        step.set_value(
            "model_input_messages", log.record(prompt.kept(), sources=prompt.sources(), origins=prompt.origins())
        )
        step.set_value("prompt_sections", prompt.sections())
        if prompt.model is not None:
            step.set_value("model", prompt.model)
    else:
        step.set_value("model_input_messages", log.record(prompt))


def record_answer(step: MemoryStep, said: Said) -> None:
    """Write into step what is known of the answer that it comes from."""
    facts: dict[str, object] = {"token_usage": said.token_usage, "finish_reason": said.finish_reason}
    if said.model is not None:
        facts["model"] = said.model
    step.set_values_from_dict({**facts, "model_items": said.model_items or None})
