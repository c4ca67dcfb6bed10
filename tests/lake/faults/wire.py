"""A proxy of bytes before PostgreSQL: it cuts a connection once a statement has been done."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

_LOOPBACK = "127.0.0.1"


class Wire:
    """Listens on loopback. ``cut_after``: the answer to the next message with these bytes is lost,
    and the connection with it. Any thread may set it."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self.cut_after: bytes | None = None
        self.refuse = False
        """Whether new connections are cut at once."""
        self.cuts = 0
        self._listener = socket.create_server((_LOOPBACK, 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refuse:
                    client.close()
                    continue
                server = socket.create_connection((_LOOPBACK, self._upstream))
                lost = threading.Event()
                for ends in ((client, server, lost, True), (server, client, lost, False)):
                    threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, lost: threading.Event, asks: bool
    ) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if asks and self.cut_after is not None and self.cut_after in data:
                    self.cut_after = None
                    lost.set()
                if not asks and lost.is_set():
                    self.cuts += 1
                    break  # the server has done it and says so: nobody hears that
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
