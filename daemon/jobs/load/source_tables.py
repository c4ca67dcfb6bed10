"""The load's ``Tables``: a source's databases, read by Spark into staged files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq

from actors.contract.ports import TargetRefused
from changes.formats.auto import AUTO
from changes.model import OP, Column, Mode, TableName, TableSchema, TargetName
from changes.net.fold import key_bounds
from changes.routing import Router, TargetRoute
from daemon.config.config import Config
from daemon.databases.opening import open_database
from daemon.databases.port import Database, DatabaseRefused, KeyRange, Moment, SourceTable
from daemon.databases.primaries import Primary
from daemon.databases.streamed import StreamedColumn, as_streamed
from daemon.jobs.load.ahead import Ahead, Asked
from daemon.jobs.load.ports import Chunk, Described
from daemon.jobs.port import Control, JobAway
from daemon.staging.folder import RunFolder
from sparkwriter.jobs.chunks import ChunkColumn, ChunkUnreadable, Part, read_chunks
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.sql.schema import arrow_type, iceberg_type

POSITIONS = (
    "it keeps source positions, so that several partitions may feed it: rows of the database have "
    "none, and one that was deleted could come back"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A source table as it is to be loaded. ``columns`` are in the lake's order."""

    source: SourceTable
    columns: tuple[StreamedColumn, ...]
    route: TargetRoute
    keys: tuple[str, ...]
    owner: TableName | None

    @property
    def schema(self) -> TableSchema:
        """The columns of the new table."""
        columns = (Column(one.column.name, arrow_type(one.type)) for one in self.columns)
        return TableSchema(tuple(columns), self.keys)

    @property
    def chunk_columns(self) -> list[ChunkColumn]:
        """The same as they are read."""
        keys, found = {key.lower() for key in self.keys}, []
        for one in self.columns:
            assert one.column.form is not None
            is_key = one.column.name.lower() in keys
            found.append(ChunkColumn(one.column.name, one.type, one.column.form, is_key))
        return found


class SourceTables:
    """See ``ports.Tables``. One thread's; ``close`` ends it."""

    def __init__(self, control: Control, pipeline: str, *, anew: bool = False) -> None:
        """``anew``: the new table has the types that the stream has now, not the target's."""
        self._control = control
        self._anew = anew
        self._pipeline = pipeline
        self._databases: dict[str, Database] = {}
        self._primaries: dict[str, Primary] = {}
        self._folder: RunFolder | None = None
        self._stored: dict[str, TableSchema | None] = {}
        self._ahead = Ahead(self.remove)

    def close(self) -> None:
        """End the connections, and remove what is staged. Waits for a read that goes on."""
        self._ahead.close()
        for primary in self._primaries.values():
            primary.close()
        for database in self._databases.values():
            database.close()
        if self._folder is not None:
            self._folder.close()

    def describe(self, table: TableName, target: str) -> Described:
        """See ``Tables``."""
        wanted = self._wanted(table, target)
        return Described(
            wanted.schema,
            wanted.source.definition,
            wanted.source.rows,
            wanted.owner,
            wanted.route.options,
        )

    def ranges(self, table: TableName, rows: int) -> Sequence[KeyRange]:
        """See ``Tables``."""
        database = self._database(table)
        return list(database.ranges(database.describe(table), rows))

    def read(
        self,
        table: TableName,
        target: str,
        parts: Sequence[KeyRange],
        attempt: str,
        then: Sequence[KeyRange] = (),
    ) -> Sequence[Chunk]:
        """See ``Tables``."""
        chunks = self._ahead.take(Asked(attempt, tuple(parts)))
        if chunks is None:
            chunks = self._reading(table, target, parts)()
        if then:
            self._ahead.begin(Asked(attempt, tuple(then)), self._reading(table, target, then))
        return chunks

    def _reading(
        self, table: TableName, target: str, parts: Sequence[KeyRange]
    ) -> Callable[[], Sequence[Chunk]]:
        """What reads the ranges as the table is described now, on any thread."""
        wanted, database = self._wanted(table, target), self._database(table)
        sources = [one.column for one in wanted.columns]
        files = [
            Part(database.query(wanted.source, sources, part), self._staged()) for part in parts
        ]
        columns, jdbc = wanted.chunk_columns, database.jdbc(wanted.source)
        zero_dates = self._config.pipeline[self._pipeline].zero_dates

        def act(jvm: SparkJvm) -> list[int]:
            constants = [(OP, "U")]
            return read_chunks(
                jvm.spark, jdbc, files, columns, zero_dates=zero_dates, constants=constants
            )

        def read() -> Sequence[Chunk]:
            try:
                rows = self._control.spark(act)
            except ChunkUnreadable as error:
                if error.again:
                    raise JobAway(f"{table}: {error}") from error
                raise DatabaseRefused(f"{table}: {error}") from error
            found = zip(files, rows, strict=True)
            return [_chunk(file.out, count, wanted) for file, count in found]

        return read

    def remove(self, chunks: Sequence[Chunk]) -> None:
        """See ``Tables``."""
        for chunk in chunks:
            Path(chunk.path).unlink(missing_ok=True)

    def moment(self, tables: Sequence[TableName]) -> Moment:
        """See ``Tables``."""
        primaries = {id(found): found for found in map(self._primary, tables)}.values()
        return max((found.moment() for found in primaries), key=lambda moment: moment.unix_us)

    def position(self, table: TableName) -> str:
        """See ``Tables``."""
        return self._primary(table).position()

    def shown(self, table: TableName, position: str) -> bool:
        """See ``Tables``."""
        return self._primary(table).shown(position)

    # --- inside

    @property
    def _config(self) -> Config:
        return self._control.config

    def _database(self, table: TableName) -> Database:
        name = self._config.database_of(self._pipeline, table.database)
        if name is None:
            raise DatabaseRefused(f"pipeline {self._pipeline} has no database for {table}")
        if name not in self._databases:
            self._databases[name] = open_database(self._config, name)
        return self._databases[name]

    def _primary(self, table: TableName) -> Primary:
        database = self._database(table)
        name = self._config.database_of(self._pipeline, table.database)
        assert name is not None
        if name not in self._primaries:
            self._primaries[name] = Primary(self._config, name, database)
        return self._primaries[name]

    def _staged(self) -> Path:
        if self._folder is None:
            name = f"run-{uuid4().hex[:12]}"
            self._folder = RunFolder(self._config.daemon.staging_folder, name)
        return self._folder.path.absolute() / f"{uuid4().hex}.parquet"

    def _wanted(self, table: TableName, target: str) -> Wanted:
        """Raises DatabaseRefused and TargetRefused where it can't be loaded as it is."""
        config, pipeline = self._config, self._pipeline
        router = Router(config.routes(pipeline))
        routes = [route for route in router.targets(table) if str(route.name) == target]
        if not routes:
            raise TargetRefused(f"no route leads {table} to it any more")
        if router.merges(table, routes[0].name):
            raise DatabaseRefused("several tables of the source lead to it")
        source = self._database(table).describe(table)
        formats = self._control.snapshot(pipeline).formats
        format_ = format_name(config, pipeline, formats)
        found = fitted(config, pipeline, source, routes[0], format_, self._present(target))
        return replace(found, owner=router.owner(table, routes[0].name))

    def _present(self, target: str) -> TableSchema | None:
        """What the target has now: it is what the new table has to be able to replace."""
        if self._anew:
            return None
        if target not in self._stored:
            name = TargetName.parse(target)
            state = self._control.sinks()[name.sink].open(name)
            if state.positions is not None:
                raise DatabaseRefused(POSITIONS)
            self._stored[target] = state.schema
        return self._stored[target]


