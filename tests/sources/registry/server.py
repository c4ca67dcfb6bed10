"""A schema registry that speaks Confluent's REST API, as ill as a test wants it."""

from __future__ import annotations

import json
import queue
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class RegistryServer:
    """``ids``: the answers by a schema's id. ``ill``: what is answered instead, by path; status,
    headers, body. ``gate``: closed, and each answer waits for it."""

    ids: dict[str, dict[str, Any]] = field(default_factory=dict)
    guids: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    ill: Callable[[str], tuple[int, dict[str, str], bytes] | None] = lambda path: None
    gate: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    arrived: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    port: int = 0
    scheme: str = "http"
    _server: ThreadingHTTPServer | None = None

    def __post_init__(self) -> None:
        self.gate.set()

    def start(self, tls: ssl.SSLContext | None = None) -> None:
        """Answer, at the same port each time."""
        handler = type("Handler", (_Handler,), {"registry": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self.scheme = "https"
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Be away."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def avro(self, number: int, *columns: str) -> None:
        """Register a record under an id."""
        fields = [{"name": column, "type": "long"} for column in columns]
        text = json.dumps({"type": "record", "name": "Row", "fields": fields})
        self.ids[str(number)] = {"schema": text}

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        self.asked.append(path)
        if (ill := self.ill(path)) is not None:
            return ill
        parts = urlsplit(path).path.strip("/").split("/")
        found: Any = None
        match parts:
            case ["schemas", "ids", number]:
                found = self.ids.get(number)
            case ["schemas", "guids", guid]:
                found = self.guids.get(guid)
            case ["subjects", subject, "versions", version]:
                found = self.versions.get((subject, version))
            case ["subjects"]:
                found = []
        if found is None:
            said = {"error_code": 40403, "message": "Schema not found"}
            return 404, {}, json.dumps(said).encode()
        if parse_qs(urlsplit(path).query).get("format") == ["serialized"]:
            found = {**found, "schema": found.get("serialized", found["schema"])}
        body = [] if found == [] else {k: v for k, v in found.items() if k != "serialized"}
        return 200, {}, json.dumps(body).encode()


class _Handler(BaseHTTPRequestHandler):
    registry: RegistryServer

    def do_GET(self) -> None:
        self.registry.logins.append(self.headers.get("Authorization", ""))
        self.registry.arrived.put(self.path)
        self.registry.gate.wait(30)
        self._send(*self.registry.answer(self.path))

    def do_POST(self) -> None:
        """Of a token."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.registry.logins.append(body.decode())
        self._send(*self.registry.answer(self.path))

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def running() -> Iterator[RegistryServer]:
    """A registry that answers."""
    server = RegistryServer()
    server.start()
    try:
        yield server
    finally:
        server.gate.set()
        server.stop()
