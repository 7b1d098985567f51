"""What a model may do besides talking."""

from botservice.tools.executor import ToolOutcome, execute
from botservice.tools.later import Later
from botservice.tools.tool import Tool, tool

__all__ = ["Later", "Tool", "ToolOutcome", "execute", "tool"]
