"""One daemon as a service: status, metrics, systemd's notify socket, a stuck actor, its secrets."""

from __future__ import annotations

import functools
import json
import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from daemon.admin.status.observer import FRESH_S
from daemon.state import control
from demo.broker import DevBroker
from settings.version import VERSION
from tests.integration.rig import Rig, canal
from tests.integration.test_process import CHECKOUT, Follower, daemon, ended

FROM_CREDENTIAL = "tide-pool-4411"
FROM_FILE = "basalt-9120-ridge"
FROM_VARIABLE = "lantern-7733"
WITHIN_S = 60.0
WATCHDOG_S = 1.5
"""How long the manager would wait for a ping before it ended the daemon."""


class Manager:
    """The service manager's end of the notify socket: it reads all the time."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._path = str(path)
        self._socket.bind(self._path)
        self._sent: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.lines: list[str] = []

    def _read(self) -> None:
        while sent := self._socket.recv(4096):
            self._sent.put(sent.decode().splitlines())

    def wait_for(self, line: str, within_s: float = WITHIN_S) -> None:
        """Hear until that line comes."""
        deadline = time.monotonic() + within_s
        while line not in self.hear(deadline):
            pass

    def hear(self, deadline: float) -> list[str]:
        """One datagram's lines. Raises queue.Empty."""
        heard = self._sent.get(timeout=max(0.01, deadline - time.monotonic()))
        self.lines += heard
        return heard

    def silent_for(self, line: str, seconds: float) -> bool:
        """Whether that line does not come for so long, everything sent before read first."""
        deadline = time.monotonic() + seconds
        try:
            while line not in self.hear(deadline):
                pass
        except queue.Empty:
            return True
        return False

    def close(self) -> None:
        self._socket.sendto(b"", self._path)
        self._reader.join()
        self._socket.close()


