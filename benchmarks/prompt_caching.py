"""What the layout of prompts saves: a talk of 40 turns with tools and found messages, laid out as now and as in 0.2.2.

    python benchmarks/prompt_caching.py [--turns 40] [--model gpt-6.1-terra]

No model is asked. Each request of the talk is built as OpenAI would get it, and compared with the one before it: the
share of its bytes that are the beginning of the request before. Breakpoints are left out of that: the model does not
read them. What the requests cost is worked out with the prices that botservice knows, for three ways in which a server
may find again what it has read (see `Cache`): what is published of gpt-5.6 and later can be read in two ways.

0.2.2 put what is known of the person and what was found before the window, as system messages, looked for 3 messages,
began the window wherever 4,000 tokens reached, and set no breakpoints. It fails where the new layout costs more than a
third of that, or where less than 80 % of the requests' bytes are a repeated beginning.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from botservice import (
    AgentContext,
    AgentService,
    Author,
    FunctionsBasedAgent,
    ScriptedChatLLM,
    Storage,
    TokenWindowMessageSelector,
    ToolCall,
)
from botservice.agent.prompt import Prompt
from botservice.config.known_prices import KNOWN_ON, KNOWN_PRICES
from botservice.config.settings import Settings
from botservice.core.policies import NANO, price_of
from botservice.factories import build_service
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.responses import build_body
from botservice.llm.tokens import counter_for

MOST_COST, LEAST_SHARE = 1 / 3, 0.8
FEWEST_TOKENS = 1024  # shorter beginnings are not kept (OpenAI, prompt caching)
SPOKEN_BEFORE = 200  # messages: the chat is no new one
TODAY = datetime(2026, 11, 2, 9, tzinfo=UTC)
ANN = Author("telegram", "42", "Ann")
OLD_ORDER = ("system", "person", "found", "window", "earlier", "question", "steps")
SUBJECTS = (
    *("the flat in Lisbon", "the sourdough bread", "the running plan", "the tax return", "the garden", "the old boat"),
    *("the birthday of my sister", "the Portuguese course", "the broken heating", "the trip to Norway", "the cello"),
)
REMARKS = (
    "I looked at it again yesterday and I am not sure that we should go on like this",
    "it costs about 240 euros, which is more than I wanted to spend this month",
    "Tom said that he would help on Saturday if it does not rain",
    "the last time we did it in two days, but then there were four of us",
    "I still have the papers somewhere, most likely in the blue box on the shelf",
    "could we do it before the end of the month, or is that too early",
)
ADVICE = (
    "That sounds sensible. I would begin with the part that cannot be put off, and write down what it costs.",
    "You said before that mornings suit you better, so an hour on Tuesday and one on Thursday should do.",
    "There are two ways: the quick one, which you can do alone, and the thorough one, for which you need Tom.",
    "Keep the receipts together with the papers in the blue box, then nothing gets lost until spring.",
    "If it rains, do the inside work first; the rest can wait for a week without any harm.",
)


class Kept(ScriptedChatLLM):
    """Follows a script and keeps what it was sent as it was sent."""

    def __init__(self, script):
        super().__init__(script)
        self.calls = []

    async def chat(self, messages, tools=(), *, on_text=None):
        self.calls.append((messages, tools))
        return await super().chat(messages, tools)


class Old(FunctionsBasedAgent):
    """Lays a prompt out as 0.2.2 did."""

    async def build_prompt(self, context):
        """Return the same parts in the old order; without a key and without sections there are no breakpoints."""
        prompt = await super().build_prompt(context)
        sections = prompt.sections()
        old = Prompt()
        for name in OLD_ORDER:
            parts = prompt[slice(*sections.get(name, (0, 0)))]
            role = {"role": "system"} if name in ("person", "found") else {}
            old.extend({**part, **role} for part in parts)
        return old


def make_agents(script):
    """Return the default agent as it is, and as 0.2.2 had it."""
    agent = build_service(Settings(_env_file=None, openai_api_key="sk-of-nobody")).agent
    tools = agent.tools.values()
    agent.llm = Kept(script)
    selector = TokenWindowMessageSelector(4000)
    return agent, Old(tools, Kept(script), message_selector=selector, search_k=3, prompt=agent.prompt)


def talk(turns):
    """Return what a person says in each turn, and what the model does then."""
    chance = random.Random(7)
    said, script = [], []
    for turn in range(turns):
        subject = chance.choice(SUBJECTS)
        said.append(f"About {subject}: {', and '.join(chance.sample(REMARKS, 2))}. What did I say about it before?")
        if turn % 2:
            script.append(ToolCall(f"call_{turn}", "current_time", {}))
        script.append(f"About {subject}: " + " ".join(chance.sample(ADVICE, 3)))
    return said, script


async def speak_before(history):
    """Fill a chat with what was said in the weeks before."""
    chance = random.Random(1)
    for place in range(SPOKEN_BEFORE // 2):
        at = TODAY - timedelta(hours=4 * (SPOKEN_BEFORE // 2 - place))
        subject = chance.choice(SUBJECTS)
        await history.append_user_message(
            f"About {subject}: {chance.choice(REMARKS)} ({place}).", author=ANN, created_at=at
        )
        advice = " ".join(chance.sample(ADVICE, 2))
        await history.append_assistant_message(f"About {subject}: {advice}", created_at=at + timedelta(minutes=1))


async def record(agent, said, folder):
    """Return the prompts of a talk, each with its tools."""
    async with Storage.open(f"sqlite:///{folder / type(agent).__name__}.db", migrate=True) as storage:
        context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "42"})
        await speak_before(context.chat_history)
        service = AgentService(agent, storage=storage)
        for text in said:
            await service.prompt(context, text, author=ANN)
    return [build(prompt, tools) for prompt, tools in agent.llm.calls]


@dataclass
class Request:
    """A request as it would be sent.

    Attributes:
        text: Its bytes as text, without breakpoints.
        pieces: What the model reads, piece by piece: the tools, then each message.
        sizes: The tokens of each piece.
        marks: The places of the pieces with a breakpoint.
    """

    text: str
    pieces: list[str]
    sizes: list[int]
    marks: list[int]
    newest: int


def build(prompt, tools):
    """Return the request of a prompt, of the same wire for both layouts."""
    elsewhere = CallOptions("gpt-6.1-terra", base_url="http://localhost/v1")
    body = build_body(prompt, tools, elsewhere)
    pieces = [json.dumps(part, ensure_ascii=False) for part in (body.get("tools"), *body["input"])]
    marked = build_body(prompt, tools, CallOptions("gpt-6.1-terra"))["input"]
    marks = [place + 1 for place, item in enumerate(marked) if "prompt_cache_breakpoint" in json.dumps(item)]
    newest = max(
        place + 1
        for place, item in enumerate(body["input"])
        if item.get("role") == "user" or item.get("type") == "function_call_output"
    )
    counter = counter_for()
    sizes = [counter.count(piece) for piece in pieces]
    return Request(json.dumps(body, ensure_ascii=False), pieces, sizes, marks, newest)


def share(before, request):
    """Return how much of a request is the beginning of the one before."""
    pairs = enumerate(zip(before.text, request.text, strict=False))
    same = next((place for place, (one, other) in pairs if one != other), min(len(before.text), len(request.text)))
    return same / len(request.text)


@dataclass
class Cache:
    """What a server has kept, as far as is known of it.

    strict: A beginning is found where it was kept and this request has a breakpoint there (gpt-5.6 and later, read
    strictly). kept: A beginning is found wherever one was kept (read kindly). any: Any beginning that was ever sent is
    found, in steps of 128 tokens, and keeping costs nothing more (models before).
    """

    kind: str
    kept: set[tuple[str, ...]] = field(default_factory=set)
    sent: list[Request] = field(default_factory=list)

    def take(self, request):
        """Return how many tokens of a request were read before, and how many are kept now."""
        if self.kind == "any":
            read = max((self._common(each, request) for each in self.sent), default=0)
            self.sent.append(request)
            return (read // 128 * 128 if read >= FEWEST_TOKENS else 0), 0
        marks = sorted({*request.marks[-3:], request.newest})
        places = [*request.marks, request.newest] if self.kind == "strict" else range(len(request.pieces))
        ends = [place for place in places if tuple(request.pieces[: place + 1]) in self.kept]
        read = sum(request.sizes[: max(ends) + 1]) if ends else 0
        new = [place for place in marks if sum(request.sizes[: place + 1]) >= FEWEST_TOKENS]
        self.kept.update(tuple(request.pieces[: place + 1]) for place in new)
        return read, max(0, sum(request.sizes[: new[-1] + 1]) - read) if new else 0

    @staticmethod
    def _common(one, other):
        same = 0
        for mine, theirs, size in zip(one.pieces, other.pieces, other.sizes, strict=False):
            if mine != theirs:
                break
            same += size
        return same


def cost(requests, price, kind):
    """Return what the input of a talk costs, in the currency."""
    cache = Cache(kind)
    if kind == "any":
        price = replace(price, write=None)
    return sum(price.of(sum(request.sizes), 0, *cache.take(request)) for request in requests) / NANO


def tell_shares(name, requests):
    """Print how much the requests repeat of the one before, and return it for all of their bytes together."""
    shares = [share(before, request) for before, request in pairwise(requests)]
    sizes = [len(request.text) for request in requests[1:]]
    every = sum(part * size for part, size in zip(shares, sizes, strict=True)) / sum(sizes)
    above = sum(part >= LEAST_SHARE for part in shares) / len(shares)
    tokens = statistics.fmean(sum(request.sizes) for request in requests)
    print(
        f"{name:<7} {len(requests)} requests of {tokens:,.0f} tokens; repeated beginning: {every:.1%} of all bytes, "
        f"median {statistics.median(shares):.1%}, lowest {min(shares):.1%}; {above:.0%} of requests have 80 % or more"
    )
    return every


async def main():
    """Measure both layouts and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--model", default="gpt-6.1-terra")
    options = parser.parse_args()
    price = price_of(KNOWN_PRICES, options.model)
    if price is None:
        sys.exit(f"no price is known of {options.model}")
    said, script = talk(options.turns)
    with tempfile.TemporaryDirectory() as folder:
        new, old = [await record(agent, said, Path(folder)) for agent in make_agents(script)]
    every = tell_shares("now", new)
    tell_shares("0.2.2", old)
    worst = 0.0
    print(f"input of the talk, {options.model}, prices of {KNOWN_ON}:")
    for kind in ("strict", "kept", "any"):
        ours, theirs = cost(new, price, kind), cost(old, price, kind)
        worst = max(worst, ours / theirs)
        print(f"  {kind:<7} now ${ours:.4f}   0.2.2 ${theirs:.4f}   {ours / theirs:.0%}")
    return int(worst > MOST_COST or every < LEAST_SHARE)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
