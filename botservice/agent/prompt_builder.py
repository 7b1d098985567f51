"""Building a prompt: the agent's words, notes, the window, the person, what was found, the question, the steps.

A server charges a fraction for the beginning of a prompt that it has read before. So what changes from turn to turn
comes late, and nothing of it stands before the window, which begins and ends as it did the last time.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from botservice.agent.knowledge_base import QuotedPassage, describe_passages, fill
from botservice.agent.prompt import Prompt
from botservice.agent.prompt_fitting import Pieces, fit
from botservice.conversation.agent_memory import RenderedStep, start_of_work
from botservice.conversation.chat_messages import without_pictures
from botservice.conversation.context import AgentContext
from botservice.conversation.prompt_exclusions import NOTHING_KEPT_OUT, KeptOut, PromptBounds
from botservice.conversation.readable_values import image_url
from botservice.conversation.refusal_queries import find_known, read_kept_out
from botservice.conversation.steps import TaskStep
from botservice.conversation.tool_calls import describe_waiting
from botservice.core.messages import Author, Message, Role
from botservice.history.chat_history import Recall
from botservice.history.documents import question_of
from botservice.history.message_rendering import (
    as_is,
    as_said,
    as_said_by_namesake,
    as_said_in_group,
    authors_of,
    describe_found,
    is_image,
    mark_of,
    records_of,
    room_for_found,
)
from botservice.history.note_queries import read_notes
from botservice.history.notes import StoredNote, describe_notes
from botservice.history.same_names import shared_names
from botservice.history.search_values import SearchHit
from botservice.llm.chat import ChatMessage
from botservice.llm.tokens import TokenCounter, counter_for
from botservice.people.fact_queries import visible_facts
from botservice.people.facts import Fact, describe_person
from botservice.people.names import is_guest
from botservice.storage.database import Connection

if TYPE_CHECKING:
    from botservice.agent.functions_based_agent import FunctionsBasedAgent

_MOST_PASSAGES = 8
_UNLIMITED = 1_000_000_000  # tokens
_UNASKED = (
    "[Nobody has addressed you: you speak up because you may have something to add. Answer in a sentence or two. If "
    "you have nothing certain to add, answer with the one word NOTHING, and nobody sees it.]"
)

_Known = tuple[list[StoredNote], list[Fact], str, KeptOut]  # notes, facts, which calls wait, what the model refuses


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """Makes prompts of one agent within bounds. It reads what is stored and changes nothing."""

    agent: "FunctionsBasedAgent"
    bounds: PromptBounds

    async def build(self, context: AgentContext) -> Prompt:
        """Return the prompt for what a context holds now."""
        model = self.agent.llm.model or None
        counter = counter_for(model)
        recall = await self._recall(context, model, counter)
        kept: KeptOut = recall.also_read[-1]
        passages = await self._find_passages(context, context.chat_history.last_user_message, counter)
        pieces = self._gather(context, recall, passages, counter)
        left_out = self._fit(context, pieces, kept, counter)
        prompt = _assemble(pieces, has_step_pictures=not kept.step_pictures)
        prompt.facts = {"max_tokens": self._max_tokens, "found": _scores(pieces.found), "left_out": left_out}
        prompt.holds_others = any(hit.holds_others(context.asker) for hit in pieces.found)
        if pieces.found:
            prompt.facts["coverage"] = round(max(hit.coverage for hit in pieces.found), 2)
            prompt.facts["by_meaning"] = any(hit.by_meaning for hit in pieces.found)
        if "documents" in pieces.texts:
            prompt.holds_others = True
            prompt.facts["documents"] = [[each.id, each.place, each.score] for each in passages]
        prompt.model, prompt.conversation = model, (context.id, context.context_keys)
        prompt.kept_out = kept
        return prompt

    @property
    def _max_tokens(self) -> int:
        return self.agent.max_prompt_tokens if self.bounds.max_tokens is None else self.bounds.max_tokens

    def _gather(
        self, context: AgentContext, recall: Recall, passages: Sequence[QuotedPassage], counter: TokenCounter
    ) -> Pieces:
        """Return everything that a prompt may show, without what the model refuses."""
        question, parts = context.chat_history.last_user_message, context.question_parts
        kept: KeptOut = recall.also_read[-1]
        shared = _shared_names(recall, question)
        shared_found = _shared_names(recall, question, authors_of(recall.found)) if recall.found else shared
        notes, person, waiting = self._describe_known(question, recall.also_read, shared_found, counter)
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
        texts = {
            "system": context.system_prompt_for(self.agent.prompt, self.agent.skills.prompt),
            "notes": notes,
            "person": person,
            "waiting": "\n\n".join(part for part in (waiting, _UNASKED if context.is_unasked else "") if part),
            "looking_at": _describe_view(context.looking_at),
            "documents": describe_passages(passages),
        }
        return Pieces(
            texts={name: text for name, text in texts.items() if text},
            found=found,
            window=window,
            is_group=recall.is_group or bool(shared),
            shared=shared,
            shared_found=shared_found,
            question=question,
        )

    def _fit(self, context: AgentContext, pieces: Pieces, kept: KeptOut, counter: TokenCounter) -> dict[str, Any]:
        """Add the steps to pieces, leave out of both what does not fit, and return how much of each was left out."""
        memory, keys = context.memory, self.agent.memory_keys
        start = start_of_work(memory, context.task)
        is_task = start > 0 and isinstance(memory.steps[start - 1], TaskStep)
        left_out, is_complete = fit(
            pieces,
            self._max_tokens,
            counter,
            steps=memory.newest_rendered(start, len(memory.steps), keys),
            earlier=memory.newest_rendered(0, 0 if kept.is_question_alone else start - is_task, keys),
        )
        if not is_complete:
            left_out["steps"] = max(1, len(context.completed_steps) - len(pieces.steps))
        return left_out

    async def _find_passages(
        self, context: AgentContext, question: Message | None, counter: TokenCounter
    ) -> list[QuotedPassage]:
        """Return the passages of documents that may answer a question, as many as fit."""
        agent = self.agent
        if agent.knowledge is None or question is None or not agent.knowledge_tokens:
            return []
        asked = question_of(question)
        found = await agent.knowledge.find(asked, context, k=_MOST_PASSAGES) if asked else []
        return fill(found, agent.knowledge_tokens, counter)

    async def _recall(self, context: AgentContext, model: str | None, counter: TokenCounter) -> Recall:
        """Return the window, what was found for the last message of a person, and what is known next to it."""
        agent = self.agent
        return await context.chat_history.recall(
            agent.message_selector,
            search_k=0 if agent.search_tokens == 0 else agent.search_k,
            model=model,
            room=room_for_found(_UNLIMITED if agent.search_tokens is None else agent.search_tokens, counter),
            also_read=partial(self._read_known, context=context, model=model or "", now=context.storage.now()),
        )

    def _read_known(self, connection: Connection, context: AgentContext, model: str, now: datetime) -> _Known:
        """Return the notes, what may be told of the person who asks, which calls wait, and what is kept out."""
        question = context.chat_history.last_user_message
        author = None if question is None else question.author
        known = find_known(connection, context.id, author, model, now)
        noted = read_notes(connection, context.id, is_shown=True) if known.notes and self.agent.notes_tokens else []
        is_told = known.facts and not is_guest(context.context_keys)
        facts = visible_facts(connection, context.id, author, with_ended=True) if is_told else []
        waiting = describe_waiting(connection, context.id, context.turn_id, now) if context.has_open_calls else ""
        kept = self.bounds.kept_out
        if kept is None:
            kept = read_kept_out(connection, context.id, model, now) if known.kept_out else NOTHING_KEPT_OUT
        return noted, facts, waiting, kept

    def _fit_again(
        self, found: list[SearchHit], question: Message | None, counter: TokenCounter, shared: frozenset[str]
    ) -> list[SearchHit]:
        """Return what was found that fits with the marks of namesakes."""
        if not shared or self.agent.search_tokens is None:
            return found
        asked = "" if question is None else question_of(question)
        return room_for_found(self.agent.search_tokens, counter, shared).fill(found, asked)

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
        return describe_notes(noted, self.agent.notes_tokens, count) if noted else "", person, waiting


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


def _assemble(pieces: Pieces, *, has_step_pictures: bool = True) -> Prompt:
    of_steps = _messages if has_step_pictures else _messages_without_pictures
    question = [] if pieces.question is None else [pieces.question]
    show = partial(_said, is_group=pieces.is_group, shared=pieces.shared)
    prompt = Prompt()

    def add_texts(*names: str) -> None:
        # Records are in the user's role: the templates of many models refuse a system message that is not the first.
        for name in names:
            if text := pieces.texts.get(name):
                role = "system" if name == "system" else "user"
                prompt.add_section(name, [{"role": role, "content": text}], is_kept=name != "looking_at")

    add_texts("system", "notes")
    prompt.add_section("window", map(show, pieces.window), sources=pieces.window)
    prompt.add_section("earlier", of_steps(pieces.earlier), is_copied=True)
    add_texts("person", "waiting", "looking_at", "documents")
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
