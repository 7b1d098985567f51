"""How well an agent answers from a long chat, end to end: LongMemEval or BEAM, a real model, and a model that judges.

    python benchmarks/longmem.py longmemeval_s_cleaned.json [--questions 50] [--judge MODEL] [--local MODEL]
    python benchmarks/longmem.py BEAM/chats/100K [--out rows.jsonl]
    python benchmarks/longmem.py --check-judge

The model is that of your settings (OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL); --judge names another one of the
same server. The files are read as they are published: LongMemEval's one JSON file (github.com/xiaowu0162/LongMemEval),
BEAM's folder of chats, each with chat.json and probing_questions/probing_questions.json
(github.com/mohammadtavakoli78/BEAM). Download them yourself, and look at their licences; nothing of them is in this
repository.

Each chat is stored in a database of its own, with its dates. Each question is asked at the time of the file with the
agent as it comes and its tool `recall`; its answer is deleted before the next one is asked. The judge sees the
question, what a right answer says, and the answer. BEAM's points (its rubric) are judged one by one, and a question's
score is the share of them that hold.

--check-judge asks the judge about answers that are known to be right or wrong. Trust no score of a judge that errs
there. --local is as LOCAL_EMBEDDING_MODEL, for search by meaning.
"""

import argparse
import asyncio
import json
import random
import re
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from botservice import AgentContext, ChatLLM, EmbeddingIndexer, FunctionsBasedAgent, OpenAIChatLLM, Storage
from botservice.agent.tool_catalogue import built_in
from botservice.config.settings import Settings
from botservice.factories import build_embedder
from botservice.service import AgentService

JUDGE = """You check an answer that an assistant gave to a question about an earlier conversation.

Question: {question}
What a right answer says: {wanted}
The assistant's answer: {answer}

Does the assistant's answer say that? Other words for the same count as the same, and so do further details, unless
they contradict it. A number, a date or a name that differs is wrong. Where a right answer says that the conversation
does not tell, the assistant has to say so, and must not guess. Reply with one word: yes or no."""

# Question, what a right answer says, an answer, and whether that is right.
KNOWN = (
    ("What is my dog called?", "Rex", "Your dog's name is Rex.", True),
    ("What is my dog called?", "Rex", "Your dog is called Max.", False),
    ("When is my flight?", "7 May 2024, 9:40", "On May 7th 2024, at twenty to ten in the morning.", True),
    ("When is my flight?", "7 May 2024, 9:40", "On 8 May 2024 at 9:40.", False),
    ("How much is the rent now?", "760 euros", "It was 800 euros, and since May it is 760.", True),
    ("How much is the rent now?", "760 euros", "It is 800 euros a month.", False),
    ("Who is my dentist?", "The conversation does not tell.", "You have not told me that.", True),
    ("Who is my dentist?", "The conversation does not tell.", "Probably Dr. Miller.", False),
    ("Which cities did I visit?", "Rome, Porto and Lyon", "Lyon, Rome, and Porto too.", True),
    ("Which cities did I visit?", "Rome, Porto and Lyon", "Rome and Porto.", False),
    ("In which order did I learn them?", "first Greek, then Latin", "Greek came first, Latin after that.", True),
    ("In which order did I learn them?", "first Greek, then Latin", "Latin, and Greek later.", False),
)


@dataclass(frozen=True)
class Asked:
    """One question of a chat, with what a right answer says: one text, or several points."""

    kind: str
    text: str
    wanted: list[str]
    at: datetime


@dataclass(frozen=True)
class Chat:
    """One chat: role, text and time of each message, and its questions."""

    name: str
    said: list[tuple[str, str, datetime]]
    questions: list[Asked]


@dataclass(frozen=True)
class Row:
    """What came out for one question: the share of its points that hold."""

    chat: str
    kind: str
    question: str
    wanted: list[str]
    answer: str
    score: float


def read_chats(path: Path) -> Iterator[Chat]:
    """Yield the chats of a file of LongMemEval, or a folder of BEAM."""
    if path.is_file():
        for item in json.loads(path.read_text(encoding="utf-8")):
            yield read_longmemeval(item)
        return
    folders = sorted({each.parent for each in path.rglob("chat.json")})
    if not folders:
        sys.exit(f"{path} is neither a file of LongMemEval nor a folder of BEAM with chat.json in it")
    for folder in folders:
        probing = folder / "probing_questions" / "probing_questions.json"
        yield read_beam(folder.name, *(json.loads(each.read_text("utf-8")) for each in (folder / "chat.json", probing)))


def read_longmemeval(item: dict[str, Any]) -> Chat:
    """Return one entry of LongMemEval: a question with its own chat."""
    said = []
    for date, session in zip(item["haystack_dates"], item["haystack_sessions"], strict=True):
        start = _date(date)
        said += [(each["role"], each["content"], start + timedelta(minutes=n)) for n, each in enumerate(session)]
    wanted = str(item["answer"])
    kind = "abstention" if item["question_id"].endswith("_abs") else item["question_type"]
    said.sort(key=lambda each: each[2])
    return Chat(item["question_id"], said, [Asked(kind, item["question"], [wanted], _date(item["question_date"]))])


def read_beam(name: str, batches: list[dict[str, Any]], probing: dict[str, list[dict[str, Any]]]) -> Chat:
    """Return one chat of BEAM, a message a minute from each time that it names."""
    said, now = [], datetime(2024, 1, 1, 9, tzinfo=UTC)
    for batch in batches:
        now = _anchored(batch.get("time_anchor"), now)
        for message in (each for turn in batch["turns"] for each in turn):
            now = _anchored(message.get("time_anchor"), now) + timedelta(minutes=1)
            said.append((message["role"], re.sub(r"\s*->->\s*[\d,]+\s*\Z", "", message["content"]), now))
    asked = [
        Asked(kind, each["question"], list(each["rubric"]), now + timedelta(hours=1))
        for kind, group in probing.items()
        for each in group
    ]
    return Chat(name, said, asked)