@dataclass
class Running:
    """The daemon that the tests of this file share, in the order in which they stand."""

    rig: Rig
    manager: Manager
    process: subprocess.Popen[str]
    port: int
    config: Path

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = control.ask(self.rig.folder / "state", {"ask": "status"})
        return found

    def until(self, met: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first status that meets a condition: each look is a question to the actors."""
        deadline = time.monotonic() + WITHIN_S
        while not met(status := self.status()):
            # Answers are shared for so long: asking sooner would only take the daemon's time.
            threading.Event().wait(FRESH_S)
            assert time.monotonic() < deadline, status
        return status

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def insert(self, *ids: int) -> None:
        table = f"{self.rig.db}.t"
        rows = [canal(table, "INSERT", [{"id": n, "name": "x", "qty": n}]) for n in ids]
        self.rig.produce(*rows)


def service_config(rig: Rig) -> Path:
    path = rig.write_config()
    text = path.read_text()
    for old, new in (
        ("[daemon]\n", "[daemon]\nstuck_after_s = 1.5\n"),
        ("[kafka]\n", '[kafka]\nsasl.password = "${credential:kafka}"\n'),
        ("[sink.lake.catalog]\n", '[sink.lake.catalog]\nx-token = "${file:token}"\n'),
        ("[spark]\n", '[spark]\nconf."spark.hadoop.a.secret.b" = "${THE_SECRET}"\n'),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text + '[metrics]\nlisten = "127.0.0.1:0"\n')
    (rig.folder / "token").write_text(FROM_FILE + "\n")
    (rig.folder / "credentials").mkdir()
    (rig.folder / "credentials" / "kafka").write_text(FROM_CREDENTIAL + "\n")
    return path


@pytest.fixture(scope="module")
def running(
    broker: DevBroker,
    lake_conf: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Running]:
    """A daemon under a manager that wants a ping every 1.5 s; ready when the first test begins."""
    spark = functools.partial(request.getfixturevalue, "spark")
    rig = Rig(broker, spark, lake_conf, tmp_path_factory.mktemp("service"))
    manager = Manager(rig.folder / "notify")
    config = service_config(rig)
    environment = os.environ | {
        "NOTIFY_SOCKET": str(rig.folder / "notify"), "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6)),
        "CREDENTIALS_DIRECTORY": str(rig.folder / "credentials"), "THE_SECRET": FROM_VARIABLE,
    }  # fmt: skip
    process = daemon("run", "--config", str(config), env=environment)
    follower = Follower(rig.log_file)
    try:
        follower.wait_for("metrics")
        (event,) = rig.events("metrics")
        made = Running(rig, manager, process, event["port"], config)
        assert control.ask(rig.folder / "state", {"ask": "status"})["state"] == "starting"
        code, said = made.get("/readyz")
        assert (code, said.splitlines()[0]) == (503, "starting")
        assert "pipeline p: is starting" in said
        while "READY=1" not in manager.lines:
            assert process.poll() is None, rig.log_file.read_text()
            manager.silent_for("READY=1", 2.0)
        yield made
    finally:
        process.kill()
        print(process.communicate()[1])  # shown when something failed
        follower.close()
        manager.close()


@pytest.mark.timeout(200)
def test_ready_means_assigned_and_sinks_open(running: Running) -> None:
    """When READY=1 has come, the status and /readyz say the same."""
    status = running.status()
    assert (status["state"], status["ready"], status["healthy"]) == ("running", True, True)
    (pipeline,) = status["pipelines"]
    assert (pipeline["stage"], pipeline["assigned"]) == ("running", True)
    assert running.get("/readyz") == (200, "ok\n")


def test_the_socket_is_the_owners_alone(running: Running) -> None:
    """Later it will take commands."""
    assert (running.rig.folder / "state" / control.NAME).stat().st_mode & 0o777 == 0o600


@pytest.fixture(scope="module")
def applied(running: Running) -> Running:
    """It has applied three rows of one table, and dropped a message of another database."""
    running.insert(1, 2, 3)
    running.rig.produce(canal("elsewhere.t", "INSERT", [{"id": 1, "name": "x", "qty": 1}]))
    running.until(
        lambda s: (
            (s["pipelines"][0]["messages_read"], s["pipelines"][0]["rows_written"]) == (4, 3)
            and not s["pipelines"][0]["lag_messages"]
        )
    )
    return running


def test_status_counts_what_was_applied(applied: Running) -> None:
    """Rows, positions, lag and freshness, per pipeline, partition and target."""
    status = applied.status()
    (pipeline,) = status["pipelines"]
    (partition,), (target,) = pipeline["partitions"], pipeline["targets"]
    assert (pipeline["messages_read"], pipeline["messages_dropped"]) == (4, 1)
    assert (partition["frontier"], partition["position"], partition["log_end"]) == (4, 4, 4)
    assert partition["held_by"] is None
    assert target["target"] == f"lake.{applied.rig.db}.t"
    assert (target["rows_read"], target["rows_written"], target["rows_stored"]) == (3, 3, 3)
    assert 0 <= target["freshness_seconds"] < 60
    assert (pipeline["lag_seconds"], target["write"], target["last_error"]) == (0.0, None, None)


def test_metrics_show_the_same_figures(applied: Running) -> None:
    """They are the status document, named as Prometheus wants it."""
    code, text = applied.get("/metrics")
    assert code == 200
    samples = {
        (s.name, s.labels.get("target")): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }
    target = f"lake.{applied.rig.db}.t"
    assert samples["binlogd_target_rows_written_total", target] == 3
    assert samples["binlogd_messages_read_total", None] == 4
    assert samples["binlogd_pipeline_lag_messages", None] == 0
    assert samples["binlogd_ready", None] == 1


def test_status_for_people_and_for_programs(applied: Running) -> None:
    """The command needs neither the daemon's secrets nor its environment, nor its configuration."""
    process = daemon("status", "--config", str(applied.config))
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert f"binlogd {VERSION} running, ready" in out
    assert f"lake.{applied.rig.db}.t" in out
    process = daemon("status", "--json", "--state-dir", str(applied.rig.folder / "state"))
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert json.loads(out)["pipelines"][0]["pipeline"] == "p"


def members(value: Any) -> Iterator[str]:
    """The names of all members of a document."""
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from members(inner)
    if isinstance(value, dict):
        yield from value


def test_every_figure_is_documented(running: Running) -> None:
    """``docs/watch.md`` names each member of the document and each metric."""
    text = (CHECKOUT / "docs" / "watch.md").read_text()
    words = set(re.findall(r"[a-z_0-9]+", text))
    status = running.status()
    families = text_string_to_metric_families(running.get("/metrics")[1])
    metrics = {s.name.removeprefix("binlogd_") for family in families for s in family.samples}
    # Marks are named by their lanes, those by the topic.
    named = {name for name in members(status) if ":" not in name}
    assert (named | metrics) - words == set()


def test_secrets_are_nowhere_to_be_seen(running: Running) -> None:
    """Not in the log at its most talkative, the JVM's, the status, or any command line."""
    folder = running.rig.folder
    files = [running.rig.log_file, *(folder / "state").glob("*.log"), *folder.glob("state/*.json")]
    said = {str(path): path.read_bytes() for path in files}
    said["status"] = json.dumps(running.status()).encode()
    said["metrics"] = running.get("/metrics")[1].encode()
    said |= command_lines()
    assert any(b"SparkSubmit" in line for line in said.values())
    for place, content in said.items():
        for secret in (FROM_CREDENTIAL, FROM_FILE, FROM_VARIABLE):
            assert secret.encode() not in content, place


def command_lines() -> dict[str, bytes]:
    """Of all processes of this machine, as ``ps`` sees them."""
    found: dict[str, bytes] = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found[str(path)] = path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    return found


@pytest.mark.timeout(200)
def test_a_stuck_actor_stops_the_watchdogs_ping(running: Running) -> None:
    """The offset file is a pipe that nobody reads, as a disk that hangs: the committer waits in
    ``open``. The pings end, /healthz tells who; when the disk is back, all is well again."""
    running.manager.wait_for("WATCHDOG=1")
    pipe = running.rig.folder / "state" / "p.offsets.json.new"
    os.mkfifo(pipe)
    running.insert(4)
    stuck = running.until(lambda s: not s["healthy"])
    assert [s["actor"] for s in stuck["silent"] if s["stuck"]] == ["p/committer[0]"]
    code, text = running.get("/healthz")
    assert (code, text.startswith("p/committer[0]: has not answered for ")) == (503, True)
    running.manager.wait_for("STATUS=stuck: p/committer[0]")
    assert running.manager.silent_for("WATCHDOG=1", WATCHDOG_S)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    pipe.unlink()
    running.manager.wait_for("WATCHDOG=1")
    os.close(reader)
    assert running.get("/healthz") == (200, "ok\n")
    status = running.until(lambda s: s["pipelines"][0]["lag_messages"] == 0)
    assert status["pipelines"][0]["targets"][0]["rows_written"] == 4


def test_an_idle_tail_of_transactions_is_no_lag(running: Running) -> None:
    """The log ends in what is never given to a reader: markers, and changes that were aborted."""
    rig = running.rig
    rig.produce_in_transaction(canal(f"{rig.db}.t", "INSERT", [{"id": 5, "name": "x", "qty": 5}]))
    rig.produce_in_transaction(
        canal(f"{rig.db}.t", "INSERT", [{"id": 6, "name": "x", "qty": 6}]), abort=True
    )
    end = rig.log_ends(rig.topic)[f"{rig.topic}:0"]
    status = running.until(lambda s: s["pipelines"][0]["partitions"][0]["confirmed"] == end)
    (pipeline,) = status["pipelines"]
    (partition,), (target,) = pipeline["partitions"], pipeline["targets"]
    assert end == 5 + 2 + 2  # two messages, and a marker behind each
    assert (partition["log_end"], partition["frontier"]) == (end, end)
    assert (pipeline["lag_messages"], pipeline["lag_seconds"]) == (0, 0.0)
    assert (partition["lag_messages"], target["lag_messages"]) == (0, 0)
    assert target["rows_written"] == 5


@pytest.mark.timeout(200)
def test_sigterm_is_told_with_the_time_it_needs(running: Running) -> None:
    """STOPPING=1 with the drain's deadline; then the socket is gone and status 3 says so."""
    running.process.send_signal(signal.SIGTERM)
    running.manager.wait_for("STOPPING=1")
    assert "EXTEND_TIMEOUT_USEC=95000000" in running.manager.lines
    assert ended(running.process) == (0, "")
    assert not (running.rig.folder / "state" / control.NAME).exists()
    status, said = ended(daemon("status", "--config", str(running.config)))
    assert status == 3
    assert said.startswith(f"binlogd: no daemon runs on {running.rig.folder / 'state'};")


def test_a_port_in_use_is_one_line(rig: Rig) -> None:
    """Status 2 before Spark is started; the address named."""
    path = rig.write_config()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path.write_text(path.read_text() + f'[metrics]\nlisten = "127.0.0.1:{port}"\n')
        status, said = ended(daemon("run", "--config", str(path)))
    assert (status, said) == (
        2, f"binlogd: metrics.listen 127.0.0.1:{port}: Address already in use\n"
    )  # fmt: skip
