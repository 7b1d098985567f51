"""A chat observed while it goes on, and the same chat searched only: what the prompts of both hold.

Each chat is stored twice, by two people. The one that is searched only gets as many tokens as the one that is observed:
more found messages, and a longer window where searching finds no more.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from memory_quality.chats import Asked, Chat, Said
from memory_quality.observers import Annotated, bad, good, lying
from memory_quality.reader import Verdict, judge, memory_tokens

from botservice import (
    AgentContext,
    Author,
    FunctionsBasedAgent,
    Observer,
    ScriptedChatLLM,
    SteadyWindowMessageSelector,
    Storage,
    TokenWindowMessageSelector,
)
from botservice.agent.prompt import Prompt
from botservice.core.messages import Message
from botservice.llm.tokens import counter_for
from botservice.people.queries import ensure_identity, note_audience

_UNREAD, _UNREAD_IF_QUIET, _QUIET = 1500, 300, timedelta(minutes=10)
_ROUNDING = 90  # tokens: windows consist of whole messages, and searching alone is to have rather more than less
_MANY = 500  # more than there is to be found: tokens alone limit it


@dataclass(frozen=True, slots=True)
class Row:
    """A question with what came of it: searched only, and observed."""

    chat: str
    kind: str
    text: str
    verdicts: tuple[Verdict, Verdict]
    tokens: tuple[int, int]


@dataclass(slots=True)
class Cost:
    """What observing took."""

    said_tokens: int = 0
    calls: int = 0
    dropped: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many tokens each part of a prompt may take."""

    window: int
    found: int
    notes: int


class Telling:
    """Stores a chat as it went, and has it observed as it goes."""

    def __init__(self, storage: Storage, chat: Chat, name: str) -> None:
        """Begin with nothing said; name tells one telling of a chat from another."""
        self._storage, self._chat, self._name = storage, chat, name

    async def tell(self, observer: Observer | None, cost: Cost) -> AgentContext:
        """Return the chat with all that was said."""
        context = await AgentContext.get_or_create(self._storage, {"chat": f"{self._chat.id}-{self._name}"})
        unread, said = 0, self._chat.said
        for place, each in enumerate(said):
            await self.say(context, each)
            tokens = counter_for().count(each.text)
            unread += tokens
            cost.said_tokens += tokens
            until = said[place + 1].at if place + 1 < len(said) else self._chat.asked_at
            is_due = unread >= _UNREAD or (unread >= _UNREAD_IF_QUIET and until - each.at > _QUIET)
            if observer is not None and is_due:
                unread = 0
                for seen in await observer.observe(context):
                    cost.calls += 1
                    for why, count in seen.dropped.items():
                        cost.dropped[why] = cost.dropped.get(why, 0) + count
        return context

    async def say(self, context: AgentContext, said: Said) -> Message:
        """Store a message, and who is there."""
        if said.who is None:
            return await context.chat_history.append_assistant_message(said.text, created_at=said.at)
        author = Author("messenger", f"{self._chat.id}-{self._name}-{said.who}", said.who)

        def note(connection):
            identity = ensure_identity(connection, author, said.at)
            note_audience(connection, context.id, [(author, identity)], is_private=not self._chat.is_group)

        await self._storage.write(note)
        return await context.chat_history.append_user_message(said.text, author=author, created_at=said.at)


async def ask(telling: Telling, context: AgentContext, agent: FunctionsBasedAgent, asked: Said) -> Prompt:
    """Return the prompt that a question gets, which is not kept."""
    question = await telling.say(context, asked)
    prompt = await agent.build_prompt(context)
    await context.chat_history.delete_messages([question.id])
    return prompt


def _agent(selector, *, found: int, notes: int, k: int | None = None) -> FunctionsBasedAgent:
    return FunctionsBasedAgent(
        llm=ScriptedChatLLM([]), message_selector=selector, search_k=k, search_tokens=found, notes_tokens=notes
    )


def _shown_tokens(prompt: Prompt) -> int:
    first, end = prompt.sections().get("window", (0, 0))
    window = sum(counter_for().count(str(message["content"])) for message in prompt[first:end])
    return window + sum(memory_tokens(prompt, counter_for()).values())


async def compare(storage: Storage, chat: Chat, observer: Observer, sizes: Sizes, cost: Cost) -> list[Row]:
    """Return what a chat's questions get, searched only and observed."""
    observed, alone = Telling(storage, chat, "observed"), Telling(storage, chat, "alone")
    with_notes, without = await observed.tell(observer, cost), await alone.tell(None, Cost())
    rows = []
    for question in chat.questions:
        asked = Said(chat.asked_at, chat.speaker, question.text)
        agent = _agent(SteadyWindowMessageSelector(sizes.window), found=sizes.found, notes=sizes.notes)
        first = await ask(observed, with_notes, agent, asked)
        second = await _with_as_many(alone, without, asked, first)
        verdicts = judge(second, question), judge(first, question)
        rows.append(_row(chat, question, verdicts, (_shown_tokens(second), _shown_tokens(first))))
    return rows


async def _with_as_many(telling: Telling, context: AgentContext, asked: Said, model: Prompt) -> Prompt:
    """Return the prompt of searching alone with as many tokens as another; the window gets what is left of them."""
    memory = sum(memory_tokens(model, counter_for()).values())
    window = _shown_tokens(model) - memory
    agent = _agent(TokenWindowMessageSelector(window), found=memory, notes=0, k=_MANY)
    found = memory_tokens(await ask(telling, context, agent, asked), counter_for())["found"]
    selector = TokenWindowMessageSelector(window + memory - found + _ROUNDING)
    return await ask(telling, context, _agent(selector, found=memory, notes=0, k=_MANY), asked)


def _row(chat: Chat, asked: Asked, verdicts: tuple[Verdict, Verdict], tokens: tuple[int, int]) -> Row:
    return Row(chat.id, asked.kind, asked.text, verdicts, tokens)


async def measure(storage: Storage, chats: Sequence[Chat], kind: str, sizes: Sizes) -> tuple[list[Row], Cost]:
    """Return what all questions get with one kind of observer, and what observing took."""
    annotated, cost, chance = Annotated(counter_for()), Cost(), random.Random(kind)
    makes = {"good": lambda: good(annotated), "bad": lambda: bad(annotated, chance)}
    llm = makes.get(kind, lambda: lying(annotated, chance))()
    observer = Observer(storage, llm, window_tokens=sizes.window, notes_tokens=sizes.notes)
    rows = []
    for chat in chats:
        annotated.read(chat)
        rows += await compare(storage, chat, observer, sizes, cost)
    return rows, cost
