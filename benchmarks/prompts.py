"""How well a prompt holds what was said: recall in the prompt of an agent, next to that of search.

    python benchmarks/prompts.py my_chats.json [more.json …] [--window 10] [--tokens 1000] [--k 24] [--misses]
                                 [--local FOLDER]

The files are those of recall.py. Each chat is stored in a database, each question is asked two minutes after the last
message, as a message of its own, and the prompt is built as for any turn: the window of the newest messages, and what
is found. A gold message counts where its words stand in the prompt. Next to it is what the first ten messages have
that searching finds before the question is stored. "lost" is what these have and the prompt has not.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from recall import documents, interval, read_chats
from rich.console import Console
from rich.table import Table

from botservice import (
    AgentContext,
    Author,
    EmbeddingIndexer,
    FunctionsBasedAgent,
    LocalEmbedder,
    MessageWindowMessageSelector,
    ScriptedChatLLM,
    Storage,
)
from botservice.core.messages import Message, Role
from botservice.llm.tokens import counter_for

_PAUSE = timedelta(minutes=2)
_SEARCHED = 10
_BEGINNING = 200  # characters of a message that have to stand in a prompt


class Row(NamedTuple):
    """One question: shares of its gold messages, and what was found for it."""

    kind: str
    text: str
    in_prompt: float
    in_search: float
    lost: float
    found: int
    tokens: int


async def tell(context: AgentContext, chat: dict[str, Any]) -> dict[int, Message]:
    """Store a chat and return its messages by their ids in the file."""
    said = {}
    for document in documents(chat, 0):
        history = context.chat_history
        add = history.append_assistant_message if document.role is Role.ASSISTANT else history.append_user_message
        said[document.id] = await add(document.text, author=document.author_name, created_at=document.created_at)
    return said


async def ask(
    context: AgentContext, agent: FunctionsBasedAgent, said: dict[int, Message], question: dict[str, Any]
) -> Row:
    """Return what search and the prompt hold of a question's gold."""
    history = context.chat_history
    asker = Author(name=question["asker"]) if "asker" in question else None
    gold = [said[number] for number in question["gold"]]
    asked_at = list(said.values())[-1].created_at + _PAUSE
    searched = {hit.message.id for hit in await history.search(question["text"], k=_SEARCHED, asker=asker)}
    asked = await history.append_user_message(question["text"], author=asker, created_at=asked_at)
    prompt = await agent.build_prompt(context)
    await history.delete_messages([asked.id])
    first, end = prompt.sections().get("found", (0, 0))
    found = str(prompt[first]["content"]) if end else ""
    shown = _words("\n".join(str(each["content"]) for each in prompt[:-1]))
    held = {each.id for each in gold if _words(each.text)[:_BEGINNING] in shown}
    return Row(
        question.get("kind", "-"),
        question["text"],
        len(held) / len(gold),
        sum(each.id in searched for each in gold) / len(gold),
        sum(each.id in searched and each.id not in held for each in gold) / len(gold),
        found.count("\n["),
        counter_for().count(found),
    )


def _words(text: str) -> str:
    """Return text without the line breaks and blanks, which a prompt sets otherwise."""
    return " ".join(text.split())


async def measure(chats: list[dict[str, Any]], agent: FunctionsBasedAgent, embedder: LocalEmbedder | None) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        async with Storage.open(f"sqlite:///{Path(folder) / 'prompts.db'}", migrate=True) as storage:
            for chat in chats:
                context = await AgentContext.get_or_create(storage, {"chat": str(chat["id"])})
                said = await tell(context, chat)
                if embedder is None:
                    rows += [await ask(context, agent, said, question) for question in chat["questions"]]
                    continue
                async with EmbeddingIndexer(storage, embedder) as indexer:
                    await indexer.catch_up()
                    rows += [await ask(context, agent, said, question) for question in chat["questions"]]
    return rows


def table(rows: list[Row]) -> Table:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups["all"].append(row)
        groups[f"kind: {row.kind}"].append(row)
    shown = Table(title="recall in the prompt")
    for name in ("group", "questions", "in the prompt", f"R@{_SEARCHED}", "lost", "found", "tokens", "most tokens"):
        shown.add_column(name, justify="left" if name == "group" else "right")
    for name, part in sorted(groups.items()):
        figures = [statistics.fmean(each) for each in zip(*(row[2:] for row in part), strict=True)]
        most = max(row.tokens for row in part)
        shown.add_row(
            name,
            str(len(part)),
            *(f"{each:.3f}" for each in figures[:3]),
            f"{figures[3]:.1f}",
            f"{figures[4]:.0f}",
            str(most),
        )
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--window", type=int, default=10, help="newest messages that stand in the prompt anyway")
    parser.add_argument("--tokens", type=int, help="tokens for what is found (1000)")
    parser.add_argument("--k", type=int, help="messages to look for (24); without --tokens exact")
    parser.add_argument("--misses", action="store_true", help="list what the prompt does not have")
    parser.add_argument("--local", metavar="FOLDER", help="compare by meaning, with the model in this folder")
    options = parser.parse_args()
    agent = FunctionsBasedAgent(
        llm=ScriptedChatLLM([]),
        message_selector=MessageWindowMessageSelector(options.window),
        search_k=options.k,
        search_tokens=options.tokens,
    )
    embedder = LocalEmbedder(options.local) if options.local else None
    rows = asyncio.run(measure(read_chats(options.files), agent, embedder))
    console = Console()
    console.print(table(rows))
    low, high = interval([row.in_prompt for row in rows])
    console.print(f"in the prompt: 95 % interval {low:.3f} to {high:.3f}")
    if options.misses:
        for row in rows:
            if row.in_prompt < 1:
                console.print(f"  {row.in_prompt:.2f} {row.kind}: {row.text}", markup=False)


if __name__ == "__main__":
    main()
