"""A broker, a source under load and one or more daemons; what became of the tables."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daemon.state.offset_file import OffsetFile
from tests.chaos.events import EventLog
from tests.chaos.patient import Cut, Patient
from tests.chaos.source import Place, Source
from tests.integration.rig import Rig

PATIENCE_S = 400.0
"""For each thing that is waited for. On a busy machine a start takes a minute, an end as long."""

ROUTES = [
    {"target": "lake.{database}.{table}"},
    {"target": "lake.{database}.{table}_log", "mode": "append"},
]
SECTION: Mapping[str, Any] = {
    "target": None, "route": ROUTES, "ddl": {"drop_column": "follow"},
    "on_bad_record": "dead-letter", "max_bad_records_per_hour": 10_000,
}  # fmt: skip

COMPACTED = [
    (
        'kind = "iceberg"',
        'kind = "iceberg"\ncompaction.max_deletes = 8\ncompaction.small_files = 8',
    )
]
"""Often enough to be met by the faults."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a fault did. Lost and doubled are messages, by the changelog and the dead letters;
    ``differ`` names the tables that are not as the source's."""

    fault: str
    messages: int
    letters: int
    statements: int
    lost: int
    doubled: int
    differ: tuple[str, ...]
    recovery_s: float
    """From the fault, or its end where it lasts, to the next write that is published."""
    restarts: int
    said: str
    """The last line that the daemon said on standard error."""

    @property
    def good(self) -> bool:
        """Nothing lost, nothing twice."""
        return not self.differ and not self.lost and not self.doubled

    def as_dict(self) -> dict[str, object]:
        """For the file."""
        return asdict(self) | {"good": self.good}


def compare(wanted: Sequence[Place], found: Sequence[Place]) -> tuple[int, int]:
    """How many places are not there, and how many are there that are not wanted, or once more."""
    expected, there = Counter(wanted), Counter(found)
    return (expected - there).total(), (there - expected).total()


