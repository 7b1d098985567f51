"""How well search finds what was said: recall@k and NDCG@10 on your own chats.

    python benchmarks/recall.py my_chats.json [more.json …] [--k 3,5,10] [--together] [--misses]
                                [--local FOLDER | --openai MODEL]

By words, without a model, a key or a network; with --local or --openai by meaning as well: a model in a folder (see
LocalEmbedder), or one of OpenAI's or of the server at OPENAI_BASE_URL.

Each file is JSON:

    {"chats": [{
      "id": "family",                             any name
      "language": "en",                           optional, only to group the table
      "messages": [                               in the order they were said
        {"id": 1, "role": "user", "text": "My dog is called Rex", "created_at": "2024-03-01T09:00:00Z",
         "author": "Ann"}],                       created_at and author are optional
      "questions": [
        {"text": "what is my dog's name?",
         "gold": [1],                             ids of the messages that answer it
         "kind": "plain",                         optional, only to group the table
         "asker": "Ann"}]                         optional: whose "I" and "my" it is
    }]}

recall@k is the share of a question's gold messages among the first k found, averaged over questions; NDCG@10 also
counts how high they stand. 50 questions tell a good ranking from a bad one; 200 tell two good ones apart (see the
interval).
--together puts the chats of all files into one index, which is harder. --misses lists what was not among the first k.
"""

import argparse
import asyncio
import json
import math
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from botservice import Embedder, LocalEmbedder, OpenAIEmbedder
from botservice.core.messages import Author, Role
from botservice.search.documents import Document
from botservice.search.index import SearchIndex

ROOM = 1_000_000  # ids between two chats of one index
START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Result:
    """One question: what it was, and the ranks (from 0) of its gold messages that were found."""

    chat: str
    language: str
    kind: str
    text: str
    gold: list[int]
    ranks: list[int]
    seconds: float

    def recall(self, k: int) -> float:
        return sum(rank < k for rank in self.ranks) / len(self.gold)

    def ndcg(self, k: int = 10) -> float:
        ideal = sum(1 / math.log2(place + 2) for place in range(min(k, len(self.gold))))
        return sum(1 / math.log2(rank + 2) for rank in self.ranks if rank < k) / ideal


def read_chats(paths: Iterable[Path]) -> list[dict[str, Any]]:
    chats = [chat for path in paths for chat in json.loads(path.read_text(encoding="utf-8"))["chats"]]
    for chat in chats:
        known = {message["id"] for message in chat["messages"]}
        for question in chat["questions"]:
            if not question["gold"] or not known.issuperset(question["gold"]):
                sys.exit(f"chat {chat['id']!r}: gold of {question['text']!r} must name messages of that chat")
    return chats


def documents(chat: dict[str, Any], offset: int) -> list[Document]:
    return [
        Document(
            id=offset + message["id"],
            role=Role(message.get("role", "user")),
            text=message["text"],
            author_name=message.get("author"),
            author_key=None,
            created_at=_time(message, place),
        )
        for place, message in enumerate(chat["messages"])
    ]


def _time(message: dict[str, Any], place: int) -> datetime:
    if "created_at" not in message:
        return START + timedelta(minutes=place)
    when = datetime.fromisoformat(message["created_at"])
    return when if when.tzinfo else when.replace(tzinfo=UTC)


async def run(
    chats: list[dict[str, Any]], *, depth: int, together: bool, embedder: Embedder | None = None
) -> list[Result]:
    indexes, results = [SearchIndex() for _ in (chats[:1] if together else chats)], []
    for place, chat in enumerate(chats):
        said = documents(chat, place * ROOM)
        index = indexes[0 if together else place]
        index.add(said)
        if embedder is not None:
            matrix = await embedder.embed_documents([document.text for document in said])
            index.set_vectors([document.id for document in said], np.asarray(matrix))
    for place, chat in enumerate(chats):
        index = indexes[0 if together else place]
        for question in chat["questions"]:
            vector = None
            if embedder is not None:
                vector = np.asarray(await embedder.embed_query(index.without_names(question["text"])))
            results.append(ask(index, chat, question, place * ROOM, depth, vector))
    return results


def ask(
    index: SearchIndex, chat: dict[str, Any], question: dict[str, Any], offset: int, depth: int, vector: Any
) -> Result:
    asker = Author(name=question["asker"]) if "asker" in question else None
    start = time.perf_counter()
    hits = index.search(question["text"], k=depth, asker=asker, query_vector=vector)
    seconds = time.perf_counter() - start
    found = [number - offset for number, _ in hits]
    return Result(
        chat=str(chat["id"]),
        language=chat.get("language", "-"),
        kind=question.get("kind", "-"),
        text=question["text"],
        gold=question["gold"],
        ranks=sorted(found.index(number) for number in set(question["gold"]) if number in found),
        seconds=seconds,
    )


def interval(values: list[float]) -> tuple[float, float]:
    """95 % by bootstrap over questions, with a fixed seed."""
    chance = random.Random(0)
    means = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(400))
    return means[10], means[389]


def table(results: list[Result], ks: list[int]) -> Table:
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups["all"].append(result)
        groups[f"kind: {result.kind}"].append(result)
        groups[f"language: {result.language}"].append(result)
    shown = Table(title="recall")
    for name in ("group", "questions", *(f"R@{k}" for k in ks), "NDCG@10"):
        shown.add_column(name, justify="left" if name == "group" else "right")
    for name in sorted(groups, key=lambda name: (name != "all", name)):
        rows = groups[name]
        figures = [statistics.fmean(row.recall(k) for row in rows) for k in ks]
        figures.append(statistics.fmean(row.ndcg() for row in rows))
        shown.add_row(name, str(len(rows)), *(f"{figure:.3f}" for figure in figures))
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--k", default="3,5,10", help="where to cut, comma-separated")
    parser.add_argument("--together", action="store_true", help="all chats in one index")
    parser.add_argument("--misses", action="store_true", help="list what the first k of the middle cut do not have")
    parser.add_argument("--local", metavar="FOLDER", help="compare by meaning, with the model in this folder")
    parser.add_argument("--openai", metavar="MODEL", help="compare by meaning, with this model of OPENAI_BASE_URL")
    options = parser.parse_args()
    ks = sorted(int(k) for k in options.k.split(","))
    embedder: Embedder | None = LocalEmbedder(options.local) if options.local else None
    if options.openai:
        embedder = OpenAIEmbedder(options.openai)
    chats = read_chats(options.files)
    results = asyncio.run(run(chats, depth=max(*ks, 10), together=options.together, embedder=embedder))
    if not results:
        sys.exit("no questions in these files")
    console, cut = Console(), ks[len(ks) // 2]
    console.print(table(results, ks))
    low, high = interval([result.recall(cut) for result in results])
    times = sorted(result.seconds for result in results)
    console.print(f"R@{cut}: 95 % interval {low:.3f} to {high:.3f}")
    console.print(
        f"query: median {1e3 * times[len(times) // 2]:.1f} ms, p95 {1e3 * times[int(len(times) * 0.95)]:.1f} ms"
    )
    if options.misses:
        for result in results:
            if result.recall(cut) < 1:
                console.print(
                    f"[{result.chat}] {result.text}  gold {result.gold}, found at {result.ranks}", markup=False
                )


if __name__ == "__main__":
    main()
