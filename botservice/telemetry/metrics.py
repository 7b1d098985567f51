"""Metrics of this process for Prometheus. No label names a person, a chat or a turn."""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from botservice.core.policies import NANO
from botservice.telemetry.instrumentation import MeasuredModelCall, Sending, Sink, ToolRun, TurnEnd, Work

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# The conventions of OpenTelemetry give these buckets for calls of models.
_MODEL_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TURN_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
_SENDING_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TOKENS: Final = ("input", "cached", "output", "reasoning")
_UNKNOWN_TOOL: Final = "unknown"


class Metrics(Sink):
    """A sink that counts, and renders its counts for Prometheus."""

    def __init__(self, version: str, turns: Iterable[tuple[str, str]] = (), models: Iterable[str] = ()) -> None:
        """Begin to count; what is named here is there as 0 from the start, so that the first one is an increase.

        Args:
            turns: Pairs of a transport and an outcome.
            models: The models that may be asked.
        """
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        call_histogram = partial(histogram, buckets=_MODEL_SECONDS)
        gauge("botservice_info", "1, with the running version.", ["version"]).labels(version).set(1)
        self._waiting = gauge(
            "botservice_waiting",
            "Open work by kind: turns_queued, turns_running and deliveries; oldest_queued_seconds is the age of the "
            "oldest queued turn.",
            ["kind"],
        )
        self._turns = counter(
            "botservice_turns",
            "Turns that have ended, by outcome; listened means stored without an answer.",
            ["transport", "outcome"],
        )
        self._tokens = counter(
            "botservice_model_tokens",
            "Tokens by kind: input, of which cached is a part, and output, of which reasoning is a part.",
            ["model", "kind"],
        )
        self._cost = counter("botservice_model_cost", "Cost of model calls, in CURRENCY.", ["model"])
        self._turn_seconds = histogram(
            "botservice_turn_duration_seconds",
            "Time from the arrival of a question to its stored answer.",
            ["transport"],
            buckets=_TURN_SECONDS,
        )
        self._calls = call_histogram(
            "gen_ai_client_operation_duration_seconds",
            "Duration of each attempt of a model call; purposes are answer, observe and gate (whether to answer).",
            ["gen_ai_request_model", "botservice_purpose", "error_type"],
        )
        self._first = call_histogram(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "Time from a model call to the first piece of its text.",
            ["gen_ai_request_model"],
        )
        self._tools = call_histogram("botservice_tool_duration_seconds", "Tool calls.", ["tool", "error_type"])
        self._sendings = histogram(
            "botservice_delivery_duration_seconds",
            "Attempts to send a message.",
            ["transport", "error_type"],
            buckets=_SENDING_SECONDS,
        )
        self._begin_at_zero(turns, models)

    def set_waiting(self, waiting: Mapping[str, float]) -> None:
        """Set how much of each kind waits now; other kinds are dropped."""
        self._waiting.clear()
        for kind, number in waiting.items():
            self._waiting.labels(kind).set(number)

    def render(self) -> bytes:
        """Return what was counted, as Prometheus reads it."""
        return generate_latest(self.registry)

    @contextmanager
    def during(self, work: Work) -> Iterator[None]:
        """Count a piece of work when it ends, however it ends."""
        error = ""
        try:
            yield
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            seconds = time.monotonic() - work.began_at
            match work:
                case MeasuredModelCall():
                    self._take_call(work, seconds, error)
                case ToolRun():
                    name = work.call.name if work.is_known else _UNKNOWN_TOOL
                    self._tools.labels(name, work.error_type or error).observe(seconds)
                case Sending():
                    self._sendings.labels(work.transport, error).observe(seconds)

    def take_end(self, end: TurnEnd) -> None:
        """Count a turn that has ended."""
        self._turns.labels(end.turn.transport, end.outcome).inc()
        seconds = (end.ended_at - end.turn.accepted_at).total_seconds()
        self._turn_seconds.labels(end.turn.transport).observe(max(0.0, seconds))

    def take_paid(self, model: str, cost: int) -> None:
        """Count what a call cost."""
        self._cost.labels(model).inc(cost / NANO)

    def _begin_at_zero(self, turns: Iterable[tuple[str, str]], models: Iterable[str]) -> None:
        for transport, outcome in turns:
            self._turns.labels(transport, outcome)
        for model, kind in itertools.product(models, _TOKENS):
            self._tokens.labels(model, kind)

    def _take_call(self, call: MeasuredModelCall, seconds: float, error: str) -> None:
        model = call.asked_model
        self._calls.labels(model, call.purpose, error).observe(seconds)
        if call.first_text_at is not None:
            self._first.labels(model).observe(call.first_text_at - call.began_at)
        if (usage := call.usage) is not None:
            numbers = (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens)
            for kind, number in zip(_TOKENS, numbers, strict=True):
                self._tokens.labels(model, kind).inc(number or 0)
