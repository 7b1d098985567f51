"""Spans of OpenTelemetry by its conventions for generative AI: one trace for a turn, whichever processes work on it.

A turn's trace and its root are named by the turn itself, so that every process knows them without asking another one.
The root is sent when the turn has ended; what is done before that names it as its parent all the same.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)

from botservice.telemetry.instrumentation import (
    MeasuredModelCall,
    Sending,
    Sink,
    ToolRun,
    TurnEnd,
    TurnIdentity,
    Work,
    turn_now,
)
from botservice.telemetry.logs import redact

_NANOSECONDS: Final = 1_000_000_000
_FAILED: Final = "failed"
_OPENAI: Final = "openai"

_given_ids: ContextVar[tuple[int, int] | None] = ContextVar("given_span_ids", default=None)


class TurnIds(RandomIdGenerator):
    """Generates the ids of spans: a turn's root has those of its turn, others have random ones."""

    def generate_span_id(self) -> int:
        """Return the id of a new span."""
        given = _given_ids.get()
        return super().generate_span_id() if given is None else given[1]

    def generate_trace_id(self) -> int:
        """Return the id of a new trace."""
        given = _given_ids.get()
        return super().generate_trace_id() if given is None else given[0]


def ids_of(turn: TurnIdentity) -> tuple[int, int]:
    """Return the ids of a turn's trace and of its root, the same in every process."""
    name = f"{turn.turn_id}/{turn.context_id}/{turn.accepted_at.timestamp():.6f}"
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])


def trace_facts() -> Mapping[str, str]:
    """Return the ids of the current span for a log line."""
    span, turn = get_current_span().get_span_context(), turn_now()
    if not span.is_valid and turn is None:
        return {}
    trace_id, span_id = ids_of(turn) if turn is not None and not span.is_valid else (span.trace_id, span.span_id)
    return {"trace": f"{trace_id:032x}", "span": f"{span_id:016x}"}


@dataclass(frozen=True, slots=True)
class Spans(Sink):
    """A sink that makes spans.

    Attributes:
        has_contents: Whether what people and models say goes along.
    """

    provider: TracerProvider
    has_contents: bool = False

    @contextmanager
    def during(self, work: Work) -> Iterator[None]:
        """Make a span of a piece of work."""
        span = self._start(work)
        token = attach(set_span_in_context(span))
        try:
            yield
        except Exception as error:
            _fail(span, type(error).__name__)
            raise
        except BaseException as error:  # cut off: nothing of it has failed
            span.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            detach(token)
            span.set_attributes(self._outcome(work, span))
            span.end()

    def take_end(self, end: TurnEnd) -> None:
        """Make the root of a turn that has ended."""
        token = _given_ids.set(ids_of(end.turn))
        try:
            root = self.provider.get_tracer("botservice").start_span(
                "invoke_agent agent",
                context=Context(),
                kind=SpanKind.INTERNAL,
                start_time=int(end.turn.accepted_at.timestamp() * _NANOSECONDS),
                attributes={
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": "agent",
                    **_facts_of(end.turn),
                    "botservice.outcome": end.outcome,
                },
            )
        finally:
            _given_ids.reset(token)
        if end.outcome == _FAILED:
            _fail(root, "TurnFailed")
        root.end(int(end.ended_at.timestamp() * _NANOSECONDS))

    def _start(self, work: Work) -> Span:
        name, kind, attributes = _begun(work)
        turn = turn_now()
        if turn is not None:
            attributes |= _facts_of(turn)
        tracer = self.provider.get_tracer("botservice")
        return tracer.start_span(name, context=self._parent(turn), kind=kind, attributes=attributes)

    def _parent(self, turn: TurnIdentity | None) -> Context | None:
        """Return the parent of a span: the one that is open here, or the root of its turn."""
        if turn is None:
            return None
        trace_id, span_id = ids_of(turn)
        if get_current_span().get_span_context().trace_id == trace_id:
            return None
        judged = self.provider.sampler.should_sample(None, trace_id, "invoke_agent").decision
        flags = TraceFlags(TraceFlags.SAMPLED if judged is Decision.RECORD_AND_SAMPLE else TraceFlags.DEFAULT)
        return set_span_in_context(NonRecordingSpan(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)))

    def _outcome(self, work: Work, span: Span) -> dict[str, Any]:
        if not span.is_recording():
            return {}
        match work:
            case MeasuredModelCall():
                return _told(work) | (_said(work) if self.has_contents else {})
            case ToolRun():
                if work.error_type is not None:
                    _fail(span, work.error_type)
                return _given(work) if self.has_contents else {}
            case Sending():
                return {}


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _facts_of(turn: TurnIdentity) -> dict[str, Any]:
    return {
        "gen_ai.conversation.id": str(turn.context_id),
        "botservice.turn.id": turn.turn_id,
        "botservice.transport": turn.transport,
    }


