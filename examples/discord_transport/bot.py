"""A bot in Discord: people say `/ask` and their question. `botservice serve --app bot:service` serves it from here.

docs/guides/transport.md tells how it works, and how Discord is told of it.
"""

import os

from transport import API_URL, DiscordTransport

from botservice import AgentService, FunctionsBasedAgent, default_llm, tool


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


discord = DiscordTransport(
    application_id=os.environ["DISCORD_APPLICATION_ID"],
    public_key=os.environ["DISCORD_PUBLIC_KEY"],
    token=os.environ["DISCORD_BOT_TOKEN"],
    api_url=os.environ.get("DISCORD_API_URL", API_URL),
)
service = AgentService(FunctionsBasedAgent(tools=[add], llm=default_llm()), transports=[discord])
