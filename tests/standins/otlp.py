"""A receiver of traces on loopback, as strict as the protocol: it reads what OTLP over HTTP sends, or refuses it."""

import contextlib
import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(slots=True)
class Received:
    """A span as it came."""

    name: str
    trace: str
    id: str
    parent: str
    began: int
    ended: int
    is_failed: bool
    facts: dict[str, Any]
    service: dict[str, Any]


@dataclass(slots=True)
class Receiver:
    """Traces that came, in the order of their coming."""

    url: str = ""
    spans: list[Received] = field(default_factory=list)

    def named(self, name: str) -> list[Received]:
        return [each for each in self.spans if each.name == name]

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            service = _facts(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans.extend(_read(each, service) for each in scope.spans)


def _read(span: Any, service: dict[str, Any]) -> Received:
    assert len(span.trace_id) == 16, "a trace's id has sixteen bytes"
    assert len(span.span_id) == 8, "a span's id has eight bytes"
    return Received(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code == span.status.STATUS_CODE_ERROR,
        _facts(span.attributes),
        service,
    )


def _facts(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@contextlib.contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """Receive traces until the block is left."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            is_known = self.path == "/v1/traces" and self.headers["content-type"] == "application/x-protobuf"
            try:
                if is_known:
                    receiver.take(body)
            except DecodeError:
                is_known = False
            self.send_response(200 if is_known else 400)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Be silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
