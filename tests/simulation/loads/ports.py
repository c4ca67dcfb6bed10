"""The load's ports over the simulated database, its log and the sink."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from actors.contract.writes import StagedBatch, TargetState
from changes.model.model import Column, TableName, TableSchema
from changes.model.places import Place
from changes.routes.shaping.shape import NO_SHAPE
from changes.routes.shaping.shape import Shape as RouteShape
from changes.routes.shaping.statements import shaped_rows, shaped_schema
from daemon.operations.load.ports import Chunk, Described
from databases.base.errors import DatabaseAway
from databases.base.log_end import LogEnd, ReaderPosition, WalEnd
from databases.base.port import KeyRange, Moment
from offsets.position import TopicPartition
from tests.simulation.loads.durable import Clockwork
from tests.simulation.loads.history import TableThen
from tests.simulation.rows import Net

Passing = Callable[[], None]
"""Time passes: the world goes on, or ends."""


class FakeTables:
    """``daemon.operations.load.ports.Tables``. The database's clock counts commits, a second
    each."""

    def __init__(
        self,
        clockwork: Clockwork,
        rng: random.Random,
        passing: Passing,
        route: RouteShape = NO_SHAPE,
        *,
        tells_all: bool,
    ) -> None:
        """``route``: what is made of the rows that are read. ``tells_all``: a table's definition
        shows that it was altered and altered back."""
        self._route = route
        self._clockwork = clockwork
        self._rng = rng
        self._passing = passing
        self._tells_all = tells_all
        self.files: dict[str, list[Net]] = {}
        self._ahead: dict[tuple[str, tuple[KeyRange, ...]], Sequence[Chunk]] = {}
        self._number = 0
        self.seen = 0
        """How many commits a read has seen, at most."""

    def crash(self) -> None:
        """What was read is gone with its process."""
        self.files.clear()
        self._ahead.clear()

    def describe(self, table: TableName, target: str) -> Described:
        self._away()
        then = self._table(table)
        schema = self._schema(then)
        if self._route:
            schema = shaped_schema(self._route, schema)
        altered = then.altered if self._tells_all else ""
        definition = f"{altered} {','.join(then.columns)}"
        shape = self._route.fingerprint
        return Described(schema, definition, len(then.rows), table, shape=shape)

    def unlike(self, tables: Mapping[str, TableName]) -> Mapping[str, str]:
        """Its stream has what its tables have."""
        return {}

    def _schema(self, then: TableThen) -> TableSchema:
        """The source's. Types matter where the real shaping looks at them."""
        key = Column("id", pa.int32() if self._route else pa.string())
        columns = (key, *(Column(name, pa.string()) for name in then.columns))
        return TableSchema(columns, ("id",))

    def ranges(self, table: TableName, rows: int) -> Sequence[KeyRange]:
        self._away()
        keys = sorted(key[0] for key in self._table(table).rows)
        bounds = [(str(key),) for key in keys[::rows][1:]]
        lows: list[Any] = [None, *bounds]
        return [KeyRange(low, high) for low, high in zip(lows, [*bounds, None], strict=True)]

    def read(
        self,
        table: TableName,
        target: str,
        parts: Sequence[KeyRange],
        attempt: str,
        then: Sequence[KeyRange] = (),
    ) -> Sequence[Chunk]:
        found = self._ahead.pop((attempt, tuple(parts)), None)
        self._ahead.clear()
        if found is None:
            found = self._read(table, parts)
        if then and self._rng.random() < 0.7:
            # As early as can be: much may happen before they are written.
            self._ahead[attempt, tuple(then)] = self._read(table, then)
        return found

    def _read(self, table: TableName, parts: Sequence[KeyRange]) -> Sequence[Chunk]:
        found = []
        for part in parts:
            self._passing()
            self._away()
            then = self._table(table)
            self.seen = max(self.seen, self._clockwork.shown)
            read = [dict(row) for key, row in then.rows.items() if _is_in(key[0], part)]
            if self._route:
                read = self._shaped(table, then, read)
            rows = [Net((row["id"],), row, None) for row in read]
            self._number += 1
            path = f"chunk-{self._number}"
            self.files[path] = rows
            found.append(Chunk(path, len(rows)))
        self._passing()
        return found

    def _shaped(
        self, table: TableName, then: TableThen, rows: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """By the daemon's own function."""
        schema = self._schema(then)
        fields = pa.schema([(column.name, column.type) for column in schema.columns])
        read = pa.Table.from_pylist(rows, schema=fields)
        shaped: list[dict[str, Any]] = shaped_rows(self._route, schema, read, table)[1].to_pylist()
        return shaped

    def remove(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            self.files.pop(chunk.path, None)

    def moment(self, tables: Sequence[TableName]) -> Moment:
        self._away()
        return Moment(self._clockwork.clock * 1_000_000, None)

    def log_end(self, tables: Sequence[TableName]) -> LogEnd:
        self._away()
        return self._clockwork.log_end

    def visible(self, table: TableName, end: LogEnd) -> bool:
        self._away()
        assert isinstance(end, WalEnd)
        hidden = range(self._clockwork.visible, self._clockwork.position)
        replica = self._clockwork.replica is not None
        return replica or not set(map(str, hidden)) & set(end.committing)

    def position(self, table: TableName) -> str:
        self._away()
        return "" if self._clockwork.replica is None else str(self._clockwork.position)

    def shown(self, table: TableName, position: str) -> bool:
        self._away()
        return self._clockwork.applied >= int(position)

    def _table(self, table: TableName) -> TableThen:
        return self._clockwork.version[table.table]

    def _away(self) -> None:
        if self._rng.random() < 0.02:
            raise DatabaseAway("the connection dropped")


def _is_in(key: int, part: KeyRange) -> bool:
    low = part.low is None or key > int(part.low[0])
    return low and (part.high is None or key <= int(part.high[0]))


class FakeLog:
    """``daemon.operations.load.ports.LoadLog``."""

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork

    def partitions(self) -> Sequence[TopicPartition]:
        return tuple(self._clockwork.history.stream.log)

    def ends(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {source: self._clockwork.end(source) for source in sources}

    def begins(self, sources: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys(sources, 0)

    def places(self, sources: Sequence[TopicPartition]) -> Sequence[Place]:
        """Of one message, which is older than what the database is asked for next."""
        return [] if self._clockwork.read else [Place(lsn=0)]

    def position(self) -> ReaderPosition:
        return self._clockwork.read

    def passed(
        self, scanned: Mapping[TopicPartition, int], after_ms: int, log: LogEnd
    ) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        if log.was_read(self._clockwork.read):
            ends = {source: self._clockwork.end(source) for source in scanned}
            return ends, ends
        found = {source: self._passed(source, after_ms // 1000, log) for source in scanned}
        ends = {source: at for source, at in found.items() if at is not None}
        return ends, {source: self._clockwork.end(source) for source in scanned}

    def _passed(self, source: TopicPartition, commit: int, log: LogEnd) -> int | None:
        """By whichever rule sees a message first that is behind."""
        by_time = self._clockwork.after(source, lambda at: at >= commit)
        messages = None if self._clockwork.read else self._clockwork
        by_place = messages and messages.after(
            source, lambda at: log.is_before(Place(lsn=self._clockwork.written(at)))
        )
        return min((at for at in (by_time, by_place) if at is not None), default=None)


class ChunkSink:
    """The job's writer, as bad as any other."""

    def __init__(
        self, write: Callable[[StagedBatch, Any], TargetState], files: Mapping[str, list[Net]]
    ) -> None:
        self._write = write
        self._files = files

    def write(self, batch: StagedBatch) -> TargetState:
        rows = None if batch.path is None else list(self._files[batch.path])
        return self._write(batch, rows)
