"""Keeping what a model was sent."""

from collections.abc import Sequence

from botservice.agents import Prompt
from botservice.llm.chat import ChatMessage
from botservice.memory import MemoryStep
from botservice.memory.prompt_log import PromptLog


def record_prompt(step: MemoryStep, prompt: Sequence[ChatMessage], log: PromptLog) -> None:
    """Write into step what the model was sent for it, and where the parts of that come from."""
    if not isinstance(prompt, Prompt):
        step.set_value("model_input_messages", log.record(prompt))
        return
    parts = {place: part for place, part in enumerate(prompt.known_parts()) if part is not None}
    sources = {place: part.source for place, part in parts.items() if part.source is not None}
    origins = {place: part.origin for place, part in parts.items() if part.origin is not None}
    step.set_value("model_input_messages", log.record(prompt, sources=sources, origins=origins))
    step.set_value("prompt_sections", prompt.sections())
