"""The timeline of a turn: from being accepted to being delivered, with everything between that took time."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import listed, match_results
from botservice.conversation.replay import visible
from botservice.conversation.steps import ActionStep, FailedStep, PlanningStep, TaskStep
from botservice.conversation.tool_calls import state_of_unmade
from botservice.core.messages import TokenUsage
from botservice.core.states import DeliveryStatus, Outcome, PendingKind, PendingStatus, TurnStatus
from botservice.devtools.queries import TurnDetails
from botservice.turns.waiting_calls import WaitingCall, find_person_waits, sum_of_waits
from transports.web.inspector_spans import SHORTEST_GAP, SpanKind, TimeSpan, with_gaps
from transports.web.inspector_steps import number_actions

_WAITS: Final = {
    PendingKind.APPROVAL: "Approval of",
    PendingKind.LATER: "Result of",
    PendingKind.QUESTION: "Answer for",
}
_CUT: Final = "what was done at that moment was cut off, and is not kept"


def draw_timeline(
    details: TurnDetails, steps: Sequence[MemoryItem], waiting: Sequence[WaitingCall], costs: Sequence[float]
) -> TimeSpan:
    """Return what took time in a turn, as a tree.

    Args:
        waiting: The calls that it waits with, or has waited with.
        costs: What each step cost, in billionths of the currency.
    """
    return _Timeline(details, waiting).draw(steps, costs)


def step_id(place: int) -> str:
    """Return the id of what a page tells about a step."""
    return f"step-{place}"


def call_id(place: int, index: int) -> str:
    """Return the id of what a page tells about a call of a step."""
    return f"step-{place}-call-{index}"


class _Timeline:
    def __init__(self, details: TurnDetails, waiting: Sequence[WaitingCall]) -> None:
        self._details = details
        self._start: datetime = details.row.created_at
        self._waiting = waiting
        self._waits = [(self._since(first), self._since(after)) for first, after in find_person_waits(waiting)]

    def draw(self, steps: Sequence[MemoryItem], costs: Sequence[float]) -> TimeSpan:
        row = self._details.row
        numbered = enumerate(number_actions(steps))
        parts = [
            part
            for place, (number, step) in numbered
            if (part := self._step(place, number, step, costs[place])) is not None
        ]
        asked = [self._question(place) for place, step in enumerate(steps) if isinstance(step, TaskStep)][:1]
        spans = [*self._arrival(parts), *parts, *self._deliveries(parts)]
        whole = [*asked, *with_gaps([*spans, *self._rest(spans)], 0.0, self._name_gap)]
        end = None if row.finished_at is None else self._since(row.finished_at)
        waited = sum_of_waits(self._waits, 0.0, end or 0.0)
        figures = self._details.figures
        usage = (
            TokenUsage(figures.input_tokens, figures.output_tokens) if figures is not None and figures.calls else None
        )
        return TimeSpan(
            f"Turn {row.id}",
            SpanKind.TURN,
            0.0,
            end,
            "turn",
            is_bad=row.outcome == Outcome.FAILED,
            usage=usage,
            cost=sum(costs) if figures is None or not figures.cost else figures.cost,
            waited=waited,
            children=tuple(whole),
        )

    def _name_gap(self, last: TimeSpan | None, following: TimeSpan) -> tuple[str, SpanKind]:
        """Name the time between two parts of the turn: in one of them it may have been begun once more."""
        started = self._details.row.started_at
        after = None if last is None or last.is_bad else last.end
        if started is not None and after is not None and after < self._since(started) <= following.begin:
            return "Cut off, until it went on", SpanKind.GAP
        return _name_gap(last, following)

    def _question(self, place: int) -> TimeSpan:
        """Return the question: it was there once the last of its messages was stored."""
        received = self._details.received_at
        return TimeSpan(
            "Question", SpanKind.STORE, 0.0, 0.0 if received is None else self._since(received), step_id(place)
        )

    def _arrival(self, parts: Sequence[TimeSpan]) -> Iterator[TimeSpan]:
        """Yield for how long the turn was not begun; one that was retried has begun before."""
        begun = [span.begin for span in parts[:1]]
        if self._details.row.started_at is not None:
            begun.append(self._since(self._details.row.started_at))
        if begun:
            yield TimeSpan("In the queue", SpanKind.QUEUE, 0.0, min(begun))

    def _rest(self, spans: Sequence[TimeSpan]) -> Iterator[TimeSpan]:
        """Yield what lies between the last thing that is known and the end of the turn, or now."""
        row, at = self._details.row, max(_ends(spans), default=0.0)
        if any(span.end is None for span in spans):
            return
        if row.finished_at is not None:
            end = self._since(row.finished_at)
            if end - at >= SHORTEST_GAP:
                is_cut = row.outcome == Outcome.STOPPED
                yield (
                    TimeSpan("At work until stopped", SpanKind.GAP, at, end, note=_CUT)
                    if is_cut
                    else TimeSpan("Ending the turn", SpanKind.STORE, at, end)
                )
        elif row.status == TurnStatus.QUEUED:
            is_retry = any(span.is_bad for span in spans)
            yield (
                TimeSpan("Until the next try", SpanKind.RETRY, at, None)
                if is_retry
                else TimeSpan("In the queue", SpanKind.QUEUE, at, None)
            )
        elif row.status == TurnStatus.RUNNING:
            yield TimeSpan(
                "At work", SpanKind.GAP, at, None, note="what is done at this moment is told once it is done"
            )

    def _deliveries(self, parts: Sequence[TimeSpan]) -> Iterator[TimeSpan]:
        answered = parts[-1].end if parts else None
        sent = self._details.deliveries
        for place, each in enumerate(sent, 1):
            begin = self._since(each.created_at)
            end = None if each.finished_at is None else max(begin, self._since(each.finished_at))
            tries = f"{each.attempts} {'try' if each.attempts == 1 else 'tries'}"
            # A message enters the outbox in the transaction that stores the answer, with the time from before it.
            stores = "Storing and delivery" if answered is not None and abs(begin - answered) < SHORTEST_GAP else None
            name = f"{stores or 'Delivery'}{f' {place}' if len(sent) > 1 else ''}"
            yield TimeSpan(
                name,
                SpanKind.SEND,
                begin,
                end,
                f"delivery-{place}",
                f"{each.status} after {tries}",
                each.status == DeliveryStatus.FAILED,
            )

    def _step(self, place: int, number: int, step: MemoryItem, cost: float) -> TimeSpan | None:
        timing = step.get_value("timing")
        if not isinstance(timing, Timing):
            return None
        begin = self._since(timing.start_time)
        end = None if timing.end_time is None else max(begin, self._since(timing.end_time))
        usage = step.get_value("token_usage")
        usage = usage if isinstance(usage, TokenUsage) else None
        asked = list(_of_attempts(step, begin, place, usage, cost))
        at = max(_ends(asked), default=begin)
        parts = [*asked, *self._of_calls(step, place, at, begin, end)]
        if end is not None and parts and end - max(_ends(parts), default=begin) >= SHORTEST_GAP:
            last = max(parts, key=lambda part: part.begin if part.end is None else part.end)
            is_queued = last.kind is SpanKind.PERSON  # and no call was made after that
            name, kind = ("In the queue again", SpanKind.QUEUE) if is_queued else ("Closing the step", SpanKind.STORE)
            parts.append(TimeSpan(name, kind, max(_ends(parts)), end))
        waited = sum_of_waits(self._waits, begin, begin if end is None else end)
        return TimeSpan(
            _name(step, number),
            SpanKind.STEP,
            begin,
            end,
            step_id(place),
            is_bad=isinstance(step, FailedStep),
            usage=usage,
            cost=cost,
            waited=waited,
            children=tuple(with_gaps(parts, begin, _name_gap_within)),
        )

    def _of_calls(
        self, step: MemoryItem, place: int, asked: float, begin: float, end: float | None
    ) -> Iterator[TimeSpan]:
        """Yield the waits and the runs of a step's calls. They run side by side, and the step ends with the last."""
        calls = [each for each in listed(step.get_value("tool_calls")) if getattr(each, "name", None)]
        results = match_results(calls, step.get_value("tool_results"))
        pending = [each for each in self._waiting if _is_of(each, calls, self._since(each.created_at), begin, end)]
        for each in pending:
            yield self._wait(each)
        approved = [self._since(each.decided_at) for each in pending if each.decided_at is not None]
        later = [self._since(each.created_at) for each in pending if each.kind is PendingKind.LATER]
        ended = min(later) if later else end
        lasted = max((each.duration_seconds or 0.0 for each in results if each is not None), default=0.0)
        earliest = asked if later else max([asked, *approved])
        ran_from = earliest if ended is None else max(earliest, ended - lasted)
        undecided = {each.call_index for each in pending if each.is_waiting}
        for index, (call, result) in enumerate(zip(calls, results, strict=True)):
            if result is not None:
                lasts = result.duration_seconds or 0.0
                if state_of_unmade(result.text) is None:
                    target, is_bad = call_id(place, index), result.is_error
                    yield TimeSpan(visible(call.name), SpanKind.TOOL, ran_from, ran_from + lasts, target, is_bad=is_bad)
            elif end is None and index not in undecided and not any(each.is_waiting for each in pending):
                yield TimeSpan(visible(call.name), SpanKind.TOOL, ran_from, None, call_id(place, index))

    def _wait(self, call: WaitingCall) -> TimeSpan:
        end = _end_of(call)
        is_of_person = call.kind is not PendingKind.LATER
        name = f"{_WAITS[call.kind]} {visible(call.tool)}"
        what = "" if call.is_waiting else call.status.value.replace("_", " ")
        return TimeSpan(
            name,
            SpanKind.PERSON if is_of_person else SpanKind.RESULT,
            self._since(call.created_at),
            None if end is None else self._since(end),
            f"call-{call.id}",
            what,
            is_bad=not is_of_person and call.status is PendingStatus.EXPIRED,
        )

    def _since(self, at: datetime) -> float:
        return _since(self._start, at)


