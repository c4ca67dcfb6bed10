"""The control socket: one line of JSON asks, one line of JSON answers.

``{"ask": "status"}`` is answered ``{"ok": true, "answer": …}``, anything unknown or broken ``{"ok":
false, "error": "…"}``. One thread serves one connection after another, each under one deadline. It
only asks the actors and holds none of their state.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from changes.model.printable import holds_half, json_text, printable_within_lines, reason_of
from daemon.state.owner import owner
from settings.exit import Exit

# Unix sockets of our own: a file that is the owner's alone, at a path of any length.


def claim(listener: socket.socket, path: Path) -> None:
    """Bind to a path. A socket of a dead process is replaced. Raises OSError."""
    if path.exists() and not stat.S_ISSOCK(path.lstat().st_mode):
        raise OSError(errno.EEXIST, "exists and is not a socket", str(path))
    path.unlink(missing_ok=True)
    # Before bind: the file is created with this mode, so nobody else can ever connect.
    os.fchmod(listener.fileno(), 0o600)
    with short_path(path) as place:
        listener.bind(place)


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """The path as a socket address: 107 bytes at most, and a state directory may be longer."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


NAME = "control.sock"

LONGEST_REQUEST = 64 * 1024
"""Bytes. A request names a thing or two; a longer one is not one of ours."""

LONGEST_REPLY = 1 << 30
"""Bytes. Of thousands of targets it is some megabytes."""

SERVE_WITHIN_S = 5.0
"""The limit for one connection, from accept to the last byte. A client that hangs delays the next
one for so long. The socket is in a folder of our own, so its clients are operators."""

Answer = Callable[[Mapping[str, Any]], Any]
"""Answers one kind of request. The client gets its exceptions as errors. On the control thread."""


UNKNOWN = "unknown request"
"""What the answer to a request begins with that a daemon of another version does not know."""


class ControlError(Exception):
    """The daemon did not carry out the request: one line."""


class NotRunning(ControlError):
    """No daemon serves that state directory. ``status``: a command's, where it needs one."""

    status = Exit.NOT_RUNNING


class NoSocket(NotRunning):
    """A daemon has it, and nobody can ask that one."""

    status = Exit.PIPELINE_FAILED


class ControlServer:
    """Serves while it is open. ``start`` runs under the state directory's lock, so there is one
    server."""

    def __init__(self, state_dir: Path, answers: Mapping[str, Answer]) -> None:
        self._path = state_dir / NAME
        self._answers = dict(answers)
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        import structlog  # a sixth of what a command costs that only asks

        self._log = structlog.get_logger().bind(actor="control")

    def start(self) -> None:
        """Listen. A socket of a dead daemon is replaced. Raises OSError."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        claim(listener, self._path)
        listener.listen(16)
        self._socket = listener
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving, and remove the file."""
        if self._socket is None or self._thread is None:
            return
        self._closed.set()
        self._path.unlink(missing_ok=True)
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept, which close alone does not
        self._thread.join(SERVE_WITHIN_S)
        self._socket.close()

    def _serve(self) -> None:
        assert self._socket is not None
        while not self._closed.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if not self._closed.is_set():  # no descriptor, or the client went at once
                    self._log.warning("control_not_served", reason=str(error))
                    self._closed.wait(1.0)
                continue
            with connection:
                try:
                    self._one(connection)
                except OSError as error:
                    self._log.info("control_client_gone", reason=str(error))
                except Exception:
                    # Nobody awaits this thread: the next client must find it.
                    self._log.exception("control_failed")

    def _one(self, connection: socket.socket) -> None:
        deadline = time.monotonic() + SERVE_WITHIN_S
        line = _read_line(connection, LONGEST_REQUEST, deadline)
        reply = self._reply(line)
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        connection.sendall(reply + b"\n")

    def _reply(self, line: bytes | None) -> bytes:
        """The whole reply, made inside the guard: what can't be written is a fault of its answer,
        as what was raised is."""
        try:
            if line is None:
                raise ControlError(f"a request is one line of at most {LONGEST_REQUEST} bytes")
            return _written({"ok": True, "answer": self._answer(line)})
        except ControlError as error:
            return _written({"ok": False, "error": printable_within_lines(str(error))})
        except Exception as error:
            # The client gets a fault in an answer, and it is logged; the next client is served.
            self._log.exception("control_failed")
            return _written({"ok": False, "error": f"{type(error).__name__}: {reason_of(error)}"})

    def _answer(self, line: bytes) -> Any:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ControlError(f"not JSON: {error}") from error
        if not isinstance(request, dict) or not isinstance(request.get("ask"), str):
            raise ControlError('an object with "ask" is required')
        if holds_half(request):
            raise ControlError("the request holds text that is not UTF-8; no name is such a text")
        answer = self._answers.get(request["ask"])
        if answer is None:
            known = ", ".join(sorted(self._answers))
            raise ControlError(f"{UNKNOWN} {request['ask']!r}; known: {known}")
        return answer(request)


def ask(state_dir: Path, request: Mapping[str, Any], timeout_s: float = 10.0) -> Any:
    """Send a request to the daemon of a state directory. Raises NotRunning, ControlError."""
    path = state_dir / NAME
    deadline = time.monotonic() + timeout_s
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(timeout_s)
            with short_path(path) as place:
                sock.connect(place)
            sock.sendall(json.dumps(request).encode() + b"\n")
            line = _read_line(sock, LONGEST_REPLY, deadline)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
        raise _nobody_serves(state_dir) from error
    except PermissionError as error:
        raise ControlError(
            f"{path}: {error.strerror}: only the daemon's own user and root may ask it"
        ) from error
    except TimeoutError as error:
        raise ControlError(f"{path}: no answer within {timeout_s:g} s") from error
    except OSError as error:
        raise ControlError(f"{path}: {error.strerror or error}") from error
    try:
        if line is None:
            raise ValueError("too long")
        reply = json.loads(line)
    except ValueError as error:
        raise ControlError(f"{path}: the answer was cut short") from error
    if not reply["ok"]:
        said: str = reply["error"]
        if said.startswith(UNKNOWN):
            said = (
                f"the running daemon does not know {request['ask']!r}: it is another version than "
                "this command; restart it (`systemctl restart binlogd`), then try again"
            )
        raise ControlError(said)
    return reply["answer"]


def _nobody_serves(state_dir: Path) -> NotRunning:
    if (process := owner(state_dir)) is None:
        return NotRunning(f"no daemon runs on {state_dir}")
    return NoSocket(
        f"process {process} uses {state_dir}, and nobody serves {state_dir / NAME}: it starts or "
        "ends; if it does neither, the socket was removed: restart it"
    )


def _written(reply: Mapping[str, Any]) -> bytes:
    return json_text(reply).encode()


def _read_line(sock: socket.socket, longest: int, deadline: float) -> bytes | None:
    """A line, or what there is of it at the end; None: it is longer. Raises OSError."""
    got = bytearray()
    while b"\n" not in got:
        if (left := deadline - time.monotonic()) <= 0:
            raise TimeoutError("the line has not come in time")
        sock.settimeout(left)
        part = sock.recv(64 * 1024)
        got += part
        if not part:
            break
        if len(got) > longest:
            return None
    return bytes(got.split(b"\n", 1)[0])
