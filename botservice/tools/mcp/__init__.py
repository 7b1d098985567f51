"""Tools of MCP servers. The client is imported where a server is connected, and nowhere else."""

from botservice.tools.mcp.personal import CALLBACK_PATH
from botservice.tools.mcp.servers import MCPServers

__all__ = ["CALLBACK_PATH", "MCPServers"]
