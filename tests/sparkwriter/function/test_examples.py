"""The examples of functions as sinks: into a real Redis, to a real HTTP server."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import redis

from actors.runtime.java import CHECKOUT
from actors.runtime.programs import free_port
from changes.model.errors import SinkUnavailable
from changes.model.model import TruncateTable
from sparkwriter.function.calls import StartHandler
from sparkwriter.function.process import HandlerProcess
from sparkwriter.function.store import HandlerStore
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from tests.needs import tool
from tests.sparkwriter.conftest import LANE


class Sinks:
    """Makes sinks with the examples; their processes end with the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[HandlerStore] = []

    def __call__(self, entry: str, **settings: str) -> LedgeredWriter:
        start = StartHandler(entry, (str(CHECKOUT / "examples"),), settings)
        process = HandlerProcess(start, 60.0, 1 << 30)
        self._made.append(HandlerStore(process, self._folder / "state"))
        return LedgeredWriter(self._made[-1])

    def close(self) -> None:
        """End them."""
        for store in self._made:
            store.close()


@pytest.fixture
def sinks(tmp_path: Path) -> Iterator[Sinks]:
    """See ``Sinks``."""
    made = Sinks(tmp_path)
    yield made
    made.close()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[redis.Redis]:
    """A server of our own, with nothing in it."""
    port = free_port()
    server = subprocess.Popen(
        [tool("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
         "--dir", str(tmp_path), "--daemonize", "no"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    for line in server.stdout:
        if "Ready to accept connections" in line:
            break
    try:
        yield redis.Redis(port=port, decode_responses=True)
    finally:
        server.kill()
        server.wait()


def test_a_cache_follows_the_table(
    sinks: Sinks, cache: redis.Redis, staging, orders, tmp_path: Path
) -> None:
    """Rows come, change and go; a statement empties it. What is applied again, or late, changes
    nothing."""
    port = cache.connection_pool.connection_kwargs["port"]
    sink = sinks("redis_cache:apply", url=f"redis://127.0.0.1:{port}")
    first = staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", None)), 1)
    sink.write(first)
    sink.write(staging.batch(orders(("U", 1, "A", 9), ("D", 2, None, None)), 2))
    newest = cache.hgetall("cache.shop.orders:1")
    assert newest == {"_version": "3", "id": "1", "note": "A", "n": "9"}
    assert cache.hgetall("cache.shop.orders:2") == {"_version": "3", "_deleted": "1"}
    assert cache.ttl("cache.shop.orders:2") > 80_000
    # A daemon that lost its state reads from the beginning: its versions are lower.
    late = Sinks(tmp_path / "late")
    late("redis_cache:apply", url=f"redis://127.0.0.1:{port}").write(first)
    late.close()
    assert cache.hgetall("cache.shop.orders:1") == newest
    assert cache.hgetall("cache.shop.orders:2") == {"_version": "3", "_deleted": "1"}
    sink.write(staging.batch(None, 3, ddl=[[TruncateTable()]]))
    assert cache.keys() == []


class Endpoint:
    """Takes what is posted; answers first with the statuses that it is given."""

    def __init__(self) -> None:
        self.taken: list[tuple[dict[str, str], list[dict[str, Any]]]] = []
        self.statuses: list[int] = []
        endpoint = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = endpoint.statuses.pop(0) if endpoint.statuses else 204
                if status == 204:
                    lines = [json.loads(line) for line in body.decode().splitlines()]
                    endpoint.taken.append((dict(self.headers), lines))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self._server.server_port}/changes"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """See ``Endpoint``."""
    made = Endpoint()
    yield made
    made.close()


def test_an_endpoint_fails_and_comes_back(sinks, endpoint: Endpoint, staging, orders) -> None:
    """The batch is offered again, whole, and taken once."""
    sink = sinks("http_push:apply", url=endpoint.url)
    batch = staging.batch(orders(("U", 1, "a", 1), ("D", 2, None, None)), 1)
    endpoint.statuses = [503, 429]
    for _ in range(2):
        with pytest.raises(SinkUnavailable, match=r"HTTP Error (503|429)"):
            sink.write(batch)
    assert sink.write(batch).hwms == {LANE: 1}
    ((headers, lines),) = endpoint.taken
    assert headers["X-Target"] == "cache.shop.orders"
    assert json.loads(headers["X-Offsets"]) == {"shop:0": [-1, 1]}
    assert [(line["_op"], line["id"]) for line in lines] == [("U", 1), ("D", 2)]


def test_an_endpoint_refuses_rows(sinks, endpoint: Endpoint, staging, orders, tmp_path) -> None:
    """They are kept with the reason, and the stream goes on."""
    endpoint.statuses = [422]
    sink = sinks("http_push:apply", url=endpoint.url)
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    sink.write(staging.batch(orders(("U", 2, "b", 2)), 2))
    (line,) = (tmp_path / "state" / "rejected.jsonl").read_text().splitlines()
    assert (json.loads(line)["reason"], json.loads(line)["row"]["id"]) == ("HTTP 422", 1)
    assert [row["id"] for _, rows in endpoint.taken for row in rows] == [2]
