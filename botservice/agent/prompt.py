"""Building a prompt: the agent's words, notes, the window, the person, what was found, the question, the steps.

A server charges a fraction for the beginning of a prompt that it has read before. So what changes from turn to turn
comes late, and nothing of it stands before the window, which begins and ends as it did the last time.
"""

import hashlib
import itertools
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar

from botservice.agent.fitting import Pieces, Scales, count_left_out, fit
from botservice.agent.knowledge_base import KNOWLEDGE_TOKENS, KnowledgeBase, QuotedPassage, describe_passages, fill
from botservice.conversation.agent_memory import RenderedStep, start_of_work
from botservice.conversation.chat_messages import without_pictures
from botservice.conversation.context import AgentContext
from botservice.conversation.kept_out import NOTHING_KEPT_OUT, KeptOut
from botservice.conversation.queries import find_known, read_kept_out
from botservice.conversation.readable import image_url
from botservice.conversation.steps import TaskStep
from botservice.conversation.tool_calls import describe_waiting
from botservice.core.messages import Author, Message, Role
from botservice.history.chat_history import Recall
from botservice.history.documents import question_of
from botservice.history.namesakes import shared_names
from botservice.history.note_queries import read_notes
from botservice.history.notes import StoredNote, describe_notes
from botservice.history.search_values import SearchHit
from botservice.history.shown import (
    Source,
    as_is,
    as_said,
    as_said_by_namesake,
    as_said_in_group,
    authors_of,
    count_again,
    describe_found,
    found_sizes,
    is_image,
    mark_of,
    mention,
    records_of,
    room_for_found,
)
from botservice.history.window import MessageSelector
from botservice.llm.chat import CachedPrompt, ChatMessage, SaidMessage, ToolSchema
from botservice.llm.tokens import TokenCounter, counter_for
from botservice.people.fact_queries import visible_facts
from botservice.people.facts import Fact, describe_person
from botservice.people.names import is_guest
from botservice.storage.database import Connection

_TOKENS_AROUND_A_MESSAGE = 4
_MARGIN_PERCENT = 110  # servers put words of their own around messages and tools, and encodings differ a little
_IMAGE_TOKENS_TEXT = "i " * 800  # an image counts like so many words, whatever the bytes are
_MOST_PASSAGES = 8
_UNLIMITED = 1_000_000_000  # tokens
_NOT_KEPT = "[what the person had open: not kept]"

T = TypeVar("T")
_Known = tuple[list[StoredNote], list[Fact], str, KeptOut]  # notes, facts, which calls wait, what the model refuses


