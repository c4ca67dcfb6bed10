"""The page, ``/metrics``, ``/healthz`` and ``/readyz`` on one port or Unix socket. Reads only."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Generic, TypeVar

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from changes.model.printable import printable_within_lines
from daemon.admin.front_door import FrontDoor
from daemon.admin.page.access import OPEN, Access
from daemon.admin.page.document import NO_SOURCES, POLICY, PageDesk, Sources
from daemon.admin.status.health import verdict
from daemon.admin.status.metrics import MOST, Status, StatusCollector
from daemon.state.control import claim

T = TypeVar("T")

WORKERS = 4
"""Threads that make documents. What clients do costs them nothing: see ``front_door.py``."""

SHARED_S = 0.25
"""So that a hundred clients cost what one costs, of probes and of metrics; nobody asks so often."""

BACKLOG = 128

KNOWN = "known: / /target /config /metrics /healthz /readyz\n"


class WebServer:
    """Serves while it is open, in threads of its own: one for all clients, some for the documents,
    and one for the probes alone, which no document of others may delay."""

    def __init__(
        self,
        address: tuple[str, int] | Path,
        status: Status,
        token: str = "",
        hosts: tuple[str, ...] = (),
        most: int = MOST,
        sources: Sources = NO_SOURCES,
    ) -> None:
        """Listen. Raises OSError when the port is taken or the address is not this machine's."""
        self._path = address if isinstance(address, Path) else None
        self._listener = _listening(address)
        host = None if isinstance(address, Path) else address[0]
        self.desk = PageDesk(status, sources=sources)
        self._site = _Site(status, self.desk, Access(host, token, hosts), most)
        self._door = FrontDoor(self._listener, self._serve, _is_probe)
        self._workers = ThreadPoolExecutor(WORKERS, "web-worker")
        self._probes = ThreadPoolExecutor(1, "web-probe")
        self._thread = threading.Thread(target=self._door.serve, name="web", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """The real address: port 0 asks for any free one. Of a port alone."""
        host, port = self._listener.getsockname()[:2]
        return str(host), int(port)

    def start(self) -> None:
        """Start serving."""
        self.desk.start()
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self.desk.close()
        self._door.close()
        if self._thread.is_alive():
            self._thread.join(2.0)
        for pool in (self._workers, self._probes):
            pool.shutdown(wait=False, cancel_futures=True)
        self._listener.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _serve(
        self, head: bytes, is_here: Callable[[], bool], answered: Callable[[bytes], None]
    ) -> None:
        def work() -> None:
            if is_here():
                answered(self._site.answer(head))

        (self._probes if _is_probe(head) else self._workers).submit(work)


def _listening(address: tuple[str, int] | Path) -> socket.socket:
    if isinstance(address, Path):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if isinstance(address, Path):
            claim(listener, address)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _path_of(head: bytes) -> str:
    parts = head.split(b"\n", 1)[0].split()
    return "" if len(parts) < 2 else parts[1].decode("latin-1").partition("?")[0]


def _is_probe(head: bytes) -> bool:
    return _path_of(head) in OPEN


class _Shared(Generic[T]):
    """A value that is made once for those who ask at the same time. Any thread."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: tuple[float, T] | None = None

    def __call__(self) -> T:
        """Of SHARED_S ago at most."""
        with self._lock:
            if self._made is None or time.monotonic() - self._made[0] > SHARED_S:
                made = self._make()
                self._made = (time.monotonic(), made)
            return self._made[1]


class _Site:
    """Makes answers. Any thread."""

    def __init__(self, status: Status, desk: PageDesk, access: Access, most: int) -> None:
        self.desk = desk
        self.access = access
        self.registry = CollectorRegistry()
        self.registry.register(StatusCollector(status, most))
        ProcessCollector(registry=self.registry)
        self.metrics = _Shared(lambda: generate_latest(self.registry))
        self.probed = _Shared(status)

    def answer(self, head: bytes) -> bytes:
        """The whole answer to a request's head. Raises nothing."""
        try:
            return _Handler(self, head).made
        except Exception:
            structlog.get_logger().bind(actor="web").exception("web_request_failed")
            return b"HTTP/1.0 500 Internal Server Error\r\nConnection: close\r\n\r\n"


class _Handler(BaseHTTPRequestHandler):
    """Reads a head and writes an answer, both in memory."""

    server_version = "binlogd"
    sys_version = ""

    def __init__(self, site: _Site, head: bytes) -> None:
        self._site = site
        self.client_address = ("", 0)
        self.rfile = io.BufferedReader(io.BytesIO(head))
        self.wfile = written = io.BytesIO()
        self.requestline = self.command = ""
        self.request_version = self.default_request_version
        self.close_connection = True
        self.handle_one_request()
        self.made = written.getvalue()

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        site = self._site
        refusal = site.access.refusal(path, self.headers)
        if path in OPEN:
            good, lines = verdict(path, site.probed())
            status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
            # Its status is for everybody: a probe that were refused would end the daemon.
            told = lines if refusal is None else ["ok" if good else "not ok"]
            self._answer(status, "".join(f"{line}\n" for line in told))
        elif refusal is not None:
            self._answer(refusal.status, refusal.text, headers=refusal.headers)
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, site.metrics(), CONTENT_TYPE_LATEST)
        elif (found := site.desk.document(path, query)) is not None:
            headers = {"Content-Security-Policy": POLICY}
            self._answer(HTTPStatus.OK, found, "text/html; charset=utf-8", headers)
        else:
            self._answer(HTTPStatus.NOT_FOUND, KNOWN)

    do_HEAD = do_GET

    def _answer(
        self,
        status: HTTPStatus,
        text: str | bytes,
        kind: str = "text/plain; charset=utf-8",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        body = text if isinstance(text, bytes) else printable_within_lines(text).encode()
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
