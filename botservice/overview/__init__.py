"""Reading what is stored, for the command line and the inspector."""

from botservice.overview.conversations import (
    ContextSummary,
    TurnRecord,
    check_context,
    export_context,
    forget_context,
    list_contexts,
    read_turns,
)

__all__ = [
    "ContextSummary",
    "TurnRecord",
    "check_context",
    "export_context",
    "forget_context",
    "list_contexts",
    "read_turns",
]