class Prompt(CachedPrompt):
    """The chat-completions messages of a prompt, and their sources.

    A subclass that overrides `build_prompt` may change the list: the sources follow its messages.

    Attributes:
        model: The name of the model that it is built for, if known.
        conversation: The id and the keys of its context, if there is one.
        kept_out: The parts of the conversation that are left out because the model refuses them.
        holds_others: Whether its search results may contain words of people other than the assistant and the asker.
        facts: How it was built, as JSON values without anybody's words, for the inspector.
    """

    model: str | None = None
    conversation: tuple[int, Mapping[str, str]] | None = None
    kept_out: KeptOut = NOTHING_KEPT_OUT

    def __init__(self, messages: Iterable[ChatMessage] = ()) -> None:
        super().__init__(messages)
        self.facts: dict[str, Any] = {}
        self.holds_others = False
        self._built: list[ChatMessage] = list(self)
        self._sections: list[tuple[str, int]] = []
        self._sources: dict[int, Source] = {}
        self._origins: dict[int, ChatMessage] = {}
        self._passing: list[ChatMessage] = []

    def add_section(
        self,
        name: str,
        messages: Iterable[ChatMessage],
        *,
        sources: Iterable[Source] = (),
        is_copied: bool = False,
        is_kept: bool = True,
    ) -> None:
        """Append messages as a section.

        Args:
            name: system, notes, window, earlier (steps of prompts before this one), person, waiting, looking_at,
                documents, found, question or steps.
            sources: The messages of the history that they show.
            is_copied: Append copies and remember their originals: the next prompt uses the same objects again, and
                changes to this prompt must not reach them.
            is_kept: Whether the record of the prompt may contain them.
        """
        first = len(self)
        given = list(messages)
        if not given:
            return
        self.extend(map(_copied, given) if is_copied else given)
        self._built.extend(self[first:])
        self._sections.append((name, first))
        self._sources.update(enumerate(sources, first))
        if is_copied:
            self._origins.update(enumerate(given, first))
        if not is_kept:
            self._passing.extend(self[first:])

    @cached_property
    def cache_key(self) -> str | None:
        """A key that all prompts of one conversation share and that reveals nothing; None without a conversation.

        Servers search their prompt cache among prompts with the same key.
        """
        return None if self.conversation is None else _cache_key(*self.conversation)

    def kept(self) -> list[ChatMessage]:
        """Build the version that may be recorded: parts that end with the turn are named and left out."""
        if not self._passing:
            return self
        passing = {id(message) for message in self._passing}
        return [{**each, "content": _NOT_KEPT} if id(each) in passing else each for each in self]

    def sections(self) -> dict[str, tuple[int, int]]:
        """Map each section to the index of its first message and the index after its last."""
        ranges = itertools.pairwise([*self._sections, ("", len(self._built))])
        built = {name: (first, end) for (name, first), (_, end) in ranges}
        places = self._places()
        if places is None:
            return built
        moved = {
            name: [place for place in places[first:end] if place is not None] for name, (first, end) in built.items()
        }
        return {name: (min(now), max(now) + 1) for name, now in moved.items() if now}

    @property
    def breakpoints(self) -> list[int]:
        """The indexes of the messages after which a server should cache the prompt: at most three, in order.

        They are the end of the instructions, the last message of a person in the window, and where it is found again:
        the one that was the last in the prompt before this. That is the question, once there are steps.
        """
        sections = self.sections()
        instructions = sections.get("notes") or sections.get("system")
        window = range(*sections.get("window", (0, 0)))
        before, last = _last_of_people([str(self[place]["role"]) for place in window])
        found = [None if place is None else window[place] for place in (before, last)]
        question = sections.get("question")
        if question is not None and len(self) > question[1]:
            found = [found[1], question[1] - 1]
        return [place for place in (instructions and instructions[1] - 1, *found) if place is not None]

    def shows_step_pictures(self) -> bool:
        """Check whether it contains pictures from tools."""
        ranges = [range(*place) for name, place in self.sections().items() if name in ("earlier", "steps")]
        contents = (self[place].get("content") for places in ranges for place in places)
        parts = (part for content in contents if isinstance(content, list) for part in content)
        return any(part.get("type") == "image_url" for part in parts)

    def sources(self) -> dict[int, Source]:
        """Map indexes of messages to the parts of the history that they show."""
        return self._moved(self._sources)

    def origins(self) -> dict[int, ChatMessage]:
        """Map indexes of messages to their originals."""
        return self._moved(self._origins)

    def _places(self) -> list[int | None] | None:
        """Return where each message that it was built of stands now; None if nothing has moved."""
        if len(self) == len(self._built) and all(map(operator.is_, self, self._built)):
            return None
        by_identity = {id(message): place for place, message in enumerate(self)}
        return [by_identity.get(id(message)) for message in self._built]

    def _moved(self, by_place: dict[int, T]) -> dict[int, T]:
        places = self._places()
        if places is None:
            return by_place
        return {new: value for old, value in by_place.items() if (new := places[old]) is not None}


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """Makes prompts of one agent. It reads what is stored and changes nothing."""

    system_prompt: str
    skills: str
    selector: MessageSelector
    search_k: int
    search_tokens: int | None
    memory_keys: tuple[str, ...]
    model: str | None
    max_tokens: int
    notes_tokens: int = 0
    kept_out: KeptOut | None = None  # None for what is stored
    knowledge: KnowledgeBase | None = None
    knowledge_tokens: int = KNOWLEDGE_TOKENS

    async def build(self, context: AgentContext) -> Prompt:
        """Return the prompt for what a context holds now, at most max_tokens long."""
        counter = counter_for(self.model)
        recall = await self._recall(context, counter)
        memory, keys = context.memory, self.memory_keys
        question = context.chat_history.last_user_message
        shared = _shared_names(recall, question)
        shared_found = _shared_names(recall, question, authors_of(recall.found))
        notes, person, waiting = self._describe_known(question, recall.beside, shared_found, counter)
        kept: KeptOut = recall.beside[-1]
        passages = await self._find_passages(context, question, counter)
        start, parts = start_of_work(memory, context.task), context.question_parts
        window = [*_without(recall.window, parts), *parts] if parts else recall.window  # a selector leaves none out
        found = self._fit_again(recall.found, question, counter, shared_found)
        if kept is not NOTHING_KEPT_OUT:
            window = [kept.shown(each) for each in window if each in parts or kept.shows(each)]
            found = [hit for hit in found if kept.shows(hit.message)]
            question = question and kept.shown(question)
            notes = "" if kept.is_question_alone else notes
        if parts:
            ids = {each.id for each in parts}
            found = [hit for hit in found if hit.message.id not in ids]
        is_task = start > 0 and isinstance(memory.steps[start - 1], TaskStep)
        pieces = Pieces(
            system=context.system_prompt_for(self.system_prompt, self.skills),
            notes=notes,
            person=person,
            waiting=waiting,
            looking_at=_describe_view(context.looking_at),
            documents=describe_passages(passages),
            found=found,
            window=window,
            is_group=recall.is_group or bool(shared),
            shared=shared,
            shared_found=shared_found,
            question=question,
        )
        is_complete = fit(
            pieces,
            self.max_tokens,
            _scales(counter, shared, shared_found),
            steps=memory.newest_rendered(start, len(memory.steps), keys),
            earlier=memory.newest_rendered(0, 0 if kept.is_question_alone else start - is_task, keys),
        )
        prompt = _assemble(pieces, has_step_pictures=not kept.step_pictures)
        left_out = count_left_out(
            pieces,
            window=len(window),
            found=len(found),
            is_known=(bool(person), bool(notes)),
            steps=0 if is_complete else len(context.completed_steps),
        )
        prompt.facts = {"max_tokens": self.max_tokens, "found": _scores(pieces.found), "left_out": left_out}
        prompt.holds_others = any(hit.holds_others(context.asker) for hit in pieces.found)
        if pieces.found:
            prompt.facts["coverage"] = round(max(hit.coverage for hit in pieces.found), 2)
            prompt.facts["by_meaning"] = any(hit.by_meaning for hit in pieces.found)
        if pieces.documents:
            prompt.holds_others = True
            prompt.facts["documents"] = [[each.id, each.place, each.score] for each in passages]
        prompt.model, prompt.conversation = self.model, (context.id, context.context_keys)
        prompt.kept_out = kept
        return prompt

    async def _find_passages(
        self, context: AgentContext, question: Message | None, counter: TokenCounter
    ) -> list[QuotedPassage]:
        """Return the passages of documents that may answer a question, as many as fit."""
        if self.knowledge is None or question is None or not self.knowledge_tokens:
            return []
        asked = question_of(question)
        found = await self.knowledge.find(asked, context, k=_MOST_PASSAGES) if asked else []
        return fill(found, self.knowledge_tokens, counter)

    async def _recall(self, context: AgentContext, counter: TokenCounter) -> Recall:
        """Return the window, what was found for the last message of a person, and what is known next to it."""
        return await context.chat_history.recall(
            self.selector,
            search_k=self.search_k,
            model=self.model,
            room=room_for_found(_UNLIMITED if self.search_tokens is None else self.search_tokens, counter),
            beside=partial(self._read_known, context=context, now=context.storage.now()),
        )

    def _read_known(self, connection: Connection, context: AgentContext, now: datetime) -> _Known:
        """Return the notes, what may be told of the person who asks, which calls wait, and what is kept out."""
        question = context.chat_history.last_user_message
        author, model = None if question is None else question.author, self.model or ""
        known = find_known(connection, context.id, author, model, now)
        noted = read_notes(connection, context.id, is_shown=True) if known.notes and self.notes_tokens else []
        is_told = known.facts and not is_guest(context.context_keys)
        facts = visible_facts(connection, context.id, author, with_ended=True) if is_told else []
        waiting = describe_waiting(connection, context.id, context.turn_id, now) if context.has_open_calls else ""
        kept = self.kept_out
        if kept is None:
            kept = read_kept_out(connection, context.id, model, now) if known.kept_out else NOTHING_KEPT_OUT
        return noted, facts, waiting, kept

    def _fit_again(
        self, found: list[SearchHit], question: Message | None, counter: TokenCounter, shared: frozenset[str]
    ) -> list[SearchHit]:
        """Return what was found that fits with the marks of namesakes."""
        if not shared or self.search_tokens is None:
            return found
        asked = "" if question is None else question_of(question)
        return room_for_found(self.search_tokens, counter, shared).fill(found, asked)

    def _describe_known(
        self, question: Message | None, known: _Known, shared: frozenset[str], counter: TokenCounter
    ) -> tuple[str, str, str]:
        """Return what a prompt says of the notes, the person who asks, and the calls that wait; nothing of none."""
        (noted, facts, waiting, _), count = known, counter.count
        if facts and question is not None:
            author = question.author or Author()
            mark = mark_of(author, shared)
            person = describe_person(facts, author.name, question.full_text, count, mark=mark)
        else:
            person = ""
        return describe_notes(noted, self.notes_tokens, count) if noted else "", person, waiting


