"""A bot of python-telegram-bot that keeps its handlers, and has the agent answer everything else.

It runs as it did: `python telegram_handlers.py`. docs/guides/migrating.md says what holds this way, and what does not.
"""

import asyncio
import os

from telegram import Update
from telegram.ext import Application, ApplicationBuilder, CommandHandler, ContextTypes, MessageHandler, filters

from botservice import AgentContext, AgentService, Author, FunctionsBasedAgent, Storage, default_llm

Context = ContextTypes.DEFAULT_TYPE


async def hours(update: Update, _: Context) -> None:
    """Answer as this bot always did."""
    await update.message.reply_text("Monday to Friday, 9 to 18")


async def ask_agent(update: Update, context: Context) -> None:
    """Have the agent answer, in a conversation that the built-in Telegram transport would find again."""
    storage, service = context.bot_data["storage"], context.bot_data["service"]
    keys = {"transport": "telegram", "chat_id": str(update.effective_chat.id)}
    conversation = await AgentContext.get_or_create(storage, keys)
    author = Author("telegram", str(update.effective_user.id), update.effective_user.full_name)
    answer = await service.prompt(conversation, update.message.text, author=author)
    await update.message.reply_text(answer.text)


async def open_service(application: Application) -> None:
    """Open the database; `close_service` closes it."""
    storage = Storage.open(os.environ.get("DATABASE_URL", "sqlite:///botservice.db"))
    application.bot_data["storage"] = await storage.__aenter__()
    application.bot_data["service"] = AgentService(FunctionsBasedAgent(llm=default_llm()), storage)


async def close_service(application: Application) -> None:
    """Close the service and its database."""
    await application.bot_data["service"].close()
    await application.bot_data["storage"].__aexit__(None, None, None)


def build(builder: ApplicationBuilder) -> Application:
    """Return the bot: its own handlers first, the agent for the rest."""
    builder = builder.post_init(open_service).post_shutdown(close_service)
    application = builder.concurrent_updates(concurrent_updates=True).build()
    application.add_handler(CommandHandler("hours", hours))
    application.add_handler(MessageHandler(filters.TEXT, ask_agent))
    return application


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    build(Application.builder().token(os.environ["TELEGRAM_BOT_TOKEN"])).run_polling()
