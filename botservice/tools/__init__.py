"""Tools that a model may call."""

from botservice.tools.executor import ToolOutcome, execute
from botservice.tools.later_results import Later
from botservice.tools.tool import Tool, tool
from botservice.tools.toolset import Toolset

__all__ = ["Later", "Tool", "ToolOutcome", "Toolset", "execute", "tool"]