def _without(window: Iterable[Message], parts: Iterable[Message]) -> list[Message]:
    ids = {each.id for each in parts}
    return [each for each in window if each.id not in ids]


def _scores(found: Iterable[SearchHit]) -> list[list[Any]]:
    return [[hit.message.id, round(hit.score, 4)] for hit in found]


def _shared_names(recall: Recall, question: Message | None, more: Iterable[Author | None] = ()) -> frozenset[str]:
    """Return the names that several of the people have who have lately spoken, or whom a window shows, and of more."""
    asker = None if question is None else question.author
    people = {*recall.people, *[each.author for each in recall.window], asker, *more} - {None}
    return shared_names(people) if len(people) > 1 else frozenset()


def estimate_tokens(messages: Iterable[ChatMessage]) -> int:
    """Return roughly how many tokens messages take."""
    return sum(len(json.dumps(_without_images(message), ensure_ascii=False)) for message in messages) // 3


def count_tokens(messages: Sequence[ChatMessage], tools: Sequence[ToolSchema], model: str | None) -> int:
    """Return how many tokens a prompt takes, rather too many than too few; images at a flat rate. It may block."""
    counter = counter_for(model)
    offered = counter.count(json.dumps(list(tools), ensure_ascii=False)) if tools else 0
    counted = _size(messages, counter) + len(messages) * _TOKENS_AROUND_A_MESSAGE + offered
    return -(-counted * _MARGIN_PERCENT // 100)


def _cache_key(context_id: int, context_keys: Mapping[str, str]) -> str:
    """Return what prompts of a context have in common, without telling whose they are."""
    known = json.dumps([context_id, *sorted(context_keys.items())])
    return hashlib.blake2b(known.encode(), digest_size=16, person=b"prompt caches").hexdigest()


def _scales(counter: TokenCounter, shared: frozenset[str], shared_found: frozenset[str]) -> Scales:
    count_messages = partial(_size, counter=counter)
    return Scales(
        system=lambda text: _system_size(text, counter),  # type: ignore[arg-type]  # as in count_again,
        text=lambda text: counter.count(text) + _TOKENS_AROUND_A_MESSAGE,
        message=partial(_message_size, counter=counter, shared=shared | shared_found),
        found=partial(found_sizes, counter=counter, shared=shared_found),
        step=lambda step: step.size(counter.name, count_messages),
    )


@lru_cache(maxsize=64)
def _system_size(text: str, counter: TokenCounter) -> int:
    return counter.count(text) + _TOKENS_AROUND_A_MESSAGE


def _size(messages: Sequence[ChatMessage], counter: TokenCounter) -> int:
    return sum(counter.count(json.dumps(_without_images(message), ensure_ascii=False)) for message in messages)


def _without_images(message: ChatMessage) -> ChatMessage:
    if not isinstance(message.get("content"), list | tuple):
        return message
    parts = [_IMAGE_TOKENS_TEXT if part.get("type") == "image_url" else part for part in message["content"]]
    return {**message, "content": parts}


def _message_size(message: Message, counter: TokenCounter, shared: frozenset[str]) -> int:
    said = message.full_text
    size = counter.count(said) if message.token_count is None else message.token_count
    size += _TOKENS_AROUND_A_MESSAGE + said.count("\n")  # of a group's messages, further lines are moved to the right
    if message.author and message.author.name:
        size += count_again(f"{message.author.name}{mark_of(message.author, shared)}: ", counter)
    for each in message.attachments:
        size += counter.count(_IMAGE_TOKENS_TEXT if is_image(each) else mention(each))
    return size


def _assemble(pieces: Pieces, *, has_step_pictures: bool = True) -> Prompt:
    of_steps = _messages if has_step_pictures else _messages_without_pictures
    question = [] if pieces.question is None else [pieces.question]
    show = partial(_said, is_group=pieces.is_group, shared=pieces.shared)
    prompt = Prompt()
    if pieces.system:
        prompt.add_section("system", [{"role": "system", "content": pieces.system}])
    if pieces.notes:
        prompt.add_section("notes", [{"role": "user", "content": pieces.notes}])
    prompt.add_section("window", map(show, pieces.window), sources=pieces.window)
    prompt.add_section("earlier", of_steps(pieces.earlier), is_copied=True)
    # Records are given in the user's role: the templates of many models refuse a system message that is not the first.
    if pieces.person:
        prompt.add_section("person", [{"role": "user", "content": pieces.person}])
    if pieces.waiting:
        prompt.add_section("waiting", [{"role": "user", "content": pieces.waiting}])
    if pieces.looking_at:
        prompt.add_section("looking_at", [{"role": "user", "content": pieces.looking_at}], is_kept=False)
    if pieces.documents:
        prompt.add_section("documents", [{"role": "user", "content": pieces.documents}])
    if pieces.found and pieces.question is not None:
        records = records_of(pieces.found, pieces.shared_found)
        is_weak = all(hit.is_weak for hit in pieces.found)
        told = describe_found(records, pieces.question.created_at, pieces.window, is_weak=is_weak)
        prompt.add_section("found", [{"role": "user", "content": told}], sources=[records])
    show = partial(_said, is_group=pieces.is_group or bool(pieces.shared_found), shared=pieces.shared_found)
    prompt.add_section("question", map(show, question), sources=question)
    prompt.add_section("steps", of_steps(pieces.steps), is_copied=True)
    return prompt


def _describe_view(looking_at: str | None) -> str:
    if not looking_at:
        return ""
    return f"[What the person has open while they ask: {looking_at}. It is a place; you have read nothing of it.]"


def _messages(steps: Iterable[RenderedStep]) -> Iterable[ChatMessage]:
    return itertools.chain.from_iterable(step.messages for step in steps)


def _messages_without_pictures(steps: Iterable[RenderedStep]) -> Iterable[ChatMessage]:
    return without_pictures(_messages(steps))


def _said(message: Message, *, is_group: bool, shared: frozenset[str]) -> dict[str, Any]:
    if message.role is not Role.USER:
        return {"role": str(message.role), "content": as_is(message)}
    in_group = as_said_by_namesake if mark_of(message.author, shared) else as_said_in_group
    text = in_group(message) if is_group else as_said(message)
    images = [image_url(each) for each in message.attachments if is_image(each)]
    if not images:
        return {"role": "user", "content": text}
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in images]
    return {"role": "user", "content": [{"type": "text", "text": text}, *shown] if text else shown}


def _copied(message: ChatMessage) -> ChatMessage:
    return message.copy() if isinstance(message, SaidMessage) else dict(message)


def _last_of_people(roles: Sequence[str]) -> tuple[int | None, int | None]:
    """Return the place of a person's last message at the turn before and now, in a window of these roles.

    The turn before ended with the assistant's last message, which answered the person's last one before that; its
    window ended before that one.
    """
    people = [place for place, role in enumerate(roles) if role == "user"]
    answers = [place for place, role in enumerate(roles) if role == "assistant"]
    asked = [place for place in people if answers and place < answers[-1]]
    return asked[-2] if len(asked) > 1 else None, people[-1] if people else None
