"""``/metrics``, ``/healthz`` and ``/readyz`` on one port. Reads only; no state of its own."""

from __future__ import annotations

import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from daemon.observe.metrics import Status, StatusCollector

REQUEST_TIMEOUT_S = 5.0
"""The limit for one client to send its request and to read the answer."""

MOST_REQUESTS = 16
"""Connections at the same time. A scraper needs one. Further ones are closed at once."""


class WebServer:
    """Serves while it is open, in threads of its own."""

    def __init__(self, address: tuple[str, int], status: Status) -> None:
        """Listen. Raises OSError when the port is taken or the address is not this machine's."""
        registry = CollectorRegistry()
        registry.register(StatusCollector(status))
        self._server = _Server(address, status, registry)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="web", daemon=True
        )

    @property
    def address(self) -> tuple[str, int]:
        """The real address: port 0 asks for any free one."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(
        self, address: tuple[str, int], status: Status, registry: CollectorRegistry
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.status = status
        self.registry = registry
        self._room = threading.BoundedSemaphore(MOST_REQUESTS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        structlog.get_logger().bind(actor="web").warning("web_request_failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_TIMEOUT_S
    server_version = "binlogd"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(HTTPStatus.OK, generate_latest(self.server.registry), CONTENT_TYPE_LATEST)
        elif path in ("/healthz", "/readyz"):
            good, lines = verdict(path, self.server.status())
            status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "".join(f"{line}\n" for line in lines).encode())
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"known: /metrics /healthz /readyz\n")

    do_HEAD = do_GET

    def _answer(
        self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A line for each scrape would bury what matters."""


def verdict(path: str, status: Any) -> tuple[bool, list[str]]:
    """Whether all is well, and lines about what is not."""
    if path == "/healthz":
        stuck = [
            f"{silent['actor']} has not answered for {silent['seconds']:.0f} s"
            for silent in status["silent"]
            if silent["stuck"]
        ]
        return not stuck, stuck or ["ok"]
    if status["ready"]:
        return True, ["ok"]
    waiting = [
        f"pipeline {p['pipeline']}: {p['failure'] or p['stage']}"
        + ("" if p["assigned"] else ", no partitions assigned yet")
        for p in status["pipelines"]
        if p["stage"] != "running" or not p["assigned"]
    ]
    waiting += [
        f"pipeline {p['pipeline']}: the logs' ends are unknown for "
        f"{p['log_ends_unknown_seconds']:.0f} s: {p['log_ends_error']}"
        for p in status["pipelines"]
        if p["stage"] == "running" and p["assigned"] and p["log_ends_unknown_seconds"] is not None
    ]
    session = status["spark"]
    if session is not None and session["down_seconds"] is not None:
        down_s = session["down_seconds"]
        waiting.append(f"the JVM {session['last_end']} {down_s:.0f} s ago; it is started again")
    return False, [status["state"], *waiting]
