"""One fault against a daemon under load, and what became of the tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from daemon.offset_file import OffsetFile
from tests.chaos.source import Source
from tests.integration.rig import Rig

CHECKOUT = Path(__file__).parents[2]
PATIENCE_S = 180.0
ROUTES = [
    {"target": "lake.{database}.{table}"},
    {"target": "lake.{database}.{table}_log", "mode": "append"},
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a fault did. Lost and doubled are messages, by the changelog; ``equal`` the tables."""

    fault: str
    messages: int
    lost: int
    doubled: int
    equal: bool
    recovery_s: float
    restarts: int

    @property
    def good(self) -> bool:
        """Nothing lost, nothing twice."""
        return self.equal and not self.lost and not self.doubled

    def as_dict(self) -> dict[str, object]:
        """For the file."""
        return asdict(self)


class Patient:
    """A daemon process that is brought up again whenever it ends by itself."""

    def __init__(self, rig: Rig, config: Path, fault: str = "none", times: int = 1) -> None:
        self._rig = rig
        self._config = config
        self._faults = [(fault, times)]
        self._stopping = False
        self.restarts = -1
        self.deaths: list[float] = []
        self.statuses: list[int] = []
        self.process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self) -> subprocess.Popen[bytes]:
        fault, times = self._faults.pop() if self._faults else ("none", 1)
        self.restarts += 1
        return subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.faulty", fault, str(times),
             "run", "--config", str(self._config)],
            cwd=CHECKOUT, stdout=subprocess.DEVNULL,
            stderr=(self._rig.folder / "stderr.txt").open("ab"), start_new_session=True,
        )  # fmt: skip

    def _keep(self) -> None:
        while True:
            status = self.process.wait()
            self.statuses.append(status)
            if self._stopping:
                return
            self.deaths.append(time.monotonic())
            if self.restarts >= 5:
                return
            self.process = self._start()

    def signal(self, number: int) -> None:
        """To the daemon alone."""
        self.process.send_signal(number)

    def jvm(self) -> int:
        """The process id of its JVM."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            name, rest = stat.rpartition(")")[0], stat.rpartition(")")[2].split()
            if name.endswith("(java") and int(rest[1]) == self.process.pid:
                return int(entry.name)
        raise AssertionError("the daemon has no JVM")

    def stop(self) -> int:
        """End it in good order; its exit status."""
        self._stopping = True
        self.process.send_signal(signal.SIGTERM)
        self._keeper.join(PATIENCE_S)
        if self._keeper.is_alive():
            self.process.kill()
            raise AssertionError("it did not end after SIGTERM")
        return self.statuses[-1]

    def kill(self) -> None:
        """For the end of a test that failed."""
        self._stopping = True
        if self.process.poll() is None:
            self.process.kill()
        self._keeper.join(10)


class Lab:
    """A broker, a rig and a source for one fault."""

    def __init__(self, rig: Rig, fault: str, times: int, **source: int) -> None:
        self.rig = rig
        self.fault = fault
        self.source = Source(rig.broker.bootstrap, f"chaos-{rig.db}", rig.db, seed=7, **source)
        self.source.start()
        pipeline = rig.pipeline(topics=[self.source.topic], target=None, route=ROUTES)
        self.config = rig.write_config(p=pipeline)
        self.patient = Patient(rig, self.config, fault, times)
        self._seen = 0

    def wait_for(self, event: str, times: int = 1) -> float:
        """Wait until the daemon's log has so many more of an event; when that was."""
        wanted = self._count(event) + times
        deadline = time.monotonic() + PATIENCE_S
        pause = threading.Event()
        while self._count(event) < wanted:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.fault}: no {event} in {PATIENCE_S:.0f} s")
            pause.wait(0.1)
        return time.monotonic()

    def wait_for_death(self) -> float:
        """Wait until the daemon has ended by itself; when that was."""
        deadline = time.monotonic() + PATIENCE_S
        pause = threading.Event()
        while not self.patient.deaths:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.fault}: the daemon did not die of it")
            pause.wait(0.1)
        return self.patient.deaths[-1]

    def settle(self) -> None:
        """End the load, wait until all of it is applied, and end the daemon."""
        self.source.stop()
        ends = self.rig.log_ends(self.source.topic)
        deadline = time.monotonic() + PATIENCE_S
        pause = threading.Event()
        while self._frontiers() != ends:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.fault}: {self._frontiers()} instead of {ends}")
            pause.wait(0.2)
        status = self.patient.stop()
        assert status == 0, f"{self.fault}: exit status {status} after SIGTERM"

    def outcome(self, recovery_s: float) -> Outcome:
        """Compare every table and every message with the source."""
        lost = doubled = 0
        equal = True
        for name, rows in self.source.rows.items():
            expected = sorted((key, *row) for key, row in rows.items())
            equal = equal and self.rig.rows(name) == expected
            places = Counter((row[1], row[2]) for row in self.rig.rows(f"{name}_log", "_offset"))
            wanted = Counter(self.source.changes[name])
            lost += sum((wanted - places).values())
            doubled += sum((places - wanted).values())
        return Outcome(
            self.fault, self.source.count, lost, doubled, equal, round(recovery_s, 1),
            self.patient.restarts,
        )  # fmt: skip

    def close(self) -> None:
        """Whatever happened, nothing of it stays."""
        self.source._stopping.set()
        self.patient.kill()

    def _count(self, event: str) -> int:
        try:
            text = self.rig.log_file.read_text()
        except FileNotFoundError:
            return 0
        return text.count(f'"event": "{event}"')

    def _frontiers(self) -> dict[str, int]:
        snapshot = OffsetFile(self.rig.folder / "state", "p").load().snapshot
        if snapshot is None:
            return {}
        return {str(place): state.frontier for place, state in snapshot.partitions.items()}


