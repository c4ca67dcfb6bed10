"""Slow, silent, broken and many clients: probes and scrapes are answered all the while."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from daemon.admin import front_door
from daemon.admin.web import SHARED_S, WebServer
from tests.daemon.admin.page.documents import status, target

LARGE = status([target(f"lake.shop.t{n}", 500) for n in range(400)])
HERE = b"Host: 127.0.0.1\r\n\r\n"


@pytest.fixture
def server() -> Iterator[WebServer]:
    made = WebServer(("127.0.0.1", 0), lambda: LARGE)
    made.start()
    yield made
    made.close()


def connected(server: WebServer, small: bool = False) -> socket.socket:
    client = socket.socket()
    if small:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(10)
    client.connect(server.address)
    return client


def answer(server: WebServer, sent: bytes) -> bytes:
    with connected(server) as client:
        client.sendall(sent)
        got = bytearray()
        while part := client.recv(1 << 16):
            got += part
        return bytes(got)


def is_well(server: WebServer) -> bool:
    return answer(server, b"GET /healthz HTTP/1.1\r\n" + HERE).startswith(b"HTTP/1.0 200 ")


def trickle(client: socket.socket) -> None:
    client.sendall(b"GET /metr")


def silent(client: socket.socket) -> None:
    """Says nothing."""


def slow_reader(client: socket.socket) -> None:
    client.sendall(b"GET /metrics HTTP/1.1\r\n" + HERE)


def half_open(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\nHos")
    client.shutdown(socket.SHUT_WR)


def slow_probe(client: socket.socket) -> None:
    client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127")


@pytest.mark.parametrize("kind", [trickle, silent, slow_reader, half_open, slow_probe])
def test_many_bad_clients_hold_nobody_up(
    server: WebServer, kind: Callable[[socket.socket], None]
) -> None:
    """More than are served at the same time: neither a probe nor a scrape is turned away."""
    with ExitStack() as stack:
        for number in range(300):
            client = stack.enter_context(connected(server, small=True))
            kind(client)
            if number % 100 == 99:
                assert is_well(server)
        scrape = answer(server, b"GET /metrics HTTP/1.1\r\n" + HERE)
        assert scrape.startswith(b"HTTP/1.0 200 ")
        assert scrape.endswith(b"\n")
        assert b"lake.shop.t399" in scrape
        assert is_well(server)


def test_many_probes_cost_what_one_costs() -> None:
    """A document of a thousand tables takes a while: the last of a hundred does not wait for the
    documents of those before it."""
    made: list[float] = []

    def slow() -> dict[str, Any]:
        made.append(time.monotonic())
        threading.Event().wait(0.1)
        return LARGE

    server = WebServer(("127.0.0.1", 0), slow)
    server.start()
    with ExitStack() as stack:
        stack.callback(server.close)
        clients = [stack.enter_context(connected(server)) for _ in range(100)]
        begun = time.monotonic()
        for client in clients:
            client.sendall(b"GET /healthz HTTP/1.1\r\n" + HERE)
        assert all(client.recv(1 << 16).startswith(b"HTTP/1.0 200 ") for client in clients)
        assert len(made) <= 3 + (time.monotonic() - begun) / SHARED_S


def test_a_silent_client_has_an_end(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hears no word."""
    monkeypatch.setattr(front_door, "HEAD_WITHIN_S", 0.3)
    with connected(server) as client:
        assert client.recv(1) == b""
    assert is_well(server)


def test_a_trickling_client_has_an_end(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """In all: each byte is in time, the head is not."""
    monkeypatch.setattr(front_door, "HEAD_WITHIN_S", 0.3)
    pause, ended = threading.Event(), False
    with connected(server) as client:
        try:
            for _ in range(2_000):
                client.sendall(b"i")
                pause.wait(0.01)
        except (ConnectionResetError, BrokenPipeError):
            ended = True
    assert ended
    assert is_well(server)


def test_a_huge_head_is_refused(server: WebServer) -> None:
    """By its size, before anything is made of it."""
    sent = b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 60_000
    with connected(server) as client:
        client.sendall(sent)
        assert client.recv(100).startswith(b"HTTP/1.0 431 ")
    assert is_well(server)


@pytest.mark.parametrize(
    ("sent", "begins"),
    [
        (
            b"GET /healthz HTTP/1.1\r\n" + HERE + b"GET /metrics HTTP/1.1\r\n" + HERE,
            b"HTTP/1.0 200 ",
        ),
        (b"\xff\xfe\x00 /\r\n\r\n", b"HTTP/1.0 400 "),
        (b"GET /healthz\n\n", b"ok"),
        (b"POST / HTTP/1.1\r\n" + HERE, b"HTTP/1.0 501 "),
        (b"GET /\xff\x1b HTTP/1.1\r\n" + HERE, b"HTTP/1.0 404 "),
        (b"GET /?search=%ed%a0%80%1b HTTP/1.1\r\n" + HERE, b"HTTP/1.0 200 "),
        (b"GET / HTTP/9.9\r\n" + HERE, b"HTTP/1.0 505 "),
        (b"\r\n\r\n", b""),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + HERE, b"HTTP/1.0 431 "),
    ],
)
def test_any_request_is_answered_once(server: WebServer, sent: bytes, begins: bytes) -> None:
    """Also two at once, and none at all."""
    got = answer(server, sent)
    assert got.startswith(begins) or begins.removeprefix(b"HTTP/1.0 ") in got[:400]
    assert got.count(b"HTTP/1.0") <= 1
    assert b"\x1b" not in got
    assert is_well(server)


@pytest.mark.parametrize(
    ("host", "metrics"),
    [
        (b"127.0.0.1:9", 200),
        (b"[::1]", 200),
        (b"localhost", 200),
        (b"evil.example", 403),
        (b"", 403),
    ],
)
def test_the_metrics_refuse_a_foreign_name(server: WebServer, host: bytes, metrics: int) -> None:
    """As the page does. A probe has its status whoever asks, and its reasons are for those alone
    who call this machine by its name."""
    for path in (b"/metrics", b"/"):
        got = answer(server, b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, host))
        assert got.startswith(b"HTTP/1.0 %d " % metrics)
    assert answer(server, b"GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n" % host).endswith(
        b"\n\r\nok\n".lstrip(b"\n")
    )
    ready = answer(server, b"GET /readyz HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
    assert ready.startswith(b"HTTP/1.0 200 ")
