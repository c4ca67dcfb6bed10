"""Accepts HTTP clients and bounds each of them: no client costs a thread, whatever it does.

One thread reads the requests' heads and writes the answers, without waiting for any client. Only a
whole request is handed on, and an answer is bytes: so 500 clients that trickle, or read slowly, or
say nothing hold up nobody. When there are too many, the oldest that is not served yet goes.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

HEAD_BYTES = 16 * 1024
"""Of a request's line and headers. A browser sends one or two kilobytes."""

HEAD_WITHIN_S = 5.0
"""From the connection to the head's end."""

SERVED_WITHIN_S = 15.0
"""From the head's end to the answer's last byte."""

MOST_CLIENTS = 256
"""At the same time; each is a descriptor and some kilobytes."""

MOST_ANSWERS = 64
"""That are being made or written at the same time: one may have megabytes. Probes are no part of
them, and the oldest that is being written makes room."""

Serve = Callable[[bytes, Callable[[], bool], Callable[[bytes], None]], None]
"""Gets a head, whether its client is still here, and what takes the answer, from any thread. It has
the answer made elsewhere and returns at once. On the door's thread."""

TOO_LARGE = b"HTTP/1.0 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n"


@dataclass(eq=False, slots=True)
class _Client:
    socket: socket.socket
    peer: str
    deadline: float
    head: bytearray = field(default_factory=bytearray)
    is_probe: bool = False
    served: bool = False
    """Its head is whole."""
    answer: memoryview | None = None
    """What is still to be written of its answer."""


class FrontDoor:
    """The connections of one listening socket. One thread runs ``serve``."""

    def __init__(
        self, listener: socket.socket, serve: Serve, is_probe: Callable[[bytes], bool]
    ) -> None:
        self._listener = listener
        self._serve_one = serve
        self._is_probe = is_probe
        self._clients: dict[_Client, None] = {}
        self._made: list[tuple[_Client, bytes]] = []
        self._closed = False
        self._wake_in, self._wake_out = socket.socketpair()
        for each in (listener, self._wake_in, self._wake_out):
            each.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._log = structlog.get_logger().bind(actor="web")

    def close(self) -> None:
        """Have ``serve`` end. Any thread."""
        self._closed = True
        self._wake()

    def serve(self) -> None:
        """Until it is closed; then all connections end."""
        while not self._closed:
            try:
                self._round()
            except Exception:
                # Nobody awaits this thread: the next client must find it.
                self._log.exception("web_request_failed")
        for client in list(self._clients):
            self._end(client)
        for each in (self._selector, self._wake_in, self._wake_out):
            each.close()

    def _round(self) -> None:
        now = time.monotonic()
        first = min((client.deadline for client in self._clients), default=now + 60.0)
        ready = self._selector.select(max(0.0, first - now))
        for key, _ in ready:
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is self._wake_out:
                with suppress(BlockingIOError):
                    self._wake_out.recv(4096)
            elif key.data in self._clients:  # not ended by another one in this round
                self._guarded(key.data)
        while self._made:
            client, answer = self._made.pop(0)
            if client in self._clients:
                client.answer = memoryview(answer)
                self._guarded(client)
        now = time.monotonic()
        for client in [c for c in self._clients if c.deadline <= now]:
            self._end(client)

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # No descriptor is left, for example: one goes, and the next round tries again.
            self._log.warning("web_not_served", reason=str(error))
            self._make_room()
            return
        connection.setblocking(False)
        if len(self._clients) >= MOST_CLIENTS:
            self._make_room()
        peer = address[0] if isinstance(address, tuple) else ""
        client = _Client(connection, peer, time.monotonic() + HEAD_WITHIN_S)
        self._clients[client] = None
        self._selector.register(connection, selectors.EVENT_READ, client)
        self._guarded(client)  # what it says is mostly there

    def _make_room(self) -> None:
        """End the oldest of whom most are here, those first whose request is not whole."""
        if not self._clients:
            return
        unserved = [client for client in self._clients if not client.served]
        others = [client for client in self._clients if not client.is_probe]
        found = unserved or others or list(self._clients)
        counts = Counter(client.peer for client in found)
        self._end(max(found, key=lambda client: counts[client.peer]))  # the first of these

    def _guarded(self, client: _Client) -> None:
        try:
            if client.answer is not None:
                self._write(client, client.answer)
            elif not client.served:
                self._read(client)
        except BlockingIOError:
            pass
        except OSError as error:
            self._log.debug("web_client_gone", reason=str(error))
            self._end(client)

    def _read(self, client: _Client) -> None:
        while not client.served:
            part = client.socket.recv(4096)
            if not part:
                self._end(client)
                return
            client.head += part
            end, length = _end_of_head(client.head)
            if end >= 0:
                self._take(client, bytes(client.head[: end + length]))
            elif len(client.head) > HEAD_BYTES:
                client.served, client.answer = True, memoryview(TOO_LARGE)
                self._write(client, client.answer)

    def _take(self, client: _Client, head: bytes) -> None:
        client.served, client.is_probe = True, self._is_probe(head)
        client.deadline = time.monotonic() + SERVED_WITHIN_S
        self._selector.unregister(client.socket)
        if not client.is_probe:
            busy = [c for c in self._clients if c.served and not c.is_probe]
            if len(busy) > MOST_ANSWERS:
                self._end(next((c for c in busy if c.answer is not None), busy[0]))
        if client in self._clients:
            self._serve_one(
                head, lambda: client in self._clients, lambda made: self._answered(client, made)
            )

    def _answered(self, client: _Client, answer: bytes) -> None:
        """Any thread."""
        self._made.append((client, answer))
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # full: it is awake; or closed
            self._wake_in.send(b"x")

    def _write(self, client: _Client, answer: memoryview) -> None:
        while answer:
            try:
                sent = client.socket.send(answer)
            except BlockingIOError:
                client.answer = answer
                self._await_room(client)
                return
            answer = answer[sent:]
        with suppress(OSError):
            client.socket.shutdown(socket.SHUT_WR)
            client.socket.recv(HEAD_BYTES)  # what is left unread would cut the answer off
        self._end(client)

    def _await_room(self, client: _Client) -> None:
        try:
            self._selector.modify(client.socket, selectors.EVENT_WRITE, client)
        except KeyError:
            self._selector.register(client.socket, selectors.EVENT_WRITE, client)

    def _end(self, client: _Client) -> None:
        self._clients.pop(client, None)
        with suppress(KeyError, ValueError):
            self._selector.unregister(client.socket)
        client.socket.close()


def _end_of_head(head: bytearray) -> tuple[int, int]:
    """Where the empty line is, and how long; -1: it has not come."""
    for mark in (b"\r\n\r\n", b"\n\n"):
        if (found := head.find(mark)) >= 0:
            return found, len(mark)
    return -1, 0