def _begun(work: Work) -> tuple[str, SpanKind, dict[str, Any]]:
    """Return the name, the kind and the first attributes of a span."""
    match work:
        case MeasuredModelCall():
            attributes: dict[str, Any] = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": _OPENAI,
                "gen_ai.request.model": work.asked_model,
                "gen_ai.request.stream": work.is_streamed,
                "botservice.purpose": work.purpose,
                **_address(work.server),
            }
            return f"chat {work.asked_model}", SpanKind.CLIENT, attributes
        case ToolRun():
            name = work.call.name if work.is_known else "unknown"
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": work.call.id,
                "gen_ai.tool.type": "function",
            }
            return f"execute_tool {name}", SpanKind.INTERNAL, attributes
        case Sending():
            attributes = {"botservice.delivery.transport": work.transport, "botservice.delivery.attempt": work.attempt}
            return f"send {work.transport}", SpanKind.CLIENT, attributes


def _address(server: str | None) -> dict[str, Any]:
    """Return the host and port of a server's address, without credentials."""
    if not server:
        return {}
    try:
        parts = urlsplit(server)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return {}
    return {"server.address": parts.hostname, "server.port": port} if parts.hostname else {}


def _told(call: MeasuredModelCall) -> dict[str, Any]:
    """Return the attributes of a model's answer."""
    usage = call.usage
    told = {
        "gen_ai.response.model": call.model or None,
        "gen_ai.response.finish_reasons": [str(call.finish_reason)] if call.finish_reason else None,
        "gen_ai.response.time_to_first_chunk": None
        if call.first_text_at is None
        else call.first_text_at - call.began_at,
        "gen_ai.usage.input_tokens": usage and usage.input_tokens,
        "gen_ai.usage.output_tokens": usage and usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage and usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage and usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage and usage.reasoning_tokens,
    }
    return {name: value for name, value in told.items() if value is not None}


def _said(call: MeasuredModelCall) -> dict[str, Any]:
    """Return the messages to and from a model, in the conventions' form."""
    system = [each for each in call.prompt if each.get("role") == "system"]
    rest = [each for each in call.prompt if each.get("role") != "system"]
    parts = [{"type": "text", "content": call.text}] if call.text else []
    calls = [{"type": "tool_call", **_called(each.id, each.name, each.arguments)} for each in call.tool_calls]
    answer = {"role": "assistant", "parts": [*parts, *calls], "finish_reason": str(call.finish_reason or "stop")}
    return {
        "gen_ai.system_instructions": _json([part for each in system for part in _parts(each)]),
        "gen_ai.input.messages": _json([{"role": each.get("role"), "parts": _parts(each)} for each in rest]),
        "gen_ai.output.messages": _json([answer]),
    }


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    if message.get("role") == "tool":
        return [{"type": "tool_call_response", "id": message.get("tool_call_id"), "result": message.get("content")}]
    content = message.get("content")
    pieces: Sequence[Any] = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    parts = [
        {"type": "text", "content": piece.get("text", "")}
        if piece.get("type") == "text"
        else {"type": str(piece.get("type"))}  # the bytes of a file say nothing in a trace
        for piece in pieces
        if isinstance(piece, Mapping)
    ]
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        parts.append({"type": "tool_call", **_called(call.get("id"), function.get("name"), function.get("arguments"))})
    return [part for part in parts if part.get("content") != ""]


def _called(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def _given(run: ToolRun) -> dict[str, Any]:
    return {"gen_ai.tool.call.arguments": _json(run.call.arguments), "gen_ai.tool.call.result": _json(run.result)}


def _json(value: Any) -> str:
    return redact(json.dumps(value, ensure_ascii=False, default=str))
