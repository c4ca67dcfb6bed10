"""Which writer a branch belongs to, read from its name, and whether that one may still run.

A write's branch is left behind when its process dies in the middle. The next run that opens
the table reads from the name which run made the branch, where and when. The rule is in decision 6.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import structlog

from changes.model.model import TableName, TargetName
from settings.shell import quoted
from sparkwriter.iceberg.java import LakeTable

BRANCH_PREFIX = "binlogd-"
_NAME = re.compile(
    rf"{BRANCH_PREFIX}(?P<state>[0-9a-f]{{12}})-(?P<place>[0-9a-f]{{12}})"
    r"-(?P<pid>\d+)-(?P<started>\d+)-(?P<created>\d+)-[0-9a-f]{8}"
)


@dataclass(frozen=True, slots=True)
class Owner:
    """One run of a daemon.

    ``state`` is its state directory's id, 12 hexadecimal digits; ``place`` where its process id
    means something (one boot of one machine, one container); ``started`` in clock ticks since
    that boot tells it from a later process of the same id.
    """

    state: str
    place: str
    pid: int
    started: int

    def branch(self, now_s: float) -> str:
        """A new name for the branch of one attempt made now (seconds since the epoch)."""
        parts = (self.state, self.place, self.pid, self.started, int(now_s), uuid4().hex[:8])
        return BRANCH_PREFIX + "-".join(map(str, parts))


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a branch's name says: its owner, and when it was made by the owner's clock."""

    owner: Owner
    created_s: int


def this_process(state: str) -> Owner:
    """The owner that this process is. ``state`` is the id of the directory that it has locked."""
    pid = os.getpid()
    return Owner(state, _place(), pid, process_start(pid) or 0)


def anonymous() -> Owner:
    """An owner without a state directory: nobody can claim later that its attempts are dead."""
    return this_process(uuid4().hex[:12])


def attempt_of(branch: str) -> Attempt | None:
    """What the name says, None where it is not an attempt's."""
    if (found := _NAME.fullmatch(branch)) is None:
        return None
    owner = Owner(found["state"], found["place"], int(found["pid"]), int(found["started"]))
    return Attempt(owner, int(found["created"]))


def is_dead(attempt: Attempt, me: Owner, now_s: float, foreign_age_s: float) -> bool:
    """Whether the attempt's run has ended for sure, or is so old that it counts as ended.

    Where process ids are comparable they decide. A run of our own state directory in another
    place has ended, since we hold the directory's lock. Of all others only the age is known.
    """
    owner = attempt.owner
    if owner == me:
        return False
    if owner.place == me.place:
        return process_start(owner.pid) != owner.started
    return owner.state == me.state or now_s - attempt.created_s > foreign_age_s


def process_start(pid: int) -> int | None:
    """When a process of this place began, in clock ticks since boot; None: there is no such."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in parentheses and may hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _place() -> str:
    """This boot of this machine and this namespace of process ids, as 12 hexadecimal digits.

    Where the system doesn't tell, something that no other process has: its attempts are foreign
    to everybody, so that only their age counts.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        place = f"{boot} {os.readlink('/proc/self/ns/pid')} {socket.gethostname()}"
    except OSError:
        place = uuid4().hex
    return sha256(place.encode()).hexdigest()[:12]


# Snapshots that others put on a target: each is reported once, before our next write hides it.

SAME_ROWS = "replace"
"""The operation of a snapshot that has the rows of the one before."""

log: Any = structlog.get_logger(__name__)


class ForeignSnapshots:
    """Those that were reported. Shared by the writers of a sink; any thread."""

    def __init__(self) -> None:
        self._told: set[int] = set()
        self._lock = threading.Lock()

    def tell(self, target: TargetName, table: LakeTable, snapshots: Iterable[int]) -> None:
        """Warn of those that changed rows, unless this process did already."""
        for snapshot in snapshots:
            operation = table.operation(snapshot)
            if operation == SAME_ROWS or not self._is_news(snapshot):
                continue
            engine = table.summary(snapshot, "engine-name")
            app = table.summary(snapshot, "app-id") or table.summary(snapshot, "spark.app.id")
            log.warning(
                "foreign_snapshot",
                target=str(target),
                snapshot=snapshot,
                operation=operation,
                by=" ".join(filter(None, (engine, app))) or "unknown",
                what="others changed rows of the table: it may differ from its source until it is"
                f" read again: binlogd tables rebuild {quoted(target)}",
            )

    def _is_news(self, snapshot: int) -> bool:
        with self._lock:
            news = snapshot not in self._told
            self._told.add(snapshot)
        return news


# How a table in the lake says which of the source's tables it is of.

SOURCE = "binlogd.source"
"""Table property: the source's table, ``["database", "table"]``. A table without it takes the
first one that writes."""


def source_text(table: TableName | None) -> Mapping[str, str]:
    """The property that says it; none where it is not known, or several."""
    return {} if table is None else {SOURCE: json.dumps(table, ensure_ascii=False)}


def source_of(table: LakeTable, renaming: Mapping[str, Any] | None) -> TableName | None:
    """What a table says. ``renaming``: how it got the name that it has, where that is not noted."""
    said = (renaming or {}).get("source") or json.loads(table.property(SOURCE) or "null")
    return None if said is None else TableName(*map(str, said))