@contextmanager
def lab(rig: Rig, fault: str, times: int = 1, **source: int) -> Iterator[Lab]:
    """A lab that is cleared up."""
    made = Lab(rig, fault, times, **source)
    try:
        yield made
    finally:
        made.close()


def cut(rig: Rig, fault: str, times: int) -> Outcome:
    """The daemon kills itself at a named step and is started again."""
    with lab(rig, fault, times) as made:
        died = made.wait_for_death()
        recovered = made.wait_for("written")
        made.settle()
        return made.outcome(recovered - died)


def kill_jvm(rig: Rig) -> Outcome:
    """The JVM child is killed in mid-stream."""
    with lab(rig, "jvm killed") as made:
        made.wait_for("written", 3)
        os.kill(made.patient.jvm(), signal.SIGKILL)
        killed = time.monotonic()
        recovered = made.wait_for("written")
        made.settle()
        return made.outcome(recovered - killed)


def broker_away(rig: Rig) -> Outcome:
    """The broker is killed as by a power cut and comes back."""
    with lab(rig, "broker killed") as made:
        made.wait_for("written", 3)
        rig.broker.kill()
        threading.Event().wait(3)
        rig.broker.start()
        back = time.monotonic()
        recovered = made.wait_for("written", 2)
        made.settle()
        return made.outcome(recovered - back)


def stopped_past_the_poll_interval(rig: Rig) -> Outcome:
    """SIGSTOP for longer than the group waits: the member is thrown out and comes back."""
    kafka = {"max.poll.interval.ms": 6000, "session.timeout.ms": 6000}
    rig.kafka.update(kafka)
    with lab(rig, "stopped past max.poll.interval.ms") as made:
        made.wait_for("written", 3)
        made.patient.signal(signal.SIGSTOP)
        threading.Event().wait(9)
        made.patient.signal(signal.SIGCONT)
        woken = time.monotonic()
        recovered = made.wait_for("written", 2)
        made.settle()
        return made.outcome(recovered - woken)


def disk_full(rig: Rig) -> Outcome:
    """The state directory takes nothing for a while: only time is lost."""
    with lab(rig, "disk-full", 3) as made:
        made.wait_for("offsets_not_stored")
        began = time.monotonic()
        made.wait_for("offsets_not_stored", 15)
        recovered = made.wait_for("written")
        made.settle()
        return made.outcome(recovered - began)


def damaged_offset_file(rig: Rig) -> Outcome:
    """kill -9, and the offset file is cut short before the restart."""

    def damage() -> None:
        path = OffsetFile(rig.folder / "state", "p").path
        path.write_bytes(path.read_bytes()[:-30])

    with lab(rig, "offset file damaged") as made:
        made.wait_for("written", 4)
        before = made.patient.process
        damage()
        before.kill()
        died = made.wait_for_death()
        recovered = made.wait_for("written")
        made.settle()
        assert made._count("offset_file_damaged") >= 1
        return made.outcome(recovered - died)


STEPS: dict[str, tuple[str, int]] = {
    "after stage": ("after-stage", 9),
    "in the middle of a write": ("in-merge", 5),
    "after the commit, before Written": ("after-commit", 5),
    "between file and Kafka": ("between-file-and-kafka", 4),
    "in a rebalance": ("in-rebalance", 1),
    "during the start": ("during-start", 1),
}


def _cutter(step: str) -> Callable[[Rig], Outcome]:
    fault, times = STEPS[step]
    return lambda rig: cut(rig, fault, times)


FAULTS: dict[str, Callable[[Rig], Outcome]] = {
    **{step: _cutter(step) for step in STEPS},
    "jvm killed": kill_jvm,
    "broker killed": broker_away,
    "stopped past max.poll.interval.ms": stopped_past_the_poll_interval,
    "state directory full": disk_full,
    "offset file damaged": damaged_offset_file,
}


def write(outcomes: list[Outcome], path: Path) -> None:
    """Keep what was found."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([outcome.as_dict() for outcome in outcomes], indent=1) + "\n")
