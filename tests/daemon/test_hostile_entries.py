"""Whatever comes in from outside is answered, refused or recorded by name; nothing ends by it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from daemon.jobs.record import Wanted, new_job
from daemon.jobs.record_text import DamagedJob, decode, encode
from daemon.jobs.signals import SignalRefused, read_signal
from daemon.jobs.store import JobStore
from daemon.letters.letter import NotALetter, from_document, from_text
from daemon.letters.lines import line_of, members_of
from daemon.observe.control import NAME, ControlError, ControlServer, ask
from daemon.observe.metrics import StatusCollector
from daemon.observe.notify import Notifier
from daemon.observe.unix_socket import short_path
from daemon.pauses.store import Pause, Pauses, PausesUnreadable
from daemon.positions.topic_records import Entries
from daemon.source import opening
from daemon.spills.done import read_done
from daemon.spills.file import SpillFolder
from offsets.snapshot_text import DamagedSnapshot
from offsets.snapshot_text import decode as decode_snapshot
from tests.changes.test_printable import HOSTILE, JSON
from tests.daemon.flow import Flow, Log, pipeline
from tests.daemon.page import documents
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
    "jobs", "jobs-show", "jobs-ask", "jobs-add", "pause", "resume", "status", "tables-retry",
    "tables-rebuild", "tables-discard", "reload", "reload-state", "log-level",
]  # fmt: skip
MEMBERS = st.dictionaries(
    st.sampled_from(
        ["job", "request", "name", "reason", "target", "kind", "pipeline", "targets", "params",
         "level", "actor", "number", "discard", "paused", "force", "keep_old", "cancel"]
    ),
    JSON | st.sampled_from(["p", "copy.shop.a", "pause", "cancel", "load", "\udcff", ["\ud800"]]),
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
            flow.ask("jobs-ask", job="\udcff", request=request)
    with pytest.raises(ControlError, match="text that is not UTF-8"):
        flow.ask("pause", name="p", reason="caf\udce9")
    assert flow.ask("status")["state"] == "running"


@IN_ONE_FOLDER
@given(BYTES)
def test_a_job_s_file_may_hold_anything(tmp_path: Path, data: bytes) -> None:
    """It is reported, and the others are read."""
    store = JobStore(tmp_path)
    job = new_job(Wanted("load", "p"), 1, "load-1")
    store.save(job)
    (tmp_path / "jobs" / "bad.json").write_bytes(data)
    assert store.load().jobs == (job,)
    assert len(store.load().damage) == 1


@given(JSON, HOSTILE)
@example("\udcff", "\udcff")
def test_a_job_s_body_may_hold_anything(body: object, text: str) -> None:
    """With a version that fits; huge numbers and half characters too."""
    for inner in (body, {"id": text, "wanted": body}, {"id": "a", "memory": {"n": 2**70}}):
        with pytest.raises(DamagedJob):
            decode(json.dumps({"version": 1, "sha256": text, "body": inner}))


@given(HOSTILE, JSON)
@example("\udcff", {"\ud800": "\udcff"})
def test_a_job_keeps_the_text_of_its_end(text: str, value: object) -> None:
    """Whatever a database, a function or an argument said."""
    wanted = Wanted("load", text, (text,), {"x": value}, text, text)
    job = replace(new_job(wanted, 1, "load-1"), message=text, memory={text: value})
    encode(job).encode()
    assert decode(encode(job)) == job


def test_a_folder_in_the_place_of_a_job_is_damage(tmp_path: Path) -> None:
    """It keeps no daemon from starting."""
    (tmp_path / "jobs" / "load-1.json").mkdir(parents=True)
    jobs, damage = JobStore(tmp_path).load()
    assert jobs == ()
    assert "load-1.json" in damage[0]


@IN_ONE_FOLDER
@given(
    BYTES | st.sampled_from([b"[" * 60_000, b'{"version": 1, "paused": {"p": {"since_ms": "x"}}}'])
)
def test_the_pauses_may_hold_anything(tmp_path: Path, data: bytes) -> None:
    """Named, with the way out."""
    (tmp_path / "pauses.json").write_bytes(data)
    with pytest.raises(PausesUnreadable):
        Pauses(tmp_path).load()


@IN_ONE_FOLDER
@given(HOSTILE)
@example("\ud800\x1b")
def test_a_pause_is_recorded_with_any_reason(tmp_path: Path, text: str) -> None:
    """It is what a person typed."""
    (tmp_path / "pauses.json").unlink(missing_ok=True)
    Pauses(tmp_path).put("p", Pause(1, text))
    again = Pauses(tmp_path)
    again.load()
    assert again.now() == {"p": Pause(1, text)}


@given(BYTES)
def test_what_is_read_at_the_start_may_be_anything(data: bytes) -> None:
    """Positions, letters, records of the topics."""
    text = data.decode("utf-8", "surrogateescape")
    with pytest.raises(DamagedSnapshot):
        decode_snapshot(text)
    with pytest.raises(DamagedSnapshot):
        decode_snapshot(text, edited=True)
    members_of(data + b"\n")
    members_of(line_of({"a": 1})[:8] + data)
    with suppress(NotALetter):
        from_document(from_text(data))
    with pytest.raises(SignalRefused):
        read_signal(data, data, ["p"])
    with pytest.raises(SignalRefused):
        read_signal(None, data, ["p"])


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"a":' * 100_000])
def test_what_is_nested_without_end_is_damage(tmp_path: Path, deep: bytes) -> None:
    """The parser gives up with an error of its own kind."""
    with pytest.raises(NotALetter):
        from_text(deep)
    text = deep + b', "crc32": '
    assert members_of(text + b"%d}\n" % zlib.crc32(deep)) is None
    (tmp_path / "x.done").write_bytes(deep)
    assert read_done(tmp_path / "x.done") == {}
    (tmp_path / "p.spill").mkdir()
    (tmp_path / "p.spill" / "x.spill").write_bytes(deep + b"\n")
    assert SpillFolder(tmp_path, "p").held() == ()
    with pytest.raises(DamagedSnapshot):
        decode_snapshot(deep.decode())
    with pytest.raises(DamagedJob):
        decode(deep.decode())
    with pytest.raises(SignalRefused):
        read_signal(None, deep, ["p"])


@IN_ONE_FOLDER
@given(BYTES)
def test_a_done_file_may_be_anything(tmp_path: Path, data: bytes) -> None:
    """It counts as missing."""
    (tmp_path / "x.done").write_bytes(data)
    read_done(tmp_path / "x.done")


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


def test_entries_of_the_positions_topic_may_be_anything() -> None:
    """See ``Entries.apply``: it raises nothing."""
    entries = Entries("p", "g")
    for data in (b"\xff", b"{}", b"[1]", b'{"a": "\\ud800"}', b"", None):
        entries.apply(data, data, "t:0 offset 1")
