"""Tells a statement that Debezium's connectors for MySQL and MariaDB send a second time.

A connector that is started again goes back to what was noted of its place: what it sent since comes
once more, in its order. Rows and most statements end where they ended before. A renaming does not:
the name may be another column's or table's by then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec import Struct

from changes.formats.base import VALUE_AT, sizes
from changes.model import ChangeColumn, Ddl, RenameColumn, RenameTable, TakeName

_CONNECTORS = frozenset(("mysql", "mariadb"))
_FILE = re.compile(r"(.+)\.(\d+)")


class _Source(Struct, gc=False):
    """Where in the server's log a record is from."""

    connector: str | None = None
    name: str | None = None
    server_id: int | None = None
    file: str | None = None
    pos: int | None = None
    ts_ms: int | None = None
    table: str | None = None


class _Payload(Struct, gc=False):
    source: _Source | None = None
    ddl: str | None = None


class _Wrapped(Struct, gc=False):
    """A record with a schema, or without one."""

    payload: _Payload | None = None
    source: _Source | None = None
    ddl: str | None = None


class _Place(NamedTuple):
    """In one series of log files: orders what is in them."""

    files: str
    number: int
    pos: int


class _Stream(NamedTuple):
    """One connector's reading of one server: its records come in the order of their places."""

    name: str | None
    server: int | None


@dataclass(slots=True)
class _Latest:
    """The last statement of a stream, and what else was said at its place: a server's one statement
    on several tables is several records. ``ts_ms``: the latest of all, when they happened."""

    place: _Place
    ts_ms: int
    said: set[tuple[str | None, str | None]]


@dataclass(slots=True)
class _Partition:
    """What came before in one partition."""

    last: bytes | None = None
    """The record before the one that is looked at."""
    next_offset: int = 0
    latest: dict[_Stream, _Latest] = field(default_factory=dict)
    began: bytes | None = None
    """The last statement with which a connector began again, or that followed such a one."""


class SentAgain:
    """Of one topic's stream, in each partition's order. Used by one thread.

    What it remembers is of this process alone. A record of another server, or of a log that was
    begun anew (it happened later than all before it), is never taken for one that comes again.
    """

    def __init__(self) -> None:
        self._here = _Partition()
        self._partitions: dict[str, _Partition] = {}
        self._decode = msgspec.json.Decoder(_Wrapped).decode
        self._doubtful: bytes | None = None

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        """Say whose records come now, and which. Where they are read a second time from the topic,
        what was remembered is of records behind them, and counts no more."""
        here = self._partitions.get(partition)
        if here is None or first < here.next_offset:
            here = self._partitions[partition] = _Partition()
        here.next_offset = next_offset
        self._here = here

    def behind(self, packed: bytes | None) -> None:
        """Note a record that has been looked at."""
        self._here.last = packed

    def is_done(self, packed: bytes) -> bool:
        """Look at a statement of the stream: whether it is done already, and no row came again
        before it. Each is asked for once."""
        self._doubtful = None
        found = self._read(packed)
        if found is None:
            return False
        stream, place, ts_ms, said = found
        latest = self._here.latest.get(stream)
        if latest is None or latest.place.files != place.files or ts_ms > latest.ts_ms:
            self._here.latest[stream] = _Latest(place, ts_ms, {said})
            return False
        if place == latest.place and said not in latest.said:
            latest.said.add(said)
            return False
        if place > latest.place:
            self._here.latest[stream] = _Latest(place, latest.ts_ms, {said})
            return False
        if self._began_with(stream, place):
            self._here.began = packed
            return True
        self._doubtful = packed
        return False

    def _began_with(self, stream: _Stream, place: _Place) -> bool:
        """Whether nothing but statements came again before the one of a place."""
        last = self._here.last
        if last is None or last is self._here.began:
            return last is not None
        before = self._read(last)
        return before is not None and before[0] == stream and before[1] >= place

    def why_not(self, packed: bytes, found: tuple[Ddl, ...]) -> str | None:
        """Why the statement just looked at can't be followed, None where it can."""
        if packed != self._doubtful or not any(map(_renames, found)):
            return None
        return (
            f"{found[0].table}: sent again by its connector, behind rows of before it that were "
            f"sent again, too, and are stored without it: not done once more"
        )

    def _read(
        self, packed: bytes
    ) -> tuple[_Stream, _Place, int, tuple[str | None, str | None]] | None:
        """Stream, place, time and words of a record, None of one that doesn't tell them."""
        try:
            record = self._decode(packed[VALUE_AT : VALUE_AT + max(sizes(packed)[0], 0)])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        told = record.payload or record
        source = told.source
        if source is None or source.connector not in _CONNECTORS:
            return None
        file = _FILE.fullmatch(source.file or "")
        if file is None or source.pos is None or source.ts_ms is None:
            return None
        place = _Place(file[1], int(file[2]), source.pos)
        return (
            _Stream(source.name, source.server_id), place, source.ts_ms, (source.table, told.ddl)
        )  # fmt: skip


def _renames(ddl: Ddl) -> bool:
    """Whether a statement gives something another name."""
    return any(
        isinstance(step, RenameTable | TakeName | RenameColumn)
        or (isinstance(step, ChangeColumn) and step.old.lower() != step.column.name.lower())
        for step in ddl.steps
    )
