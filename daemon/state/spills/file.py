"""Spill files: the raw messages of targets in quarantine, or whose sink is away, one file each, in
the state directory.

``<state>/<pipeline>.spill/<hash>.spill``: a line of JSON that names the target and the reason, then
records: length and CRC-32 of the body (4 bytes each, big-endian), and the body: 1 byte of flags (1:
DDL), 2 of the partition's name's length, the name, 8 of the offset, the message. An empty record
ends each append. What a crash cut short was never acknowledged, and what stands behind the last
such end is cut off before the next append. Half an append is no spill: the target may hold more
than it by then, by a write that ended late, and its release would be refused.

A replayed spill leaves a ``.done`` file that says up to where. The offset file may list the spill
until the next save, and a listed spill without a file would be a loss. The ``.done`` file vouches
for no more than that: the target may be in quarantine again before the next start.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from actors.contract.raw_messages import SpillRecord, SpillState
from actors.runtime.files import FILE_MODE, close_folder, private_opener, sync
from changes.model.model import TargetName
from daemon.state.room import StateRoom
from daemon.state.spills import done
from offsets.position import TopicPartition
from offsets.snapshot import SpillMark

_HEAD = struct.Struct(">II")
_BODY = struct.Struct(">BH")
_OFFSET = struct.Struct(">q")
_VERSION = 2
"""1 did not say where an append ends: each whole record counts there."""

_END = _HEAD.pack(0, zlib.crc32(b""))
"""Ends an append: a record without a body."""

_APPENDED = SpillRecord(TopicPartition("", 0), -1, False, b"")
"""What ``_read`` gives for it."""

_LONGEST = 1 << 30
"""Bytes of one record. A larger length is damage, not a message."""

_PAGE_BYTES = 1 << 20


class SpillError(Exception):
    """A spill can't be used: one line that names the file."""


@dataclass(frozen=True, slots=True)
class Found:
    """A spill found at a start."""

    target: TargetName
    reason: str
    state: SpillState
    first: SpillRecord
    records: Callable[[], Iterator[SpillRecord]]
    """All its records, read when iterated."""
    away: bool = False
    """Its sink was away when it was begun."""