def _chunk(path: Path, rows: int, wanted: Wanted) -> Chunk:
    keys = pq.read_table(path, columns=list(wanted.keys))
    return Chunk(str(path), rows, key_bounds(keys, wanted.keys))


def format_name(config: Config, pipeline: str, formats: Mapping[str, str]) -> str:
    """The format whose values the stream has. Raises DatabaseRefused where it is not known yet."""
    section = config.pipeline[pipeline]
    if section.format != AUTO:
        return section.format
    names = set(formats.values())
    if len(names) != 1:
        raise DatabaseRefused(
            f"pipeline {pipeline}: the format of its messages is not known yet, or they have "
            "several: set `format`"
        )
    return names.pop()


def fitted(
    config: Config,
    pipeline: str,
    source: SourceTable,
    route: TargetRoute,
    format_: str,
    present: TableSchema | None,
) -> Wanted:
    """A source table in its target's columns. Raises DatabaseRefused where it can't be had."""
    if route.mode is Mode.APPEND:
        raise DatabaseRefused(f"{route.name} is a changelog, which has what happened, not rows")
    if route.shape:
        raise DatabaseRefused(f"{route.name}: its route shapes rows, which a load can't do yet")
    if config.pipeline[pipeline].positions is not None:
        raise DatabaseRefused(POSITIONS)
    names = {column.name.lower(): column.name for column in source.columns}
    keys = tuple(names.get(key.lower(), key) for key in route.keys or source.keys)
    if not source.keys or {k.lower() for k in keys} != {k.lower() for k in source.keys}:
        raise DatabaseRefused(
            f"{source.name} has no key, or another one than its target: its rows can't be read in "
            "ranges, and told apart"
        )
    if present is not None and {k.lower() for k in present.keys} != {k.lower() for k in keys}:
        raise DatabaseRefused(f"{route.name} has the key {', '.join(present.keys)}")
    name = config.database_of(pipeline, source.name.database)
    assert name is not None
    stored = None
    if present is not None:
        stored = {column.name: iceberg_type(column.type) for column in present.columns}
    kind = config.database[name].address.kind
    streamed = as_streamed(source, kind, format_, route.types, stored)
    if streamed.refused:
        raise DatabaseRefused("; ".join(streamed.refused))
    return Wanted(source, streamed.columns, route, keys, None)
