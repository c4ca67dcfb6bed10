"""A webhook on this machine, well or ill."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CUT, HANGS, TWICE = -1, -2, -3
"""Instead of a status: ends the connection, says nothing more, answers twice."""


class Hook:
    """``answers``: statuses of the next requests, 200 after them, or ``always``."""

    def __init__(self, always: int = 200) -> None:
        self.got: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.answers: list[int] = []
        self.paths: list[str] = []
        self.always, self.news, self.over = always, threading.Semaphore(0), threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook"

    def close(self) -> None:
        """End it, and whoever hangs in it."""
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


def _handler(hook: Hook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            code = hook.answers.pop(0) if hook.answers else hook.always
            if code in (200, TWICE):
                hook.got.append(json.loads(body))
                hook.headers.append(dict(self.headers))
                hook.bodies.append(body)
            hook.paths.append(self.path)
            self._answer(code)
            hook.news.release()

        def _answer(self, code: int) -> None:
            if code == CUT:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            elif code == HANGS:
                hook.over.wait()
            elif code == TWICE:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 500 No\r\n\r\n")
            else:
                self.send_response(code)
                if 300 <= code < 400:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

        def do_GET(self) -> None:
            hook.paths.append(f"GET {self.path}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
