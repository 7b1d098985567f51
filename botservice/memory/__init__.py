"""The memory of an agent's own work, as values: items, steps, and what is made of them. Nothing here touches storage.

`botservice.memory.replay` prints them.
"""

from botservice.memory.agent_memory import AgentMemory, Memory, completed_steps
from botservice.memory.callbacks import Callback, ForgetOldImages, ShowSteps, StepCallbacks, forget_old_images
from botservice.memory.chat_messages import INTERRUPTED
from botservice.memory.fields.codec import decode, encode
from botservice.memory.fields.values import (
    CallbackFailure,
    FrozenDict,
    FrozenList,
    StepError,
    Timing,
    ToolResult,
    freeze,
)
from botservice.memory.items import MemoryItem
from botservice.memory.steps import (
    ActionStep,
    FailedStep,
    FinalAnswerStep,
    MemoryStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
    UnknownStep,
)
from botservice.messages import TokenUsage

__all__ = [
    "INTERRUPTED",
    "ActionStep",
    "AgentMemory",
    "Callback",
    "CallbackFailure",
    "FailedStep",
    "FinalAnswerStep",
    "ForgetOldImages",
    "FrozenDict",
    "FrozenList",
    "Memory",
    "MemoryItem",
    "MemoryStep",
    "PlanningStep",
    "ShowSteps",
    "StepCallbacks",
    "StepError",
    "SystemPromptStep",
    "TaskStep",
    "Timing",
    "TokenUsage",
    "ToolResult",
    "UnknownStep",
    "completed_steps",
    "decode",
    "encode",
    "forget_old_images",
    "freeze",
]
