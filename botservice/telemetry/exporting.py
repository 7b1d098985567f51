"""Tracing, as set by OpenTelemetry's own environment variables; without them it is not even imported."""

import asyncio
import logging
import os
import platform
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from typing import Any, Final

from botservice.core.errors import SettingsError
from botservice.core.threads import run_in_thread
from botservice.telemetry.instrumentation import sending_to
from botservice.telemetry.logs import telling

logger = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_CONTENTS: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_TRUE: Final = ("true", "1", "span_only", "span_and_event")
_LAST_SPANS_SECONDS: Final = 2.0


def asked_exporter(environ: Mapping[str, str]) -> str | None:
    """Return the name of the exporter that the environment asks for, or None if nothing is to be traced."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    named = environ.get(_EXPORTER, "").strip().lower()
    if named:
        return None if named == "none" else named
    return "otlp" if any(environ.get(name, "").strip() for name in _ENDPOINTS) else None


@asynccontextmanager
async def tracing(version: str, environ: Mapping[str, str] | None = None) -> AsyncIterator[None]:
    """Trace this process inside the block, if the environment asks for that; the last spans have two seconds.

    Raises:
        SettingsError: it asks for what is not installed or not known.
    """
    environ = os.environ if environ is None else environ
    name = asked_exporter(environ)
    if name is None:
        yield
        return
    try:
        from botservice.telemetry.spans import Spans, trace_facts
    except ImportError as error:
        raise SettingsError(
            "the environment asks for traces, and OpenTelemetry is not installed: "
            'pip install "botservice[otel]", or OTEL_SDK_DISABLED=true'
        ) from error
    provider = _provider(version, _exporter(name, environ), environ)
    spans = Spans(provider, has_contents=environ.get(_CONTENTS, "").strip().lower() in _TRUE)
    try:
        with sending_to(spans), telling(trace_facts):
            yield
    finally:
        try:
            async with asyncio.timeout(_LAST_SPANS_SECONDS):
                await run_in_thread(provider.shutdown, name="last spans")
        except Exception as error:  # noqa: BLE001 - a border: nothing holds up or fails the end of the process
            logger.warning("tracing.not_ended", extra={"reason": type(error).__name__})


def _exporter(name: str, environ: Mapping[str, str]) -> Any:
    protocol = next((value for each in _PROTOCOLS if (value := environ.get(each, "").strip())), "http/protobuf")
    wanted = {"otlp": "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"}.get(name, name)
    found = next(iter(entry_points(group="opentelemetry_traces_exporter", name=wanted)), None)
    if found is None:
        remedy = "pip install opentelemetry-exporter-otlp-proto-grpc" if wanted.endswith("grpc") else "otlp or console"
        raise SettingsError(f"{_EXPORTER}: no exporter called {wanted} is installed; {remedy}")
    return found.load()()


def _provider(version: str, exporter: Any, environ: Mapping[str, str]) -> Any:
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from botservice.telemetry.spans import TurnIds

    own = {"service.name": "botservice"} if "OTEL_SERVICE_NAME" not in environ else {}
    facts = {"service.version": version, "service.instance.id": f"{platform.node()}-{os.getpid()}"}
    provider = TracerProvider(
        resource=Resource.create({**own, **facts}), id_generator=TurnIds(), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):  # nobody has set another one
        trace.set_tracer_provider(provider)  # so that spans of others, such as MCP's client, find their place
    return provider
