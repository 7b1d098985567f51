"""Ready-made callbacks that keep prompts small."""

from typing import Protocol

from botservice.memory.agent_memory import AgentMemory
from botservice.memory.items import MemoryItem


class HasMemory(Protocol):
    """What a step callback is given as `agent`."""

    @property
    def memory(self) -> AgentMemory:
        """The steps."""


class ForgetOldImages:
    """A step callback that takes the images out of every step but the newest few that have any.

    The model sees them no more; what it was sent for earlier steps stays on record in their `model_input_messages`.

    Args:
        keep: How many steps keep their images.

    Raises:
        ValueError: keep is negative.
    """

    def __init__(self, keep: int = 2) -> None:
        if keep < 0:
            raise ValueError(f"keep must be 0 or more, not {keep}")
        self.keep = keep

    def __call__(self, step: MemoryItem, agent: HasMemory) -> None:  # noqa: ARG002 - what callbacks are given
        """Forget the images of older steps."""
        kept = 0
        for item in reversed(agent.memory.steps):
            if item is None or not item.get_value("observations_images"):
                continue
            kept += 1
            if kept > self.keep:
                item.set_value("observations_images", None)


forget_old_images = ForgetOldImages()
"""Keeps the images of the newest two steps: `step_callbacks=[forget_old_images]`."""
