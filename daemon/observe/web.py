"""The page, ``/metrics``, ``/healthz`` and ``/readyz`` on one port or Unix socket. Reads only."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from daemon.observe.metrics import Status, StatusCollector
from daemon.observe.unix_socket import claim
from daemon.observe.verdict import verdict
from daemon.page.access import Access
from daemon.page.desk import PageDesk
from daemon.page.document import POLICY

REQUEST_TIMEOUT_S = 5.0
"""The limit for each wait for a client."""

CONNECTION_S = 15.0
"""The limit for one connection, however the client trickles."""

MOST_REQUESTS = 64
"""Connections at the same time. Further ones are closed at once. Slow readers of the page must not
keep a scraper out, so there are many; a thread that waits for its client costs nothing."""


class WebServer:
    """Serves while it is open, in threads of its own."""

    def __init__(self, address: tuple[str, int] | Path, status: Status, token: str = "") -> None:
        """Listen. Raises OSError when the port is taken or the address is not this machine's."""
        registry = CollectorRegistry()
        registry.register(StatusCollector(status))
        self.desk = PageDesk(status)
        self._server = _Server(address, status, registry, self.desk, token)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="web", daemon=True
        )

    @property
    def address(self) -> tuple[str, int]:
        """The real address: port 0 asks for any free one. Of a port alone."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def start(self) -> None:
        """Start serving."""
        self.desk.start()
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self.desk.close()
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(
        self,
        address: tuple[str, int] | Path,
        status: Status,
        registry: CollectorRegistry,
        desk: PageDesk,
        token: str,
    ) -> None:
        self.status = status
        self.registry = registry
        self.desk = desk
        self._room = threading.BoundedSemaphore(MOST_REQUESTS)
        self._open: dict[int, tuple[socket.socket, float]] = {}
        self._path = address if isinstance(address, Path) else None
        if isinstance(address, Path):
            self.address_family = socket.AF_UNIX
            self.access = Access(None, token)
            super().__init__(str(address), _Handler)  # type: ignore[arg-type]
        else:
            self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.access = Access(address[0], token)
            super().__init__(address, _Handler)

    def server_bind(self) -> None:
        if self._path is None:
            super().server_bind()
        else:
            claim(self.socket, self._path)

    def server_close(self) -> None:
        super().server_close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            self._open[id(request)] = (request, time.monotonic() + CONNECTION_S)
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.pop(id(request), None)
            self._room.release()

    def service_actions(self) -> None:
        """End connections that last too long. On the server's thread, ten times a second."""
        now = time.monotonic()
        for request, deadline in list(self._open.values()):
            if now > deadline:
                with suppress(OSError):  # it has just ended
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log, error = structlog.get_logger().bind(actor="web"), sys.exception()
        if isinstance(error, OSError):  # the client went away, or was let go for its slowness
            log.debug("web_client_gone", reason=str(error))
        else:
            log.warning("web_request_failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_TIMEOUT_S
    server_version = "binlogd"
    sys_version = ""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        refusal = self.server.access.refusal(path, self.headers)
        if refusal is not None:
            self._answer(refusal.status, refusal.text.encode(), headers=refusal.headers)
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, generate_latest(self.server.registry), CONTENT_TYPE_LATEST)
        elif path in ("/healthz", "/readyz"):
            good, lines = verdict(path, self.server.status())
            status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "".join(f"{line}\n" for line in lines).encode())
        elif (found := self.server.desk.document(path, query)) is not None:
            headers = {"Content-Security-Policy": POLICY}
            self._answer(HTTPStatus.OK, found.encode(), "text/html; charset=utf-8", headers)
        else:
            known = b"known: / /target /metrics /healthz /readyz\n"
            self._answer(HTTPStatus.NOT_FOUND, known)

    do_HEAD = do_GET

    def _answer(
        self,
        status: HTTPStatus,
        body: bytes,
        kind: str = "text/plain; charset=utf-8",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A line for each scrape would bury what matters."""