def _date(text: str) -> datetime:
    """Return a time such as "2023/05/30 (Tue) 23:40"."""
    return datetime.strptime(re.sub(r"\s*\(\w+\)\s*", " ", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _anchored(anchor: str | None, now: datetime) -> datetime:
    """Return the morning of a day such as "March-15-2024"; now where there is none, or it is later."""
    return max(now, datetime.strptime(anchor, "%B-%d-%Y").replace(hour=9, tzinfo=UTC)) if anchor else now


class DatedStorage(Storage):
    """A storage whose clock stands where a question is asked."""

    at = datetime(2024, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the moment that was set."""
        return self.at


async def judge(llm: ChatLLM, question: str, wanted: str, answer: str) -> bool:
    """Return whether a model says that an answer is right."""
    prompt = JUDGE.format(question=question, wanted=wanted, answer=answer)
    response = await llm.chat([{"role": "user", "content": prompt}])
    return (response.text or "").strip().lower().startswith("yes")


async def measure(chat: Chat, settings: Settings, llm: ChatLLM, judging: ChatLLM) -> list[Row]:
    """Ask the questions of one chat and judge the answers."""
    rows = []
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        storage = DatedStorage.open(f"sqlite:///{folder}/chat.db")
        assert isinstance(storage, DatedStorage)
        await stack.enter_async_context(storage)
        agent = FunctionsBasedAgent(built_in(["time", "recall"]), llm=llm)
        service = AgentService(agent, storage=storage)
        context = await AgentContext.get_or_create(storage, {"chat_id": chat.name})
        history = context.chat_history
        for role, text, at in chat.said:
            append = history.append_assistant_message if role == "assistant" else history.append_user_message
            await append(text, created_at=at)
        embedder = await asyncio.to_thread(build_embedder, settings)
        if embedder is not None:
            indexer = await stack.enter_async_context(EmbeddingIndexer(storage, embedder))
            await indexer.catch_up()
        stored = {each.id for each in await history.messages()}
        for asked in chat.questions:
            storage.at = asked.at
            answer = await service.prompt(context, asked.text)
            held = [await judge(judging, asked.text, wanted, answer.text) for wanted in asked.wanted]
            rows.append(Row(chat.name, asked.kind, asked.text, asked.wanted, answer.text, statistics.fmean(held)))
            await history.delete_messages([each.id for each in await history.messages() if each.id not in stored])
    return rows


async def check_judge(judging: ChatLLM) -> list[str]:
    """Return the known answers that a judge takes for what they are not."""
    wrong = []
    for question, wanted, answer, is_right in KNOWN:
        if await judge(judging, question, wanted, answer) is not is_right:
            wrong.append(f"{question} {answer!r} is {'right' if is_right else 'wrong'} ({wanted})")
    return wrong


def interval(values: Sequence[float]) -> str:
    """Return a mean with its 95 % interval, by bootstrap over questions with a fixed seed."""
    chance = random.Random(0)
    means = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(1000))
    return f"{statistics.fmean(values):.3f} ({means[25]:.3f} to {means[974]:.3f})"


def table(rows: Sequence[Row]) -> Table:
    """Return the scores by kind of question."""
    groups = defaultdict(list)
    for row in rows:
        groups["all"].append(row.score)
        groups[row.kind].append(row.score)
    shown = Table("questions", "n", "score")
    for kind, scores in groups.items():
        shown.add_row(kind, str(len(scores)), interval(scores))
    return shown


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", help="a file of LongMemEval, or a folder of BEAM")
    parser.add_argument("--questions", type=int, help="ask so many at most")
    parser.add_argument("--judge", help="the model that judges; by default the one that answers")
    parser.add_argument("--local", help="adds meaning to search, as LOCAL_EMBEDDING_MODEL")
    parser.add_argument("--out", type=Path, help="write each question with its answer to this file")
    parser.add_argument("--check-judge", action="store_true", help="ask the judge about known answers, and no more")
    options = parser.parse_args()
    if options.path is None and not options.check_judge:
        parser.error("give a file of LongMemEval or a folder of BEAM, or --check-judge")
    settings = Settings.load(**({} if options.local is None else {"local_embedding_model": options.local}))
    if not settings.has_model:
        parser.error("set OPENAI_API_KEY or OPENAI_BASE_URL: a real model has to answer and to judge")
    llm = OpenAIChatLLM(settings.openai_model)
    judging = llm if options.judge is None else OpenAIChatLLM(options.judge)
    console, rows = Console(), list[Row]()
    wrong = await check_judge(judging)
    console.print(
        f"The judge is right about {len(KNOWN) - len(wrong)} of {len(KNOWN)} known answers.", *wrong, sep="\n"
    )
    if options.check_judge:
        sys.exit(bool(wrong))
    for chat in read_chats(options.path):
        rows += await measure(chat, settings, llm, judging)
        console.print(f"{chat.name}: {statistics.fmean(row.score for row in rows):.3f} after {len(rows)} questions")
        if options.out is not None:
            options.out.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows), encoding="utf-8")
        if options.questions is not None and len(rows) >= options.questions:
            break
    console.print(table(rows))


if __name__ == "__main__":
    asyncio.run(main())
