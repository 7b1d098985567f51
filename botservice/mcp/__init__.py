"""Tools of MCP servers. The client is imported where a server is connected, and nowhere else."""
