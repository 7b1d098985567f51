"""Documents in Telegram: the answer names its source, a press shows the passage, and no other chat finds it."""

import re
from pathlib import Path

from standins.bot_api import BotApi

from botservice import Storage
from botservice.agent.knowledge_base import BETWEEN
from botservice.knowledge.indexer import KnowledgeIndexer
from botservice.knowledge.stored_documents import StoredDocuments


def cite(prompt: list) -> str:
    """Answer with the mark of the first passage that stands in the prompt."""
    mark = re.search(r"\[D\d+\] ", str(prompt))
    return f"Twenty-eight days {mark[0].strip()}." if mark else "I do not know."


async def test_a_press_shows_the_passage_that_an_answer_names(
    api: BotApi, bot_on, sqlite_storage: Storage, tmp_path: Path
) -> None:
    (tmp_path / "handbook.md").write_text("# Handbook\n\n## Leave\n\nEveryone has twenty-eight days of leave a year.\n")
    await KnowledgeIndexer(sqlite_storage).add(str(tmp_path), readers=("telegram:42",))
    api.add_private_chat(43)
    async with bot_on(api, cite, knowledge=StoredDocuments()):
        api.person_says("How many days of leave do I have?", chat_id=42)
        answer = await api.message(42, f"Twenty-eight days [1].\n\nSources:\n1. Handbook{BETWEEN}Leave")
        [[button]] = answer.buttons
        assert button["text"] == "Show sources"
        api.person_presses(42, answer.message_id, button["callback_data"])
        await api.message(42, f"Handbook{BETWEEN}Leave\n\nEveryone has twenty-eight days of leave a year.")
        api.person_says("How many days of leave do I have?", chat_id=43)
        await api.message(43, "I do not know.")
