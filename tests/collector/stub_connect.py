"""A Connect of a few lines, for tests of commands: it remembers what it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sources.base.port import GroupMember


class StubConnect(BaseHTTPRequestHandler):
    """One connector, that runs until it is stopped. ``asked``: what was done to it."""

    state = "RUNNING"
    asked: list[str]

    def do_GET(self) -> None:
        name = self.path.split("/")[2] if self.path.startswith("/connectors/") else ""
        running = type(self).state == "RUNNING"
        tasks = [{"id": 0, "state": "RUNNING", "worker_id": "w"}] if running else []
        answers: dict[str, Any] = {
            f"/connectors/{name}/status": {
                "name": name, "connector": {"state": type(self).state}, "tasks": tasks,
            },
            f"/connectors/{name}/config": {"name": name},
            f"/connectors/{name}/offsets": {"offsets": []},
        }  # fmt: skip
        self._answer(answers.get(self.path))

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        what = self.path.rsplit("/", 1)[-1]
        type(self).asked.append(what)
        type(self).state = {"stop": "STOPPED", "resume": "RUNNING"}.get(what, type(self).state)
        self._answer({})

    do_POST = do_DELETE = do_PUT

    def _answer(self, found: Any) -> None:
        body = json.dumps(found).encode()
        self.send_response(200 if found is not None else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def stub_connect() -> Iterator[tuple[str, list[str]]]:
    """Its address, and what was asked of it."""
    asked: list[str] = []
    handler = type("Handler", (StubConnect,), {"asked": asked, "state": "RUNNING"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


class NoTopics:
    """Topics of collectors where no broker is."""

    def keep(
        self, topic: str, settings: Mapping[str, str], must: Mapping[str, str] | None = None
    ) -> None:
        """Nothing."""

    def remove(self, topics: Sequence[str]) -> list[str]:
        return []

    def workers(self, group: str) -> list[GroupMember]:
        return []
