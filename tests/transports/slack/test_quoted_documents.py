"""Documents in Slack: the answer names its source, and a press shows the passage."""

import re
from pathlib import Path
from typing import Any

from standins.slack_api import BOT_USER, SlackApi

from botservice import Storage
from botservice.knowledge.indexer import KnowledgeIndexer
from botservice.knowledge.stored_documents import StoredDocuments

CHANNEL = "C0GENERAL"


def cite(prompt: list[Any]) -> str:
    """Answer with the mark of the first passage that stands in the prompt."""
    mark = re.search(r"\[D\d+\] ", str(prompt))
    return f"Twenty-eight days {mark[0].strip()}." if mark else "I do not know."


async def test_a_press_shows_the_passage_that_an_answer_names(
    api: SlackApi, bot_on, sqlite_storage: Storage, tmp_path: Path
) -> None:
    (tmp_path / "handbook.md").write_text("# Handbook\n\n## Leave\n\nEveryone has twenty-eight days of leave a year.\n")
    await KnowledgeIndexer(sqlite_storage).add(str(tmp_path), readers=("all",))
    async with bot_on(api, cite, knowledge=StoredDocuments()):
        api.person_says(f"<@{BOT_USER}> How many days of leave do I have?", channel=CHANNEL)
        [post] = await api.until(lambda: [each for each in api.bot_posts(CHANNEL) if "Sources:" in each.text])
        rows = [block["elements"] for block in post.blocks if block["type"] == "actions"]
        [button] = [each for row in rows for each in row]
        assert button["text"]["text"] == "Show sources"
        api.press(post, button)
        await api.until(lambda: [each for each in api.bot_posts(CHANNEL) if "Everyone has" in each.text])