class Spill:
    """One target's file. Only the processor's thread calls it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.target: TargetName | None = None
        self.reason = ""
        self.away = False
        self._begin = self._end = 0
        self._messages = 0
        self._lanes: dict[TopicPartition, tuple[int, int]] = {}
        if path.exists():
            self._scan()

    @property
    def state(self) -> SpillState:
        """What it holds. Positions in it go from 0 to ``bytes``."""
        return SpillState(self._end - self._begin, self._messages, dict(self._lanes))

    def append(
        self,
        target: TargetName,
        reason: str,
        records: Iterable[SpillRecord],
        away: bool = False,
    ) -> SpillState:
        """Append the records that it lacks, and fsync. Raises OSError: then none of them is
        there. ``away`` is noted where the file is begun."""
        is_new = self.target is None
        how = "r+b" if self.path.exists() else "w+b"
        with open(self.path, how, opener=private_opener) as file:
            os.fchmod(file.fileno(), FILE_MODE)  # the file may come from an earlier version
            file.truncate(self._end)
            file.seek(self._end)
            before = (self._begin, self._end, self._messages, dict(self._lanes))
            try:
                if is_new:
                    said = {"target": list(target), "reason": reason, "away": away}
                    self._begin = self._end = _write_header(file, said)
                for record in records:
                    self._write(file, record)
                self._end += file.write(_END)
                file.flush()
                os.fsync(file.fileno())
                if is_new:
                    sync(self.path.parent)
            except BaseException:
                self._begin, self._end, self._messages, self._lanes = before
                raise
        if is_new:
            self.target, self.reason, self.away = target, reason, away
        return self.state

    def read(self, position: int, limit: int) -> tuple[list[SpillRecord], int]:
        """Records from a position on, at least one unless it is the end, and the next position."""
        found: list[SpillRecord] = []
        with self.path.open("rb") as file:
            place = self._begin + position
            file.seek(place)
            while place < self._end and place - self._begin - position < limit:
                got = _read(file)
                if got is None:
                    raise SpillError(f"{self.path}: byte {place} is damaged")
                if got is not _APPENDED:
                    found.append(got)
                place = file.tell()
        return found, place - self._begin

    def records(self) -> Iterator[SpillRecord]:
        """All its records, in chunks."""
        place = 0
        while place < self._end - self._begin:
            page, place = self.read(place, _PAGE_BYTES)
            yield from page

    def end(self) -> None:
        """Delete the replayed spill; only its ``.done`` stays. Raises OSError; then the caller
        retries."""
        if self.target is None:  # nothing was ever spilled, or not whole
            self.path.unlink(missing_ok=True)
            return
        path = self.path.with_suffix(".done")
        lasts = done.read_done(path)  # of an earlier spill, which may have gone further
        for source, (_, last) in self._lanes.items():
            lasts[source] = max(last, lasts.get(source, last))
        done.write_done(path, lasts)
        self.path.unlink(missing_ok=True)
        sync(self.path.parent)
        self.target, self._lanes = None, {}
        self._begin = self._end = self._messages = 0

    def _write(self, file: IO[bytes], record: SpillRecord) -> None:
        lane = self._lanes.get(record.source)
        if lane is not None and record.offset <= lane[1]:
            return
        name = str(record.source).encode()
        offset = _OFFSET.pack(record.offset)
        body = b"".join((_BODY.pack(record.ddl, len(name)), name, offset, record.value))
        file.write(_HEAD.pack(len(body), zlib.crc32(body)))
        file.write(body)
        self._end += _HEAD.size + len(body)
        self._count(record)

    def _count(self, record: SpillRecord) -> None:
        first, _ = self._lanes.get(record.source, (record.offset, 0))
        self._lanes[record.source] = (first, record.offset)
        self._messages += 1

    def _scan(self) -> None:
        with self.path.open("rb") as file:
            line = file.readline()
            try:
                header = json.loads(line)
                self.target, self.reason = TargetName(*header["target"]), header["reason"]
                self.away = bool(header.get("away"))  # earlier versions knew quarantine alone
                later = header["binlogd_spill"] > _VERSION
            except (ValueError, KeyError, TypeError, RecursionError):
                return  # cut short while it was created: nothing of it was acknowledged
            if later:
                raise SpillError(f"{self.path} is of a later version of binlogd")
            self._begin = self._end = file.tell()
            self._count_whole(file, each=header["binlogd_spill"] < 2)
        if not self._messages:
            self.target, self._begin, self._end = None, 0, 0

    def _count_whole(self, file: IO[bytes], each: bool) -> None:
        """Count the records of whole appends; ``each``: the file does not say where these end."""
        whole = self._end, 0, dict(self._lanes)
        while (record := _read(file)) is not None:
            if record is not _APPENDED:
                self._count(record)
            if each or record is _APPENDED:
                whole = file.tell(), self._messages, dict(self._lanes)
        self._end, self._messages, self._lanes = whole


class SpillFolder:
    """All spills of one pipeline. The main thread reads it first, then each processor uses its own
    targets' files. The caller holds the state directory's lock."""

    def __init__(self, state_dir: Path, pipeline: str, room: StateRoom | None = None) -> None:
        """``room``: of the state directory; without one nothing bounds it."""
        self.room = room or StateRoom(state_dir)
        self._folder = state_dir / f"{pipeline}.spill"
        self._spills: dict[TargetName, Spill] = {}

    def found(self, listed: Mapping[str, SpillMark]) -> tuple[Found, ...]:
        """The spills there, checked against the offset file's list. Raises SpillError, OSError.

        Deletes the marks of replayed spills that are not listed any more, and what a crash left of
        a spill that never was one: raw values, which nobody reads.
        """
        found = self.held()
        states = {str(spill.target): spill.state for spill in found}
        for target, mark in listed.items():
            self._check(target, mark, states.get(target, SpillState()))
        kept = {self._path(target) for target in listed}
        done.forget(self._folder, "done", {path.with_suffix(".done") for path in kept})
        done.forget(self._folder, "spill", kept | {self._path(str(s.target)) for s in found})
        return found

    def held(self) -> tuple[Found, ...]:
        """The spills there, read only: a daemon may be using them. Raises SpillError, OSError."""
        found: list[Found] = []
        for path in sorted(self._folder.glob("*.spill")):
            spill = Spill(path)
            if spill.target is None or not spill.state.messages:
                continue
            (first, *_), _ = spill.read(0, 1)
            said = (spill.target, spill.reason, spill.state)
            found.append(Found(*said, first, spill.records, spill.away))
            self._spills[spill.target] = spill
        return tuple(found)

    def of(self, target: TargetName) -> Spill:
        """A target's spill, perhaps empty. Raises OSError."""
        spill = self._spills.get(target)
        if spill is None:
            close_folder(self._folder)
            spill = self._spills[target] = Spill(self._path(str(target)))
        return spill

    def drop(self, target: TargetName) -> None:
        """Delete a target's spill, if it has one. Raises OSError."""
        if self._path(str(target)).exists():
            self.of(target).end()

    def _path(self, target: str) -> Path:
        name = hashlib.sha256(target.encode()).hexdigest()[:24]
        return self._folder / f"{name}.spill"

    def _check(self, target: str, mark: SpillMark, held: SpillState) -> None:
        path = self._path(target)
        ended = done.read_done(path.with_suffix(".done"))
        for source, (_, last) in mark.lanes.items():
            if max(held.lanes.get(source, (0, -1))[1], ended.get(source, -1)) >= last:
                continue
            there = "is missing" if source not in held.lanes else f"ends at {held.lanes[source][1]}"
            raise SpillError(
                f"{path}: the spill of {target} should hold {source} through {last} and {there}: "
                "those messages count as done and would be lost. Put the file back, or read them "
                "again (start.force in the configuration, before that offset)"
            )


def _write_header(file: IO[bytes], said: Mapping[str, object]) -> int:
    file.seek(0)
    return file.write(json.dumps({"binlogd_spill": _VERSION, **said}).encode() + b"\n")


def _read(file: IO[bytes]) -> SpillRecord | None:
    """The next record, None at the end or at damage."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, crc = _HEAD.unpack(head)
    if length > _LONGEST:
        return None
    if head == _END:
        return _APPENDED
    body = file.read(length)
    if len(body) < length or zlib.crc32(body) != crc:
        return None
    ddl, named = _BODY.unpack_from(body)
    at = _BODY.size + named
    (offset,) = _OFFSET.unpack_from(body, at)
    source = TopicPartition.parse(body[_BODY.size : at].decode())
    return SpillRecord(source, offset, bool(ddl), body[at + _OFFSET.size :])
