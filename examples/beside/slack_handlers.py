"""A Bolt app that keeps its handlers, and has the agent answer mentions. It runs as it did: `python slack_handlers.py`.

docs/guides/migrating.md says what holds this way, and what does not.
"""

import asyncio
import os
from typing import Any

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp

from botservice import AgentContext, AgentService, Author, FunctionsBasedAgent, Storage, default_llm


def add_handlers(app: AsyncApp, service: AgentService) -> None:
    """Have an app answer its own command as it always did, and mentions by the agent."""

    @app.command("/hours")
    async def hours(ack: Any) -> None:
        await ack("Monday to Friday, 9 to 18")

    @app.event("app_mention")
    async def ask_agent(event: dict[str, Any], body: dict[str, Any], say: Any) -> None:
        thread = event.get("thread_ts", event["ts"])
        keys = {"transport": "slack", "team_id": body["team_id"], "channel_id": event["channel"], "thread_ts": thread}
        conversation = await AgentContext.get_or_create(service.storage, keys)
        author = Author("slack", f"{body['team_id']}:{event['user']}")
        answer = await service.prompt(conversation, event["text"], author=author)
        await say(answer.text, thread_ts=thread)


async def main() -> None:
    async with Storage.open(os.environ.get("DATABASE_URL", "sqlite:///botservice.db")) as storage:
        app = AsyncApp(token=os.environ["SLACK_BOT_TOKEN"], signing_secret=os.environ.get("SLACK_SIGNING_SECRET"))
        add_handlers(app, AgentService(FunctionsBasedAgent(llm=default_llm()), storage))
        await AsyncSocketModeHandler(app, os.environ["SLACK_APP_TOKEN"]).start_async()


if __name__ == "__main__":
    asyncio.run(main())
