"""An agent for Telegram and Slack that remembers each chat, answers once and loses nothing."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from botservice.agents import Action, Agent, FinishAction, FunctionsBasedAgent, Plan, Prompt
    from botservice.agents.checks import FinalAnswerCheck
    from botservice.capabilities import Capabilities
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
    from botservice.llm import ChatLLM, ChatResponse, FallbackLLM, OpenAIChatLLM, ScriptedChatLLM
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

__version__ = "0.12.0"

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
    "Capabilities",
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

# Where each name is: a module is imported when one of its names is first used, so that commands begin at once.
_NAMES: Final = {
    "botservice.agents": "Action Agent FinishAction FunctionsBasedAgent Plan Prompt",
    "botservice.agents.checks": "FinalAnswerCheck",
    "botservice.commands": "Command",
    "botservice.contexts.context": "AgentContext",
    "botservice.errors": (
        "ApprovalPending BotServiceError ClaimLost ContextOverflow DatabaseInUse DeliveryError "
        "DeliveryRefused DeliveryUnknown InboxFull InvalidContextKeys InvalidField InvalidSkill InvalidTool "
        "LLMError LLMFailure ResultPending RunFinished RunInterrupted SchemaMismatch SettingsError "
        "StorageError StorageUnavailable TurnInProgress TurnWaiting"
    ),
    "botservice.history": (
        "ChatHistory Embedder EmbeddingIndexer LocalEmbedder MessageSelector MessageWindowMessageSelector "
        "NoMessages OpenAIEmbedder SearchHit SteadyWindowMessageSelector TokenWindowMessageSelector"
    ),
    "botservice.history.notes": "Note",
    "botservice.llm": "ChatLLM ChatResponse FallbackLLM OpenAIChatLLM ScriptedChatLLM",
    "botservice.llm.configured": "default_llm",
    "botservice.memory": (
        "ActionStep AgentMemory FailedStep FinalAnswerStep ForgetOldImages Memory MemoryItem MemoryStep "
        "PlanningStep StepError SystemPromptStep TaskStep Timing TokenUsage ToolResult UnknownStep "
        "forget_old_images"
    ),
    "botservice.memory.sub_runs": "SubRun sub_runs",
    "botservice.capabilities": "Capabilities",
    "botservice.messages": "Attachment Author Button ButtonStyle CommandCall InboundMessage Message Role ToolCall",
    "botservice.observer": "Observation Observer",
    "botservice.references": "Reference ReferenceKind",
    "botservice.service": "AgentService",
    "botservice.storage": "Storage",
    "botservice.tools": "Later Tool Toolset tool",
    "botservice.tools.mcp": "MCPServers",
    "botservice.tools.progress": "progress",
    "botservice.tools.remembering": "forget_fact remember",
    "botservice.tools.skills": "Skills",
    "botservice.turns": "AgentRun RetryPolicy",
    "botservice.turns.results": "RunResult RunState",
    "botservice.turns.start.commands": "CommandAnswer CommandRequest",
    "botservice.turns.waiting.calls": "PendingCall",
}
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
