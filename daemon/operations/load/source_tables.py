"""The load's ``Tables``: a source's databases, read into staged files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq

from actors.staging.folder import RunFolder
from changes.formats import AUTO
from changes.model.errors import TargetRefused
from changes.model.model import TableName, TableSchema, TargetName
from changes.routes.fold import key_bounds
from changes.routes.shaping.columns import source_view
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.port import Control
from daemon.operations.load.columns import POSITIONS, FittedTable, fitted
from daemon.operations.load.ports import Chunk, Described
from daemon.operations.load.prefetch import Ahead, ReadRanges, read_directly, spark_reader
from daemon.operations.load.shown import shown_columns, unlike
from databases.base.database import Database
from databases.base.errors import DatabaseRefused
from databases.base.log_end import LogEnd, NoEnd
from databases.base.port import KeyRange, Moment
from databases.opening import Primary
from sparkwriter.sinks import sinks_of


class SourceTables:
    """See ``ports.Tables``. One thread's; ``close`` ends it."""

    def __init__(self, control: Control, pipeline: str, *, anew: bool = False) -> None:
        """``anew``: the new table has the types that the stream has now, not the target's."""
        self._control = control
        self._anew = anew
        self._pipeline = PipelineConfig(control.config, pipeline)
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
            self._definition(wanted),
            wanted.source.rows,
            wanted.owner,
            wanted.route.options,
            wanted.route.shape.fingerprint,
        )

    def unlike(self, tables: Mapping[str, TableName]) -> Mapping[str, str]:
        """See ``Tables``. Later attempts do not look again: the target lacks what a statement, kept
        in its spill, gives it meanwhile."""
        wants, found = {}, {}
        for target, table in tables.items():
            try:
                wants[target] = self._wanted(table, target), self._present(target)
            except (DatabaseRefused, TargetRefused):
                continue  # ``describe`` tells it
        parts = [target for target, (one, _) in wants.items() if not one.source.whole_images]
        shown = shown_columns(self._control, self._pipeline.name, wants, parts)
        for target, (wanted, present) in wants.items():
            names = [one.column.name for one in wanted.columns]
            there = None
            if present is not None:
                view = source_view(wanted.route.shape, present)
                there = [column.name for column in view.columns]
            streamed = shown[target].within(wanted.route.shape)
            if why := list(unlike(names, there, streamed, wanted.route.reader_renames)):
                found[target] = "; ".join(why)
        return found

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
        chunks = self._ahead.take(ReadRanges(attempt, tuple(parts)))
        if chunks is None:
            chunks = self._reading(table, target, parts)()
        if then and self._by_spark(target):
            self._ahead.begin(ReadRanges(attempt, tuple(then)), self._reading(table, target, then))
        return chunks

    def _by_spark(self, target: str) -> bool:
        """Whether Spark reads for it, on whatever thread."""
        return sinks_of(self._control.config)[TargetName.parse(target).sink].catalog() is not None

    def _reading(
        self, table: TableName, target: str, parts: Sequence[KeyRange]
    ) -> Callable[[], Sequence[Chunk]]:
        """What reads the ranges as the table is described now: by Spark on any thread, otherwise
        on the caller's, whose the connection is."""
        wanted, database = self._wanted(table, target), self._database(table)
        zero_dates = self._pipeline.section.zero_dates
        files = [(part, self._staged()) for part in parts]
        if self._by_spark(target):
            rows_of = spark_reader(self._control, database, wanted, zero_dates, files)
        else:
            reading = wanted.reading(database, zero_dates)
            rows_of = partial(read_directly, reading, wanted, files)
        keys = wanted.schema.keys

        def read() -> Sequence[Chunk]:
            found = zip(files, rows_of(), strict=True)
            return [_chunk(path, count, keys) for (_, path), count in found]

        return read

    def remove(self, chunks: Sequence[Chunk]) -> None:
        """See ``Tables``."""
        for chunk in chunks:
            Path(chunk.path).unlink(missing_ok=True)

    def moment(self, tables: Sequence[TableName]) -> Moment:
        """See ``Tables``."""
        primaries = {id(found): found for found in map(self._primary, tables)}.values()
        return max((found.moment() for found in primaries), key=lambda moment: moment.unix_us)

    def log_end(self, tables: Sequence[TableName]) -> LogEnd:
        """See ``Tables``."""
        primaries = {id(found): found for found in map(self._primary, tables)}
        if len(primaries) > 1:
            return NoEnd("the tables are of several databases")
        return next(iter(primaries.values())).log_end()

    def visible(self, table: TableName, end: LogEnd) -> bool:
        """See ``Tables``."""
        return self._primary(table).shows(end)

    def position(self, table: TableName) -> str:
        """See ``Tables``."""
        return self._primary(table).position()

    def shown(self, table: TableName, position: str) -> bool:
        """See ``Tables``."""
        return self._primary(table).shown(position)

    # --- inside

    def _definition(self, wanted: FittedTable) -> str:
        """What rows come from and become: by the source, by the route, and by the database that is
        read. Whether one is far enough says nothing about another."""
        pipeline, source = self._pipeline, wanted.source
        name = pipeline.database_of(source.name.database)
        assert name is not None
        section = pipeline.databases[name]
        asked = [name, section.url, section.role, section.primary]
        route, zero_dates = wanted.route, pipeline.section.zero_dates
        said = [*asked, route.shape.fingerprint, zero_dates, *route.reader_renames]
        return f"{source.definition} {hashlib.sha256(json.dumps(said).encode()).hexdigest()}"

    def _database(self, table: TableName) -> Database:
        name = self._pipeline.database_of(table.database)
        if name is None:
            raise DatabaseRefused(f"pipeline {self._pipeline.name} has no database for {table}")
        if name not in self._databases:
            self._databases[name] = self._pipeline.open_database(name)
        return self._databases[name]

    def _primary(self, table: TableName) -> Primary:
        database = self._database(table)
        name = self._pipeline.database_of(table.database)
        assert name is not None
        if name not in self._primaries:
            self._primaries[name] = Primary(self._control.config, name, database)
        return self._primaries[name]

    def _staged(self) -> Path:
        if self._folder is None:
            name = f"run-{uuid4().hex[:12]}"
            self._folder = RunFolder(self._control.config.daemon.staging_folder, name)
        return self._folder.path.absolute() / f"{uuid4().hex}.parquet"

    def _wanted(self, table: TableName, target: str) -> FittedTable:
        """Raises DatabaseRefused and TargetRefused where it can't be loaded as it is."""
        pipeline = self._pipeline
        router = pipeline.router()
        routes = [route for route in router.targets(table) if str(route.name) == target]
        if not routes:
            raise TargetRefused(f"no route leads {table} to it any more")
        if router.merges(table, routes[0].name):
            raise DatabaseRefused("several tables of the source lead to it")
        source = self._database(table).describe(table)
        formats = self._control.snapshot(pipeline.name).formats
        format_ = format_name(pipeline, formats)
        found = fitted(pipeline, source, routes[0], format_, self._present(target))
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
            if state.schema is not None:
                self._check_own(name, state.schema)
            self._stored[target] = state.schema
        return self._stored[target]

    def _check_own(self, target: TargetName, stored: TableSchema) -> None:
        """Refuse a table with columns that are somebody else's: the new one would not have them."""
        tables = sinks_of(self._control.config)[target.sink].database()
        if tables is None:
            return
        try:
            columns = tables.describe(TableName(*target[1:])).columns
        finally:
            tables.close()
        known = {column.name.lower() for column in stored.columns}
        if own := [column.name for column in columns if column.name.lower() not in known]:
            raise DatabaseRefused(
                f"{target}: the table that a load makes would not have your column {own[0]}: "
                "`binlogd tables verify --repair` puts rows right where they are"
            )


def _chunk(path: Path, rows: int, keys: tuple[str, ...]) -> Chunk:
    return Chunk(str(path), rows, key_bounds(pq.read_table(path, columns=list(keys)), keys))


def format_name(pipeline: PipelineConfig, formats: Mapping[str, str]) -> str:
    """The format whose values the stream has. Raises DatabaseRefused where it is not known yet."""
    section = pipeline.section
    if section.format != AUTO:
        return section.format
    names = set(formats.values())
    if len(names) != 1:
        raise DatabaseRefused(
            f"pipeline {pipeline.name}: the format of its messages is not known yet, or they have "
            "several: set `format`"
        )
    return names.pop()
