"""Keeping what a model was sent."""

from collections.abc import Sequence

from botservice.agents import Prompt
from botservice.llm.chat import ChatMessage
from botservice.memory import MemoryStep
from botservice.memory.prompt_log import PromptLog


def record_prompt(step: MemoryStep, prompt: Sequence[ChatMessage], log: PromptLog) -> None:
    """Write into step what the model was sent for it, and where the parts of that come from."""
    if isinstance(prompt, Prompt):
        step.set_value("model_input_messages", log.record(prompt, sources=prompt.sources(), origins=prompt.origins()))
        step.set_value("prompt_sections", prompt.sections())
        if prompt.model is not None:
            step.set_value("model", prompt.model)
    else:
        step.set_value("model_input_messages", log.record(prompt))
