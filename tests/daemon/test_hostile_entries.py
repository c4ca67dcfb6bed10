"""Whatever comes in from outside is answered, refused or recorded by name; nothing ends by it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from daemon.admin.service_manager import Notifier
from daemon.admin.status.metrics import StatusCollector
from daemon.operations.signals import SignalRefused, read_signal
from daemon.state.control import NAME, ControlError, ControlServer, ask, short_path
from sources import opening
from tests.changes.model.test_printable import HOSTILE, JSON
from tests.daemon.admin.page import documents
from tests.daemon.flow import Flow, Log, pipeline
from tests.test_ratchet import ROOT

IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
BYTES = st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())


def fail(request: Any) -> Any:
    raise request.get("error", ControlError)(str(request.get("text", "\udcff\x1b[31m")))


def crash(request: Any) -> Any:
    raise ValueError("a fault of \ud800")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A control socket whose answers are as bad as its requests."""
    made = tmp_path_factory.mktemp("control")
    answers: dict[str, Callable[[Any], Any]] = {
        "echo": lambda request: request,
        "half": lambda _: {"\ud800": ["\udcff"]},
        "object": lambda _: object(),
        "fail": fail,
        "crash": crash,
    }
    server = ControlServer(made, answers)
    server.start()
    yield made
    server.close()


def sent(folder: Path, data: bytes) -> Any:
    with short_path(folder / NAME) as place, socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(place)
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return json.loads(sock.makefile("rb").readline().decode())


@given(BYTES | st.sampled_from([b"[" * 60_000, b"x" * 70_000, b"1" * 60_000, b'{"ask": "ec']))
def test_the_control_socket_answers_any_bytes(folder: Path, data: bytes) -> None:
    """And the next one, too."""
    assert sent(folder, data + b"\n")["ok"] is False
    assert ask(folder, {"ask": "echo"}) == {"ask": "echo"}


@given(st.sampled_from(["echo", "half", "object", "fail", "crash", "\udcff"]), HOSTILE, JSON)
def test_the_control_socket_answers_any_request(
    folder: Path, what: str, text: str, more: object
) -> None:
    """Also where the answer itself can't be written."""
    request = {"ask": what, "text": text, "more": more}
    reply = sent(folder, json.dumps(request).encode() + b"\n")
    assert reply["ok"] or reply["error"] is not None
    assert ask(folder, {"ask": "echo"}) == {"ask": "echo"}


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """A whole daemon."""
    log = Log()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(opening.ADAPTERS, "kafka", log.source)
        made = Flow(tmp_path_factory.mktemp("flow"), log, pipeline("p", "t", "*"))
        made.start()
        yield made
        made.stop()


ASKED = [
    "jobs", "jobs-show", "status", "operation", "operation-state",
]  # fmt: skip
OPERATIONS = ["pause", "drain", "tables retry", "tables rebuild", "jobs cancel", "offsets reset"]
PARAMS = st.dictionaries(
    st.sampled_from(["job", "name", "reason", "target", "pipeline", "force", "cancel", "to", "at"]),
    JSON | st.sampled_from(["p", "copy.shop.a", "earliest", True]),
    max_size=4,
)
MEMBERS = st.dictionaries(
    st.sampled_from(
        ["job", "name", "params", "act", "ticket", "from"]
    ),
    JSON | st.sampled_from(["\udcff", ["\ud800"], *OPERATIONS]) | PARAMS,
    max_size=5,
)  # fmt: skip


@settings(max_examples=60)
@given(st.sampled_from(ASKED), MEMBERS)
def test_a_daemon_outlives_any_request(flow: Flow, what: str, members: dict[str, object]) -> None:
    """What it is asked is its client's matter alone."""
    try:
        flow.ask(what, **members)
    except ControlError as error:
        str(error).encode()
    assert flow.ask("status")["state"] == "running"


def test_a_command_takes_any_argument(flow: Flow) -> None:
    r"""``binlogd jobs cancel $'\xff'``, with a daemon and without: one line, no traceback, and
    nothing that a terminal obeys."""
    (flow.folder / "elsewhere").mkdir(exist_ok=True)
    text = flow.config.read_text().replace("/state", "/elsewhere/state")
    (flow.folder / "elsewhere" / "config.toml").write_text(text)
    for config in (flow.config, flow.folder / "elsewhere" / "config.toml"):
        for command in ("cancel", "show", "pause"):
            said = subprocess.run(
                [sys.executable, "-m", "daemon.cli", "jobs", command, b"\xff\x1b[31m",
                 "--config", str(config)],
                capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
            assert said.returncode in (1, 2)
            assert b"Traceback" not in said.stderr
            assert said.stderr.decode().startswith("binlogd: ")
            assert b"\x1b" not in said.stderr + said.stdout
    assert flow.ask("status")["state"] == "running"


def test_an_argument_that_is_no_text_is_refused(flow: Flow) -> None:
    r"""As ``binlogd jobs cancel $'\xff'`` sends it. The daemon answers the next request."""
    for request in ("pause", "resume", "cancel"):
        with pytest.raises(ControlError, match="text that is not UTF-8"):
            flow.did(f"jobs {request}", job="\udcff")
    with pytest.raises(ControlError, match="text that is not UTF-8"):
        flow.did("pause", name="p", reason="caf\udce9")
    assert flow.ask("status")["state"] == "running"


@given(JSON, JSON)
def test_a_signal_may_ask_for_anything(data: object, id_: object) -> None:
    """It is refused, or understood with whole texts."""
    kinds = ("execute-snapshot", "stop-snapshot", "pause-snapshot")
    for type_ in kinds:
        document = {"type": type_, "id": id_, "data": data}
        try:
            found = read_signal(None, json.dumps(document).encode(), ["p"])
        except SignalRefused as error:
            str(error)
        else:
            found.id.encode()


@given(HOSTILE)
@example("\ud800\x1b")
def test_the_service_manager_hears_one_line(text: str) -> None:
    """In UTF-8."""
    place = f"\0binlogd-test-{id(text):x}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(place)
        Notifier("@" + place[1:]).status(text)
        (line,) = manager.recv(4096).decode().split("\n")
    assert line.startswith("STATUS=")


def test_a_label_is_whole_and_its_own() -> None:
    """Targets whose names differ in what can't be written stay two."""
    names = ["a\ud800", "a\\ud800", "a\n", "a\\n", "a\x1b"]
    shown = documents.status([documents.target(name) for name in names])
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: shown))
    text = generate_latest(registry).decode()
    lines = [line for line in text.splitlines() if line.startswith("binlogd_target_failing{")]
    assert len(set(lines)) == len(names)
