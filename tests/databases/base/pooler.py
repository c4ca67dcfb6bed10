"""A pooler in transaction mode for PostgreSQL, as PgBouncer is one: each transaction of a client
goes to the next of two server sessions. For servers that ask for no password."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle

_SSL = 80877103


def _exactly(wire: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        some = wire.recv(count - len(found))
        if not some:
            raise ConnectionError
        found += some
    return found


def _message(wire: socket.socket) -> tuple[bytes, bytes]:
    """A message's letter, and all of it."""
    head = _exactly(wire, 5)
    return head[:1], head + _exactly(wire, struct.unpack("!I", head[1:])[0] - 4)


class _Backend:
    """A session with the server, shared by clients."""

    def __init__(self, port: int, startup: bytes) -> None:
        self.wire = socket.create_connection(("127.0.0.1", port))
        self.wire.sendall(startup)
        self.greeting = self.answer(None)

    def answer(self, to: socket.socket | None) -> bytes:
        """Pass on what it answers up to ReadyForQuery; gives that all, where nobody gets it."""
        found = b""
        while True:
            letter, message = _message(self.wire)
            if to is None:
                found += message
            else:
                to.sendall(message)
            if letter == b"Z":
                self.idle = message[5:] == b"I"
                return found


def _serve(client: socket.socket, port: int) -> None:
    while True:
        head = _exactly(client, 8)
        length, code = struct.unpack("!II", head)
        startup = head + _exactly(client, length - 8)
        if code != _SSL:
            break
        client.sendall(b"N")
    backends = [_Backend(port, startup) for _ in range(2)]
    client.sendall(backends[0].greeting)
    turns = cycle(backends)
    backend = next(turns)
    try:
        while True:
            letter, message = _message(client)
            if letter == b"X":
                return
            backend.wire.sendall(message)
            if letter not in (b"Q", b"S"):
                continue  # the client waits for no answer before it says Sync
            backend.answer(client)
            if backend.idle:
                backend = next(turns)
    finally:
        for one in backends:
            one.wire.close()


def _client(client: socket.socket, port: int) -> None:
    with client, suppress(OSError):
        _serve(client, port)


@contextmanager
def pooled(port: int) -> Iterator[int]:
    """The pooler's own port, before the server at ``port``."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=_client, args=(client, port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        listening.close()
