"""What a load remembers from step to step, as the job's ``memory``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from changes.model.model import TableName, TargetName
from daemon.operations.engine.port import Control
from daemon.operations.engine.record import Job
from daemon.operations.load.ports import LoadLog, LoadSettings, Tables
from databases.base.log_end import NOT_ASKED, LogEnd
from databases.base.port import KeyRange
from offsets.position import TopicPartition
from offsets.rebuild import Load
from offsets.snapshot import Snapshot

Stage = Literal[
    "new", "named", "filling", "filled", "following", "again", "failing", "failed", "done"
]
"""Where one target of the job stands.

``new``: nothing is begun; ``named``: the new table has a name; ``filling``: its rows are read;
``filled``: the end of what the reads saw is looked for in the log; ``following``: the stream is
applied over the rows until it has passed that; ``again``: this attempt is over and the next one
waits; ``failing``: it is given up, which is still to be recorded.
"""

OPEN: tuple[Stage, ...] = ("new", "named", "filling", "filled", "following", "again", "failing")


class StoredRange(msgspec.Struct, omit_defaults=True):
    """One range of keys."""

    low: tuple[str, ...] | None = None
    high: tuple[str, ...] | None = None

    @property
    def range(self) -> KeyRange:
        """As the database takes it."""
        return KeyRange(self.low, self.high)


class Filled(msgspec.Struct, omit_defaults=True):
    """One target.

    ``begun_ms``: when its messages began to be kept, in Unix milliseconds. ``parts``: the ranges in
    which it is read, None while they are not known; ``next``: the number of the first that is not
    written. ``reads``: of attempts that had begun to read, when they ended. ``behind``: of lanes
    the message that the next attempt begins behind. ``by_time``: partitions whose end nothing but
    time tells. ``number``: of the next attempt. ``log``: where the database's log was after the
    beginning: what was in it must be visible before anything is read; None while it is not known.
    ``past``: the position that a replica must have applied before it is read, None while it is not
    known, empty once it may be read. ``waited``: how many attempts to give the table its name the
    last wait came behind.
    """

    table: tuple[str, str]
    stage: Stage = "new"
    into: str = ""
    number: int = 0
    begun_ms: int = 0
    definition: str = ""
    parts: list[StoredRange] | None = None
    next: int = 0
    rows: int = 0
    expected: int = 0
    reads: list[int] = []
    behind: dict[str, int] = {}
    not_before_ms: int = 0
    why: str = ""
    by_time: list[str] = []
    log: LogEnd | None = None
    past: str | None = None
    waited: int = 0

    @property
    def source(self) -> TableName:
        """The table that it is read from."""
        return TableName(*self.table)

    @property
    def name(self) -> TargetName:
        """The table that is filled."""
        return TargetName.parse(self.into)


class Ending(msgspec.Struct):
    """The look for the end: what the reads of ``targets`` saw is at or before ``moment_ms``, and in
    the database's ``log``.

    ``scanned``: of each partition up to where it was looked through. ``ends``: where that is past
    the moment. ``proved_ms``: when the first partition was seen to be.
    """

    targets: list[str]
    moment_ms: int
    since_ms: int
    scanned: dict[str, int]
    ends: dict[str, int] = {}
    proved_ms: int | None = None
    by_time: list[str] = []
    ready: bool = False
    log: LogEnd = NOT_ASKED


class LoadMemory(msgspec.Struct, omit_defaults=True):
    """All of the job. ``given_up``: what has its name is ``done``, and nothing else will be."""

    targets: dict[str, Filled]
    ending: Ending | None = None
    given_up: bool = False

    @classmethod
    def of(cls, memory: Mapping[str, Any]) -> LoadMemory:
        """As it was remembered."""
        return msgspec.convert(memory, cls)

    def json(self) -> dict[str, Any]:
        """To be remembered."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def at(self, *stages: Stage) -> dict[str, Filled]:
        """The targets that stand there."""
        return {name: each for name, each in self.targets.items() if each.stage in stages}


def texts(places: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Places by partition, as JSON has them."""
    return {str(source): at for source, at in places.items()}


def places(by_text: Mapping[str, int]) -> dict[TopicPartition, int]:
    """The other way."""
    return {TopicPartition.parse(source): at for source, at in by_text.items()}


# What every step of a load has at hand.


@dataclass(slots=True)
class Step:
    """One step. ``memory`` is changed in place, and remembered when the step is over."""

    job: Job
    control: Control
    memory: LoadMemory
    tables: Tables
    log: LoadLog
    settings: LoadSettings
    clock: Callable[[], float]

    @property
    def now_ms(self) -> int:
        """Unix milliseconds."""
        return int(self.clock() * 1000)

    @property
    def pipeline(self) -> str:
        """The pipeline whose targets are loaded."""
        return self.job.wanted.pipeline

    def snapshot(self) -> Snapshot:
        """What is recorded of it now."""
        return self.control.snapshot(self.pipeline)


def load_of(snapshot: Snapshot, target: str, filled: Filled, job: str) -> Load | None:
    """This job's recorded load of a target into its present table, None where there is none."""
    rebuild = snapshot.rebuilds.get(target)
    if rebuild is None or rebuild.cancelled or rebuild.into != filled.into:
        return None
    load = rebuild.load
    return load if load is not None and load.job == job else None
