"""A bot in Discord: people say `/ask` and their question. `botservice serve --app bot:service` serves it from here.

docs/guides/transport.md tells how it works, and how Discord is told of it.
"""

from plugin import build_discord

from botservice import AgentService, FunctionsBasedAgent, default_llm, tool


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


service = AgentService(FunctionsBasedAgent(tools=[add], llm=default_llm()), transports=[build_discord()])
