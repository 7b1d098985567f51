"""/why: what the last answer was made of, or why there is none. Only what was said, done and known in this chat."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from botservice.commands.command import Command
from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.step_records import read_steps
from botservice.conversation.steps import ActionStep, FailedStep, TaskStep
from botservice.conversation.sub_runs import sub_runs
from botservice.conversation.tool_calls import NOT_ALLOWED, state_of_unmade
from botservice.core.errors import LLMFailure
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Author, Moment, TokenUsage
from botservice.core.personas import persona_in
from botservice.core.policies import NANO
from botservice.core.quoting import found_records, shortened
from botservice.core.states import Outcome
from botservice.history.excerpts import LEFT_OUT
from botservice.people.access_values import AccessRole
from botservice.storage.database import Connection
from botservice.texts.formatted import below, bulleted, line, words
from botservice.turns.agent_loop import FAILURE_KIND
from botservice.turns.commands import CommandAnswer, CommandRequest
from botservice.turns.earlier_turns import TurnAttempt, find_last_attempt

_MOST: Final = 6  # entries of one kind: it is read in a chat
_LONGEST: Final = 160  # characters of one entry
_LONGEST_EXCERPT: Final = 400  # characters of the passages of a long message
_LONGEST_QUESTION: Final = 80
_RECORD: Final = re.compile(r"^(?=\[\d{4}-\d\d-\d\d \d\d:\d\d UTC\] )", re.MULTILINE)
_UTC: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_NOTE: Final = re.compile(r"^\[\d{4}-\d\d-\d\d\] ", re.MULTILINE)
_FACT: Final = re.compile(r"^\[#\d+, (\d{4}-\d\d-\d\d(?: to \d{4}-\d\d-\d\d)?)\] (.+)$", re.MULTILINE)


@dataclass(slots=True)
class Sources:
    """What an answer was made of.

    Attributes:
        window: How many of the chat's newest messages the model was shown.
        found: What searching gave, each with its date and its author; of a long message the passages that were shown.
        coverage: How much of what was asked for the best of it has, from 0 to 1, where that is known.
        documents: The passages of documents, with their scores from 0 to 1.
        by_meaning: Whether it was found by meaning, besides words, where that is known.
        withheld: The tools that were not offered because of a role, with the roles that they want.
        unasked_by: The model that decided to answer although nobody asked.
        taken: What each of these calls took, with the model that answered.
    """

    window: int = 0
    notes: int = 0
    persona: str | None = None
    found: list[str] = field(default_factory=list)
    coverage: float | None = None
    by_meaning: bool | None = None
    documents: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    tools: list[tuple[str, str | None]] = field(default_factory=list)
    withheld: dict[str, str] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)
    calls: int = 0
    taken: list[tuple[str, TokenUsage]] = field(default_factory=list)
    task: str = ""
    unasked_by: str | None = None
    failed: list[FailedStep] = field(default_factory=list)


Say = Callable[..., FormattedText]
"""Returns the text of a key, with values in it, in the language of the person who asks."""


def read_sources(steps: Sequence[MemoryItem]) -> Sources:
    """Read the sources of an answer from its steps."""
    sources, models = Sources(), []
    for step in steps:
        prompt, sections = step.get_value("model_input_messages"), step.get_value("prompt_sections") or {}
        if prompt:
            sources.calls += 1
            models.append(step.get_value("model"))
            _add_prompt(sources, prompt, sections)
        _add_search(sources, step.get_value("prompt_facts"))
        if isinstance(step, TaskStep):
            sources.task, sources.unasked_by = sources.task or step.task, step.unasked_by
        elif isinstance(step, FailedStep):
            sources.failed.append(step)
        if isinstance(step, ActionStep):
            sources.tools += _outcomes(step)
            below = [each for run in sub_runs(step) for each in run.memory.steps]
            sources.calls += sum(1 for each in below if each.get_value("token_usage"))
    sources.models = list(dict.fromkeys(name for name in models if isinstance(name, str)))
    sources.taken = list(_taken(steps))
    return sources


def _taken(steps: Iterable[MemoryItem]) -> Iterator[tuple[str, TokenUsage]]:
    for step in steps:
        usage = step.get_value("token_usage")
        if isinstance(usage, TokenUsage):
            yield str(step.get_value("model") or "unknown"), usage
        yield from _taken(each for run in sub_runs(step) for each in run.memory.steps if each is not None)


def _add_prompt(sources: Sources, prompt: Sequence[Mapping[str, Any]], sections: Mapping[str, Sequence[int]]) -> None:
    first, end = sections.get("window", (0, 0))
    sources.window = max(sources.window, end - first)
    noted = sum(len(_NOTE.findall(text)) for text in _contents(prompt, sections, "notes"))
    sources.notes = max(sources.notes, noted)
    for text in _contents(prompt, sections, "system"):
        sources.persona = persona_in(text) or sources.persona
    found = [each for text in _contents(prompt, sections, "found") for each in _RECORD.split(found_records(text))]
    facts = [
        f"{each[2]} ({each[1]})" for text in _contents(prompt, sections, "person") for each in _FACT.finditer(text)
    ]
    sources.found = list(dict.fromkeys([*sources.found, *(each.strip() for each in found if each.strip())]))
    sources.facts = list(dict.fromkeys([*sources.facts, *facts]))


def _add_search(sources: Sources, facts: Any) -> None:
    """Note how well the best of what was found covers what was asked for, and by what it was found."""
    if isinstance(facts, Mapping):
        coverage, by_meaning = facts.get("coverage"), facts.get("by_meaning")
        sources.coverage = coverage if isinstance(coverage, float) else sources.coverage
        sources.by_meaning = by_meaning if isinstance(by_meaning, bool) else sources.by_meaning
        quoted = [f"{place} ({score:.2f})" for _, place, score in facts.get("documents") or ()]
        withheld = facts.get("withheld") or {}
        sources.withheld |= {str(name): ", ".join(map(str, roles)) for name, roles in withheld.items()}
        sources.documents = list(dict.fromkeys([*sources.documents, *quoted]))


def _contents(prompt: Sequence[Mapping[str, Any]], sections: Mapping[str, Sequence[int]], name: str) -> Iterator[str]:
    first, end = sections.get(name, (0, 0))
    for message in prompt[first:end]:
        if isinstance(message.get("content"), str):
            yield message["content"]


def _outcomes(step: ActionStep) -> Iterator[tuple[str, str | None]]:
    for call, result in zip(step.tool_calls or (), step.tool_results or (), strict=False):
        yield call.name, result.text.removeprefix("Error: ") if result.is_error else None


async def _why(request: CommandRequest) -> CommandAnswer:
    def read(connection: Connection) -> tuple[TurnAttempt, Sources] | None:
        last = find_last_attempt(connection, request.context.id, request.turn.id)
        if last is None:
            return None
        stored = read_steps(connection, request.context.id, turn_ids=[last.turn_id])
        return last, read_sources([each.item for each in stored])

    found = await request.context.storage.read(read)
    if found is None:
        return CommandAnswer(request.say("why.nothing"))
    last, sources = found
    asker = last.questions[-1].author if last.questions else None
    may_see = request.message.is_private or _is_same(request.message.author, asker)
    text = explain(request.say, last, sources, may_see=may_see, money=_money(request, sources))
    if request.role is AccessRole.OWNER and last.outcome is Outcome.FAILED and sources.failed:
        text = below(text, request.say("why.tries"), bulleted([line(words(each)) for each in _tries(sources)]))
    return CommandAnswer(text, moments=tuple(_find_moments(text.plain)))


def explain(
    say: Say, last: TurnAttempt, sources: Sources, *, may_see: bool, money: str | None = None, is_last: bool = True
) -> FormattedText:
    """Return why an answer is as it is.

    Args:
        may_see: Whether the reader may see what is known of the person who asked.
        money: What it cost, for readers who may know that.
        is_last: Whether it is spoken of as the last one of its chat.
    """
    told = [*_about(say, last, sources, "why.about" if is_last else "why.about_this")]
    parts = [below(*told, is_close=True)]
    if sources.calls:
        made_of = [*_made_of(say, sources, may_see=may_see)]
        if money is not None:
            made_of.append(say("why.cost", money=money))
        parts.append(bulleted(made_of))
    if last.is_refused_since:
        parts.insert(0, say("why.refused"))
    return below(*parts)


def _about(say: Say, last: TurnAttempt, sources: Sources, about: str) -> Iterator[FormattedText]:
    """Yield what the last attempt was about, and how it ended where that was not by an answer."""
    question = _cut(last.questions[-1].text if last.questions else sources.task, _LONGEST_QUESTION) or "…"
    if last.is_reminder:
        yield say("why.reminder", text=_cut(sources.task, _LONGEST) or "…")
    if last.outcome is Outcome.FAILED:
        tries = len(sources.failed)
        yield say("why.not_answered", question=question, error_id=last.error_id or "", count=tries)
        yield _cause(say, sources)
        if sources.calls:
            yield say("why.made_of")
    elif last.outcome is Outcome.STOPPED:
        yield say("why.stopped" if sources.calls else "why.cut", question=question)
    elif not last.is_reminder:
        yield say(about, question=question)
    if sources.unasked_by:
        yield say("why.unasked", gate=_cut(sources.unasked_by, _LONGEST_QUESTION))


def _cause(say: Say, sources: Sources) -> FormattedText:
    """Say in plain words why there is no answer."""
    match sources.failed[-1].get_value(FAILURE_KIND) if sources.failed else None:
        case LLMFailure.UNAVAILABLE:
            return say("why.cause_unavailable")
        case LLMFailure.RATE_LIMITED:
            return say("why.cause_busy")
        case LLMFailure.OUT_OF_QUOTA | LLMFailure.UNKNOWN_MODEL | LLMFailure.UNAUTHORIZED:
            return say("why.cause_access")
        case str():
            return say("why.cause_refused")
        case _:
            return say("why.cause_inside")


def _tries(sources: Sources) -> Iterator[str]:
    """Yield what each try met, for owners."""
    for step in sources.failed:
        timing, error = step.get_value("timing"), step.get_value("error")
        at = f"{timing.start_time:%H:%M:%S} UTC: " if isinstance(timing, Timing) else ""
        yield f"{at}{_cut(str(error), _LONGEST)}"


def _made_of(say: Say, sources: Sources, *, may_see: bool) -> Iterator[FormattedText]:
    """Yield the points of what an answer was made of."""
    counts = {"why.window": sources.window, "why.notes": sources.notes}
    yield from (say(key, count=count) for key, count in counts.items() if count)
    if sources.persona:
        yield line(say("why.persona"), " ", words(_cut(sources.persona, _LONGEST)))
    if sources.found:
        found = [_cut(each, _LONGEST_EXCERPT if LEFT_OUT in each else _LONGEST) for each in sources.found]
        yield _listed(say, "why.found", [line(words(each)) for each in found])
        if sources.by_meaning is not None and sources.coverage is not None:
            share = round(100 * sources.coverage)
            yield say("why.by_meaning" if sources.by_meaning else "why.by_words", share=share)
    if sources.documents:
        yield _listed(say, "why.documents", _in_short(sources.documents))
    if sources.facts and may_see:
        yield _listed(say, "why.facts", _in_short(sources.facts))
    elif sources.facts:
        yield line(say("why.facts"), " ", say("why.hidden", count=len(sources.facts)))
    if sources.tools:
        yield _listed(say, "why.tools", [_tool(say, *each) for each in sources.tools])
    if sources.withheld:
        yield _listed(say, "why.withheld", _in_short(f"{name} ({roles})" for name, roles in sources.withheld.items()))
    yield say(
        "why.model",
        model=_cut(", ".join(sources.models) or "?", _LONGEST_QUESTION),
        count=sources.calls,
        given=sum(usage.input_tokens for _, usage in sources.taken),
        written=sum(usage.output_tokens for _, usage in sources.taken),
    )


def _listed(say: Say, key: str, entries: Sequence[FormattedText]) -> FormattedText:
    """Return a heading with the first entries of a list, and how many more there are."""
    more = [say("why.more", count=len(entries) - _MOST)] if len(entries) > _MOST else []
    return below(say(key), bulleted([*entries[:_MOST], *more]), is_close=True)


def _in_short(texts: Iterable[str]) -> list[FormattedText]:
    return [line(words(_cut(each, _LONGEST))) for each in texts]


def _money(request: CommandRequest, sources: Sources) -> str | None:
    """Return the cost by today's prices: for owners, and for a person who is alone with the bot."""
    is_told = request.role is AccessRole.OWNER or request.message.is_private
    if not is_told or not sources.taken or not all(request.budgets.has_price(model) for model, _ in sources.taken):
        return None
    cost = sum(request.budgets.price(model, usage).cost for model, usage in sources.taken)
    return f"{request.say_number(cost / NANO, places=4)} {request.budgets.currency}"


def _tool(say: Say, name: str, error: str | None) -> FormattedText:
    if error is None:
        outcome = say("why.worked")
    elif error.startswith(NOT_ALLOWED):
        outcome = say("why.no_role")
    else:
        is_unmade = state_of_unmade(error) is not None
        outcome = say("why.unmade") if is_unmade else say("why.failed", error=_cut(error, _LONGEST))
    return line(words(_cut(name, _LONGEST)), ": ", outcome)


def _cut(text: str, limit: int) -> str:
    """Return text on one line, shortened."""
    return shortened(" ".join(text.split()), limit)


def _is_same(one: Author | None, other: Author | None) -> bool:
    if one is None or other is None or one.id is None:
        return False
    return (one.platform, one.id) == (other.platform, other.id)


WHY: Final = Command("why", _why)


def _find_moments(text: str) -> Iterator[Moment]:
    """Yield the times that a text names, so that a platform can show each reader their own."""
    for found in dict.fromkeys(_UTC.findall(text)):
        with contextlib.suppress(ValueError):  # no such day
            yield Moment(found, datetime.strptime(found, "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC))
