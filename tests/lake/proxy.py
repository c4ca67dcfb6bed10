"""A proxy in front of an HTTP server: counts what is asked, and breaks what it is told to break.

It stands before an object store or a REST catalog, and shows what a client does when answers are
lost, late, refused or cut off. Nothing is decrypted or signed anew: headers pass as they are.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

_PER_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "proxy-connection"})
"""Headers that are of one connection, not of the message."""


class Break(Enum):
    """What may happen to a request, beside an answer with another status."""

    BEFORE = "before"
    """The connection is cut; the server never hears of it."""
    ANSWER_LOST = "answer lost"
    """The server does it; the connection is cut before a byte of the answer."""
    ANSWER_CUT = "answer cut"
    """The server does it; the connection is cut amid the answer's body."""


@dataclass(frozen=True, slots=True)
class Late:
    """The request is passed on after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Status:
    """The proxy answers itself; ``after``: once the server has done it."""

    code: int
    body: str = ""
    after: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    size: int
    headers: tuple[tuple[str, str], ...] = ()


Fault = Break | Late | Status
Rule = Callable[[Asked], Fault | None]
"""What happens to a request; None: nothing. Called by many threads."""


class Proxy:
    """Listens on loopback. Its rule may be changed at any time, by any thread."""

    def __init__(self, upstream: str) -> None:
        """``upstream`` is ``host:port``."""
        self.upstream = upstream
        self.rule: Rule = _nothing
        self.asked: list[Asked] = []
        self.broken: list[tuple[Asked, Fault]] = []
        self._busy, self._idle = 0, threading.Condition()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The same as a client takes it."""
        return f"http://127.0.0.1:{self.port}"

    def decide(self, asked: Asked) -> Fault | None:
        """Note a request, and say what happens to it."""
        self.asked.append(asked)
        fault = self.rule(asked)
        if fault is not None:
            self.broken.append((asked, fault))
        return fault

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Around each request, up to the last byte of its answer."""
        with self._idle:
            self._busy += 1
        try:
            yield
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    def await_idle(self, within_s: float = 30.0) -> None:
        """Wait until no request is under way, those that a client gave up included."""
        with self._idle:
            if not self._idle.wait_for(lambda: self._busy == 0, within_s):
                raise TimeoutError(f"{self._busy} requests are under way after {within_s:.0f} s")

    def methods(self) -> Counter[str]:
        """How many requests of each method came."""
        return Counter(asked.method for asked in self.asked)

    @contextmanager
    def breaking(self, rule: Rule) -> Iterator[list[tuple[Asked, Fault]]]:
        """Break by a rule for the time inside; gives what was broken in it."""
        before = len(self.broken)
        found: list[tuple[Asked, Fault]] = []
        self.rule = rule
        try:
            yield found
        finally:
            self.rule = _nothing
            found.extend(self.broken[before:])


def once(when: Callable[[Asked], bool], fault: Fault, times: int = 1) -> Rule:
    """A rule for the first requests of a kind alone."""
    lock, left = threading.Lock(), [times]

    def rule(asked: Asked) -> Fault | None:
        if not when(asked):
            return None
        with lock:
            left[0] -= 1
            return fault if left[0] >= 0 else None

    return rule


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy


def _nothing(asked: Asked) -> Fault | None:
    return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    _upstream: http.client.HTTPConnection | None = None

    def do_any(self) -> None:
        with self.server.proxy.serving():
            self._serve()

    def _serve(self) -> None:
        body = self._body()
        headers = tuple(self.headers.items())
        fault = self.server.proxy.decide(Asked(self.command, self.path, len(body), headers))
        if isinstance(fault, Late):
            time.sleep(fault.seconds)  # it is what was asked for, not a wait for something
        if fault is Break.BEFORE:
            self.close_connection = True
            return
        if isinstance(fault, Status) and not fault.after:
            self._say(fault.code, [], fault.body.encode())
            return
        status, said, answer = self._pass_on(body)
        if fault is Break.ANSWER_LOST:
            self.close_connection = True
        elif fault is Break.ANSWER_CUT:
            self._say(status, said, answer, cut=True)
        elif isinstance(fault, Status):
            self._say(fault.code, [], fault.body.encode())
        else:
            self._say(status, said, answer)

    def handle(self) -> None:
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # a client that was ended keeps no manners

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_any

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def _pass_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        for fresh in (False, True):
            if self._upstream is None or fresh:
                self._upstream = http.client.HTTPConnection(self.server.proxy.upstream, timeout=300)
            try:
                return self._exchange(self._upstream, body)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                if fresh:
                    raise
        raise AssertionError

    def _exchange(
        self, upstream: http.client.HTTPConnection, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _PER_CONNECTION | {"content-length", "expect"}:
                upstream.putheader(name, value)
        upstream.putheader("Content-Length", str(len(body)))
        upstream.endheaders(body)
        answer = upstream.getresponse()
        return answer.status, answer.getheaders(), answer.read()

    def _say(
        self, status: int, headers: list[tuple[str, str]], body: bytes, cut: bool = False
    ) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length":
                length = value if self.command == "HEAD" else length
            elif name.lower() not in _PER_CONNECTION:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def log_message(self, format: str, *args: object) -> None:
        pass