def _of_attempts(
    step: MemoryItem, start: float, place: int, usage: TokenUsage | None, cost: float
) -> Iterator[TimeSpan]:
    attempts = [each for each in listed(step.get_value("model_attempts")) if isinstance(each, Mapping)]
    for number, attempt in enumerate(attempts, 1):
        began, ended = start + _number(attempt, "began"), start + _number(attempt, "ended")
        asked = start + _number(attempt, "asked") if "asked" in attempt else began
        target = f"{step_id(place)}-prompt"
        if asked > began:
            yield TimeSpan(
                "Reading history", SpanKind.PROMPT, began, asked, target, "searching it, and making the prompt"
            )
        name = f"Model, attempt {number}" if len(attempts) > 1 else "Model"
        if "error" in attempt:
            error = visible(str(attempt["error"]))
            yield TimeSpan(name, SpanKind.MODEL, asked, ended, f"{step_id(place)}-attempt-{number}", error, is_bad=True)
            continue
        first = start + _number(attempt, "first_text") if "first_text" in attempt else None
        parts = (
            ()
            if first is None
            else (
                TimeSpan("First token", SpanKind.MODEL, asked, first, target),
                TimeSpan("Writing", SpanKind.WRITE, first, ended, target),
            )
        )
        yield TimeSpan(name, SpanKind.MODEL, asked, ended, target, usage=usage, cost=cost, children=parts)


