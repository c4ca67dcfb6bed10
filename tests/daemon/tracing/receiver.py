"""A receiver of OTLP over HTTP on this machine: it decodes with OTLP's own protobuf."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

WITHIN_S = 30.0


@dataclass(frozen=True)
class Span:
    """One span, as it came over the wire."""

    trace: bytes
    id: bytes
    parent: bytes
    name: str
    begun_ns: int
    ended_ns: int
    told: dict[str, Any]
    error: str
    service: dict[str, Any]


@dataclass
class Receiver:
    """What has come so far. ``status`` is what the next requests get."""

    port: int = 0
    status: int = 200
    spans: list[Span] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """One request."""
        with self.changed:
            self.headers.append(headers)
            if self.status == 200:
                assert path == "/v1/traces"
                self.spans += decoded(ExportTraceServiceRequest.FromString(body))
            self.changed.notify_all()
            return self.status, ExportTraceServiceResponse().SerializeToString()

    def until(self, enough: Callable[[Sequence[Span]], bool]) -> list[Span]:
        """Wait for spans."""
        with self.changed:
            assert self.changed.wait_for(lambda: enough(self.spans), WITHIN_S), self.spans
            return list(self.spans)

    def asked(self, times: int) -> None:
        """Wait for requests, whatever they get."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.headers) >= times, WITHIN_S)


def decoded(request: ExportTraceServiceRequest) -> Iterator[Span]:
    """The spans of a request."""
    for resource in request.resource_spans:
        service = values(resource.resource.attributes)
        for scope in resource.scope_spans:
            assert scope.scope.name == "binlogd"
            for span in scope.spans:
                yield Span(
                    span.trace_id,
                    span.span_id,
                    span.parent_span_id,
                    span.name,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    values(span.attributes),
                    span.status.message,
                    service,
                )


def values(attributes: Any) -> dict[str, Any]:
    """Attributes as Python has them."""
    return {each.key: value(each.value) for each in attributes}


def value(any_value: Any) -> Any:
    """One of OTLP's values."""
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(each) for each in any_value.array_value.values]
    return getattr(any_value, kind)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): text for name, text in self.headers.items()}
            status, answer = receiver.take(self.path, headers, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def silent() -> Iterator[int]:
    """A port where connections are accepted and nothing is ever answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield listening.getsockname()[1]


@contextmanager
def closed() -> Iterator[int]:
    """A port where nobody listens, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