class Lab:
    """One fault's world."""

    def __init__(
        self,
        rig: Rig,
        fault: str,
        cuts: Iterable[Cut] = (),
        section: Mapping[str, Any] = SECTION,
        shared: Mapping[str, Sequence[str]] | None = None,
        settings: Sequence[tuple[str, str]] = (),
        **source: Any,
    ) -> None:
        """``shared``: changelogs that several tables feed, beside each table's own. ``settings``:
        what is replaced in the configuration's text."""
        self.rig = rig
        self.fault = fault
        self._section = section
        self._shared = dict(shared or {})
        # A quick start, and time for what has piled up: the machine may be busy.
        self._settings = [
            ("[daemon]", "[daemon]\nprocessors = 2"),
            ("drain_timeout_s = 60", "drain_timeout_s = 150"),
            *(COMPACTED if rig.compacts else ()),
            *rig.settings,
            *settings,
        ]
        topic = f"chaos-{rig.db}"
        self.logs: dict[str, EventLog] = {}
        self.patients: dict[str, Patient] = {}
        more: dict[str, Any] = {"seed": 7, "frontiers": self._frontiers} | source
        self.source = Source(rig.broker.bootstrap, topic, rig.db, **more)
        self.source.start()
        self.patient = self.member("one", cuts)

    def member(self, name: str, cuts: Iterable[Cut] = ()) -> Patient:
        """Start a daemon of the group, with folders and a log of its own."""
        folder = self.rig.folder / name
        folder.mkdir(exist_ok=True)
        pipeline = self.rig.pipeline(topics=[self.source.topic], **self._section)
        text = self.rig.write_config(p=pipeline).read_text()
        for part in ("state", "staging", "log"):
            text = text.replace(f"{self.rig.folder}/{part}", f"{folder}/{part}")
        for old, new in self._settings:
            assert old in text, old
            text = text.replace(old, new)
        config = folder / "config.toml"
        config.write_text(text)
        self.logs[name] = EventLog(folder / "log" / "binlogd.log")
        self.patients[name] = Patient(config, folder / "stderr.txt", cuts)
        return self.patients[name]

    @property
    def state_dir(self) -> Path:
        """Of the first daemon."""
        return self.rig.folder / "one" / "state"

    def count(self, event: str, member: str = "one") -> int:
        """How often a daemon's log has an event."""
        return self.logs[member].count(event)

    def wait_for(self, event: str, times: int = 1, member: str = "one") -> float:
        """Wait until a daemon's log has so many more of an event; when that was."""
        return self.reach(event, self.count(event, member) + times, member)

    def reach(self, event: str, count: int, member: str = "one") -> float:
        """Wait until a daemon's log has had so many of an event; when the last one was."""
        try:
            return self.logs[member].reach(event, count, PATIENCE_S)
        except TimeoutError as error:
            raise AssertionError(f"{self.fault}: {error} {self._reports()}") from error

    def wait_for_death(self, number: int = 1) -> float:
        """Wait until the first daemon has ended by itself so often; when that was."""
        try:
            return self.patient.wait_for_death(number, PATIENCE_S)
        except TimeoutError as error:
            raise AssertionError(f"{self.fault}: {error} {self._reports()}") from error

    def _log_ends(self) -> dict[int, int]:
        log_ends = self.rig.log_ends(self.source.topic)
        return {int(place.rpartition(":")[2]): end for place, end in log_ends.items()}

    def settle(self) -> None:
        """End the load, wait until all of it is applied, and end the daemons."""
        self.source.stop()
        deadline = time.monotonic() + PATIENCE_S
        pause = threading.Event()
        # The ends anew each time: the last transaction's marker may come after its commit returned.
        while self._frontiers() != (ends := self._log_ends()):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{self.fault}: {self._frontiers()} instead of {ends} {self._reports()}"
                )
            pause.wait(0.1)
        for name, patient in self.patients.items():
            if patient.process.poll() is None:
                self.leave(name)

    def leave(self, name: str) -> None:
        """End a daemon in good order."""
        status = self.patients[name].stop(PATIENCE_S)
        assert status == 0, f"{self.fault}: {name} ended with {status} {self._reports()}"

    def outcome(self, recovery_s: float) -> Outcome:
        """Compare every table, every change and every dead letter with the source."""
        differ = [
            table.name
            for table in self.source.tables
            if self.rig.select(table.name, table.columns, "id") != table.expected()
        ]
        lost, doubled = compare(self.source.bad, list(set(self._letters())))
        changes = self.source.changes
        for log, names in ({f"{name}_log": [name] for name in changes} | self._shared).items():
            wanted = [place for name in names for place in changes[name]]
            found = self.rig.select(log, ("_partition", "_offset"), "_offset")
            missing, more = compare(wanted, found)
            lost, doubled = lost + missing, doubled + more
        return Outcome(
            self.fault, self.source.count, len(self.source.bad), self.source.statements,
            lost, doubled, tuple(differ), round(recovery_s, 1),
            sum(patient.restarts for patient in self.patients.values()), self.patient.said(),
        )  # fmt: skip

    def _letters(self) -> Iterator[Place]:
        """Of all members. After a crash a letter may be there twice, and each is in two targets."""
        for path in self.rig.folder.glob("*/state/p.dead-letters.jsonl"):
            for line in path.read_text().splitlines():
                letter = json.loads(line)
                yield letter["partition"], letter["offset"]

    def _frontiers(self) -> dict[int, int]:
        """Of each partition the highest: who has lost one keeps what he knew of it."""
        found: dict[int, int] = {}
        for name in list(self.patients):  # the source asks, too, on its own thread
            snapshot = OffsetFile(self.rig.folder / name / "state", "p").load().snapshot
            for place, state in snapshot.partitions.items() if snapshot is not None else ():
                found[place.partition] = max(state.frontier, found.get(place.partition, 0))
        return found

    def _reports(self) -> str:
        return str({name: (p.statuses, p.said(5)) for name, p in self.patients.items()})

    def close(self) -> None:
        """Whatever happened, nothing of it stays."""
        self.source.close()
        for patient in self.patients.values():
            patient.close()
        for log in self.logs.values():
            log.close()


@contextmanager
def lab(rig: Rig, fault: str, cuts: Iterable[Cut] = (), **more: Any) -> Iterator[Lab]:
    """A lab that is cleared up."""
    made = Lab(rig, fault, cuts, **more)
    try:
        yield made
    finally:
        made.close()


def write(outcomes: Sequence[Outcome], path: Path) -> None:
    """Keep what was found."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([outcome.as_dict() for outcome in outcomes], indent=1) + "\n")
