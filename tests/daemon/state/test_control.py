"""The control socket: what it answers, whom it lets in, what a client is told."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from daemon.state import control
from daemon.state.control import (
    NAME,
    ControlError,
    ControlServer,
    NoSocket,
    NotRunning,
    ask,
    short_path,
)
from daemon.state.offset_file import lock_state_dir


def fail(request: Mapping[str, Any]) -> object:
    raise ControlError(f"no such table: {request['table']}")


def crash(request: Mapping[str, Any]) -> object:
    raise ValueError("a fault")


ANSWERS = {"status": lambda _: {"state": "running"}, "fail": fail, "crash": crash}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A state directory with a path longer than a socket address may be."""
    long = tmp_path / ("d" * 100)
    long.mkdir()
    server = ControlServer(long, ANSWERS)
    server.start()
    yield long
    server.close()


def raw(folder: Path, sent: bytes) -> Any:
    with short_path(folder / NAME) as place, socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(place)
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        return json.loads(sock.makefile("rb").readline())


def test_a_question_gets_its_answer(folder: Path) -> None:
    """One line each way, as often as wanted."""
    assert ask(folder, {"ask": "status"}) == {"state": "running"}
    assert ask(folder, {"ask": "status"}) == {"state": "running"}


def test_only_the_owner_may_connect(folder: Path) -> None:
    """From the first moment: the mode is set before the file is there."""
    assert (folder / NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"status\n", "not JSON: Expecting value"),
        (b"[1]\n", 'an object with "ask" is required'),
        (b'{"ask": 1}\n', 'an object with "ask" is required'),
        (b'{"ask": "stop"}\n', "unknown request 'stop'; known: crash, fail, status"),
        (b'{"ask": "fail", "table": "t"}\n', "no such table: t"),
        (b'{"ask": "crash"}\n', "ValueError: a fault"),
        (b"x" * 70_000, "a request is one line of at most 65536 bytes"),
        (b"", "not JSON: Expecting value"),
    ],
)
def test_a_bad_question_is_told_what_is_wrong(folder: Path, sent: bytes, error: str) -> None:
    """And the next one is served."""
    reply = raw(folder, sent)
    assert reply["ok"] is False
    assert reply["error"].startswith(error)
    assert ask(folder, {"ask": "status"}) == {"state": "running"}


def test_a_daemon_of_another_version_is_to_be_restarted(folder: Path) -> None:
    """As after an upgrade: the new command asks what the old daemon does not know."""
    with pytest.raises(ControlError, match=r"it is another version .*restart"):
        ask(folder, {"ask": "stop"})


def test_a_client_that_says_nothing_holds_nobody_for_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection has a deadline, the next client waits in the queue."""
    monkeypatch.setattr(control, "SERVE_WITHIN_S", 1.0)
    with short_path(folder / NAME) as place, socket.socket(socket.AF_UNIX) as silent:
        silent.connect(place)
        assert ask(folder, {"ask": "status"}, timeout_s=10) == {"state": "running"}


def test_a_dead_daemons_socket_is_replaced(tmp_path: Path) -> None:
    """After kill -9 it is still there, and nobody listens."""
    left = socket.socket(socket.AF_UNIX)
    with short_path(tmp_path / NAME) as place:
        left.bind(place)
    left.close()
    with pytest.raises(NotRunning, match="no daemon runs on"):
        ask(tmp_path, {"ask": "status"})
    server = ControlServer(tmp_path, ANSWERS)
    server.start()
    assert ask(tmp_path, {"ask": "status"}) == {"state": "running"}
    server.close()
    assert not (tmp_path / NAME).exists()


def test_a_file_in_its_place_is_not_removed(tmp_path: Path) -> None:
    """It is not ours."""
    (tmp_path / NAME).write_text("mine")
    with pytest.raises(OSError, match="exists and is not a socket"):
        ControlServer(tmp_path, ANSWERS).start()
    assert (tmp_path / NAME).read_text() == "mine"


@pytest.mark.parametrize("there", [True, False])
def test_no_daemon_is_told_from_a_broken_one(tmp_path: Path, there: bool) -> None:
    """With and without a state directory."""
    folder = tmp_path if there else tmp_path / "none"
    with pytest.raises(NotRunning) as caught:
        ask(folder, {"ask": "status"})
    assert str(caught.value) == f"no daemon runs on {folder}"


def test_a_daemon_without_its_socket_is_not_taken_for_none(tmp_path: Path) -> None:
    """It starts, or somebody has removed the socket. What a dead one has left is none."""
    with lock_state_dir(tmp_path):
        said = f"process {os.getpid()} uses .*: it starts or ends; if it does neither"
        with pytest.raises(NoSocket, match=said):
            ask(tmp_path, {"ask": "status"})
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    with pytest.raises(NotRunning, match="no daemon runs on"):
        ask(tmp_path, {"ask": "status"})


def test_a_daemon_that_does_not_answer_is_told(tmp_path: Path) -> None:
    """It is there, and stuck: another message than when none runs."""
    release = threading.Event()
    server = ControlServer(tmp_path, {"status": lambda _: release.wait(10)})
    server.start()
    with pytest.raises(ControlError, match=r"no answer within 0\.1 s"):
        ask(tmp_path, {"ask": "status"}, timeout_s=0.1)
    release.set()
    server.close()


def test_whoever_may_not_ask_is_told_who_may(tmp_path: Path) -> None:
    """Another user gets no further than the state directory."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o000)
    was = os.geteuid()
    if was == 0:  # who is root may read everything
        os.seteuid(65534)
    try:
        with pytest.raises(ControlError) as caught:
            ask(folder, {"ask": "status"})
    finally:
        os.seteuid(was)
    assert str(caught.value) == (
        f"{folder / NAME}: Permission denied: only the daemon's own user and root may ask it"
    )
