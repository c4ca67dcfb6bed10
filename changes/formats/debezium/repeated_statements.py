"""Detects statements that Debezium's connectors for MySQL and MariaDB send a second time.

After a restart a connector goes back to its last stored position and sends everything after it
again, in order. Rows and most statements can be repeated. A rename can't: by then the name may be
that of another column or table.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec import Struct

from changes.formats.debezium.ignored_create import creates
from changes.formats.engine.format import VALUE_AT, sizes
from changes.model.model import Ddl

_CONNECTORS = frozenset(("mysql", "mariadb"))
_FILE = re.compile(r"(.+)\.([0-9]{1,19})")
_STATEMENTS_KEPT = 10_000
"""For each partition: those of a minute (Kafka Connect's ``offset.flush.interval.ms``) and more."""


class _Source(Struct, gc=False):
    """The position of a record in the server's log."""

    connector: str | None = None
    name: str | None = None
    server_id: int | None = None
    file: str | None = None
    pos: int | None = None
    ts_ms: int | None = None
    db: str | None = None
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
    """A position in one series of log files."""

    files: str
    number: int
    pos: int


class _Identity(NamedTuple):
    """The identity of a record: no two statements of a server's log have the same."""

    name: str | None
    server: int | None
    place: _Place
    ts_ms: int | None
    db: str | None
    table: str | None
    """A statement on several tables has a record for each."""
    ddl: bytes

    def came_before(self, other: _Identity) -> bool:
        """Whether it is before the other one, or in another log."""
        mine, others = (each[:2] + each.place[:1] for each in (self, other))
        return mine != others or self.place < other.place


@dataclass(slots=True)
class _Partition:
    """What came before in one partition."""

    last: bytes | None = None
    """The record before the current one."""
    next_offset: int = 0
    seen: OrderedDict[_Identity, None] = field(default_factory=OrderedDict)
    """The latest statements."""
    began: bytes | None = None
    """The latest statement of those that a connector sent again first, before any row."""


class RepeatedStatements:
    """Finds the repeated statements of one topic, in each partition's order. Used by one thread.

    It remembers the latest statements of this process; an older one is followed as if it were new.
    """

    def __init__(self) -> None:
        self._here = _Partition()
        self._partitions: dict[str, _Partition] = {}
        self._decode = msgspec.json.Decoder(_Wrapped).decode
        self._doubtful: bytes | None = None

    def turn_to(self, partition: str, first: int, next_offset: int) -> None:
        """Announce the partition and offsets of the next records. Where the topic is read again,
        the statements remembered may be those of later records: they are forgotten."""
        here = self._partitions.get(partition)
        if here is None or first < here.next_offset:
            here = self._partitions[partition] = _Partition()
        here.next_offset = next_offset
        self._here = here

    def behind(self, packed: bytes | None) -> None:
        """Note a record that was read."""
        self._here.last = packed

    def is_done(self, packed: bytes, *, ignored: bool = False) -> bool:
        """Whether a statement came before, without a row sent again before it. To be called once
        for each statement. ``ignored``: Debezium ignored it, as it does each that
        it took before."""
        self._doubtful = None
        identity, seen = self._read(packed), self._here.seen
        if identity is None:
            return False
        if identity not in seen:
            seen[identity] = None
            if len(seen) > _STATEMENTS_KEPT:
                seen.popitem(last=False)
            return False
        if self._begins_with(identity) or ignored:
            self._here.began = packed
            return True
        self._doubtful = packed
        return False

    def _begins_with(self, identity: _Identity) -> bool:
        """Whether only statements were sent again before this one."""
        last = self._here.last
        if last is None or last is self._here.began:
            return last is not None
        before = self._read(last)
        return before is not None and not before.came_before(identity)

    def why_not(self, packed: bytes, found: tuple[Ddl, ...]) -> str | None:
        """Why the statement just read can't be followed, None where it can."""
        if packed != self._doubtful or not any(ddl.renames for ddl in found):
            return None
        return (
            f"{found[0].table}: sent again by its connector, behind older rows that were sent "
            f"again, too, and are stored without it: not applied a second time"
        )

    def _read(self, packed: bytes) -> _Identity | None:
        """A record's identity, None where it has no log position."""
        try:
            record = self._decode(packed[VALUE_AT : VALUE_AT + max(sizes(packed)[0], 0)])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        found = record.payload or record
        source = found.source
        if source is None or source.connector not in _CONNECTORS:
            return None
        file = _FILE.fullmatch(source.file or "")
        if file is None or source.pos is None:
            return None
        ddl = found.ddl or ""
        words = blake2b(ddl.encode(), digest_size=16).digest()
        place = _Place(file[1], int(file[2]), source.pos)
        # One that creates is of one table, which is not named the second time.
        named = (None, None) if creates(ddl) else (source.db, source.table)
        return _Identity(source.name, source.server_id, place, source.ts_ms, *named, words)
