"""An agent for Telegram and Slack that remembers each chat, answers once and loses nothing."""

from typing import TYPE_CHECKING, Any

from botservice.agents import Action, Agent, FinishAction, FunctionsBasedAgent, Plan, Prompt
from botservice.agents.checks import FinalAnswerCheck
from botservice.commands import Command
from botservice.contexts.context import AgentContext
from botservice.errors import (
    ApprovalPending,
    BotServiceError,
    ClaimLost,
    ContextOverflow,
    DatabaseInUse,
    DeliveryError,
    DeliveryRefused,
    DeliveryUnknown,
    InboxFull,
    InvalidContextKeys,
    InvalidField,
    InvalidSkill,
    InvalidTool,
    LLMError,
    LLMFailure,
    ResultPending,
    RunFinished,
    RunInterrupted,
    SchemaMismatch,
    SettingsError,
    StorageError,
    StorageUnavailable,
    TurnInProgress,
    TurnWaiting,
)
from botservice.history import (
    ChatHistory,
    Embedder,
    EmbeddingIndexer,
    LocalEmbedder,
    MessageSelector,
    MessageWindowMessageSelector,
    NoMessages,
    OpenAIEmbedder,
    SearchHit,
    SteadyWindowMessageSelector,
    TokenWindowMessageSelector,
)
from botservice.history.notes import Note
from botservice.llm import ChatLLM, ChatResponse, FallbackLLM, ScriptedChatLLM
from botservice.llm.configured import default_llm
from botservice.memory import (
    ActionStep,
    AgentMemory,
    FailedStep,
    FinalAnswerStep,
    ForgetOldImages,
    Memory,
    MemoryItem,
    MemoryStep,
    PlanningStep,
    StepError,
    SystemPromptStep,
    TaskStep,
    Timing,
    TokenUsage,
    ToolResult,
    UnknownStep,
    forget_old_images,
)
from botservice.memory.sub_runs import SubRun, sub_runs
from botservice.messages import (
    Attachment,
    Author,
    Button,
    ButtonStyle,
    CommandCall,
    InboundMessage,
    Message,
    Role,
    ToolCall,
)
from botservice.observer import Observation, Observer
from botservice.references import Reference, ReferenceKind
from botservice.service import AgentService
from botservice.storage import Storage
from botservice.tools import Later, Tool, Toolset, tool
from botservice.tools.mcp import MCPServers
from botservice.tools.progress import progress
from botservice.tools.remembering import forget_fact, remember
from botservice.tools.skills import Skills
from botservice.turns import AgentRun, RetryPolicy
from botservice.turns.results import RunResult, RunState
from botservice.turns.start.commands import CommandAnswer, CommandRequest
from botservice.turns.waiting.calls import PendingCall

if TYPE_CHECKING:
    from botservice.llm import OpenAIChatLLM

__version__ = "0.6.0"

__all__ = [
    "Action",
    "ActionStep",
    "Agent",
    "AgentContext",
    "AgentMemory",
    "AgentRun",
    "AgentService",
    "ApprovalPending",
    "Attachment",
    "Author",
    "BotServiceError",
    "Button",
    "ButtonStyle",
    "ChatHistory",
    "ChatLLM",
    "ChatResponse",
    "ClaimLost",
    "Command",
    "CommandAnswer",
    "CommandCall",
    "CommandRequest",
    "ContextOverflow",
    "DatabaseInUse",
    "DeliveryError",
    "DeliveryRefused",
    "DeliveryUnknown",
    "Embedder",
    "EmbeddingIndexer",
    "FailedStep",
    "FallbackLLM",
    "FinalAnswerCheck",
    "FinalAnswerStep",
    "FinishAction",
    "ForgetOldImages",
    "FunctionsBasedAgent",
    "InboundMessage",
    "InboxFull",
    "InvalidContextKeys",
    "InvalidField",
    "InvalidSkill",
    "InvalidTool",
    "LLMError",
    "LLMFailure",
    "Later",
    "LocalEmbedder",
    "MCPServers",
    "Memory",
    "MemoryItem",
    "MemoryStep",
    "Message",
    "MessageSelector",
    "MessageWindowMessageSelector",
    "NoMessages",
    "Note",
    "Observation",
    "Observer",
    "OpenAIChatLLM",
    "OpenAIEmbedder",
    "PendingCall",
    "Plan",
    "PlanningStep",
    "Prompt",
    "Reference",
    "ReferenceKind",
    "ResultPending",
    "RetryPolicy",
    "Role",
    "RunFinished",
    "RunInterrupted",
    "RunResult",
    "RunState",
    "SchemaMismatch",
    "ScriptedChatLLM",
    "SearchHit",
    "SettingsError",
    "Skills",
    "SteadyWindowMessageSelector",
    "StepError",
    "Storage",
    "StorageError",
    "StorageUnavailable",
    "SubRun",
    "SystemPromptStep",
    "TaskStep",
    "Timing",
    "TokenUsage",
    "TokenWindowMessageSelector",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Toolset",
    "TurnInProgress",
    "TurnWaiting",
    "UnknownStep",
    "default_llm",
    "forget_fact",
    "forget_old_images",
    "progress",
    "remember",
    "sub_runs",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name == "OpenAIChatLLM":  # the openai client is imported where somebody uses it
        from botservice.llm import OpenAIChatLLM

        return OpenAIChatLLM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