def _is_of(call: WaitingCall, calls: Sequence[Any], at: float, begin: float, end: float | None) -> bool:
    """Return whether a call that waits is one of a step's: models give the same id to calls of other steps."""
    if not (call.call_index < len(calls) and begin <= at and (end is None or at <= end)):
        return False
    own = calls[call.call_index]
    return (own.id, own.name) == (call.call_id, call.tool)


def _name(step: MemoryItem, number: int) -> str:
    return f"Step {number}" if isinstance(step, ActionStep) else "Plan" if isinstance(step, PlanningStep) else "Answer"


def _name_gap(last: TimeSpan | None, following: TimeSpan) -> tuple[str, SpanKind]:
    """Name the time between two parts of a turn."""
    if last is None or last.kind is SpanKind.QUEUE:
        return "Storing the question", SpanKind.STORE
    if last.kind is not SpanKind.STEP:
        return "Between", SpanKind.GAP
    if following.kind is not SpanKind.STEP:
        return "Ending the turn", SpanKind.STORE
    return ("Until the next try", SpanKind.RETRY) if last.is_bad else (f"Storing {last.name.lower()}", SpanKind.STORE)


def _name_gap_within(last: TimeSpan | None, following: TimeSpan) -> tuple[str, SpanKind]:
    """Name the time between two parts of a step."""
    if following.kind is SpanKind.PROMPT and last is None:
        return "Before the prompt", SpanKind.GAP
    if last is not None and last.kind is SpanKind.MODEL:
        return ("Until the next try", SpanKind.RETRY) if last.is_bad else ("Storing the calls", SpanKind.STORE)
    if last is not None and last.kind is SpanKind.PERSON:
        return "In the queue again", SpanKind.QUEUE
    return "Between", SpanKind.GAP


def _ends(spans: Sequence[TimeSpan]) -> list[float]:
    return [span.begin if span.end is None else span.end for span in spans]


def _end_of(call: WaitingCall) -> datetime | None:
    """Return until when a call has waited; None if it still does."""
    if call.is_waiting:
        return None
    return call.decided_at or call.expires_at


def _number(attempt: Mapping[str, Any], name: str) -> float:
    value = attempt.get(name, 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _since(start: datetime, at: datetime) -> float:
    return max(0.0, (at - start).total_seconds())
