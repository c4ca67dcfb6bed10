"""Tools of the sink's tests: a writer, a fresh target, batches staged as the processor does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from structlog.testing import capture_logs

from actors.contract.writes import Doubt, StagedBatch
from changes.model.model import Column, KeyBound, Mode, TableSchema, TableStep, TargetName
from offsets.fence import Span
from offsets.position import NO_OFFSET, TopicPartition
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.databases import Server, running

_numbers = itertools.count()

LANE = TopicPartition("shop", 0)


class Staging:
    """Stages batches for one target, each starting where the one before it ended."""

    def __init__(
        self, folder: Path, target: TargetName, schema: TableSchema, write: Write = Write.MERGE
    ) -> None:
        self.folder = folder
        self.target = target
        self.schema = schema
        self.after = NO_OFFSET
        self.write = write

    def batch(
        self,
        table: pa.Table | None,
        through: int,
        *,
        after: int | None = None,
        mode: Mode = Mode.UPSERT,
        schema: TableSchema | None = None,
        partial: Sequence[str] = (),
        bounds: Iterable[KeyBound] = (),
        ddl: Sequence[Sequence[TableStep]] = (),
        moves_to: TargetName | None = None,
        takes_from: TargetName | None = None,
        lane: TopicPartition = LANE,
        doubts: Sequence[Doubt] = (),
    ) -> StagedBatch:
        """A batch of the lane up to ``through``, its rows in a file; no rows: marks alone."""
        number = next(_numbers)
        path = None
        if table is not None:
            path = str(self.folder / f"{number}.parquet")
            pq.write_table(table, path)
        if schema is not None:
            self.schema = schema
        start = self.after if after is None else after
        self.after = through
        return StagedBatch(
            batch_id=str(number),
            target=self.target,
            mode=mode,
            schema=self.schema,
            lanes={lane: Span(start, through)},
            path=path,
            rows=0 if table is None else table.num_rows,
            has_deletes=True,
            partial=tuple(partial),
            bounds=tuple(bounds),
            ddl=tuple(map(tuple, ddl)),
            moves_to=moves_to,
            takes_from=takes_from,
            options=(("write", self.write.value),),
            doubts=tuple(doubts),
        )


def way_of(writer: IcebergWriter, batch: StagedBatch) -> str:
    """Write the batch; the way in which that was done."""
    with capture_logs() as logs:
        writer.write(batch)
    (way,) = [entry["way"] for entry in logs if entry["event"] == "way_chosen"]
    return str(way)


@pytest.fixture(scope="session")
def writer(spark: SparkSession) -> IcebergWriter:
    """The writer of the test's thread."""
    return IcebergWriter(spark)


@pytest.fixture
def target() -> TargetName:
    """A target that no other test uses and that does not exist yet."""
    return TargetName("lake", "sink", f"t{next(_numbers)}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """PostgreSQL."""
    with running("postgres") as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    """MariaDB."""
    with running("mariadb") as server:
        yield server


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[Server]:
    """MySQL, in `make test-long` alone."""
    with running("mysql") as server:
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Whatever is tested with staged batches is tested in both ways to write them, unless the
    test names its own. In the tier of every change one way is enough, but for what batches do."""
    marks = metafunc.definition.iter_markers("parametrize")
    if "write" in metafunc.fixturenames and not any(mark.args[0] == "write" for mark in marks):
        later = () if metafunc.module.__name__.endswith("test_write") else (pytest.mark.long,)
        ways = [pytest.param(w, marks=() if w is Write.MERGE else later) for w in Write]
        metafunc.parametrize("write", ways, ids=lambda way: way.value)


@pytest.fixture
def staging(tmp_path: Path, target: TargetName, write: Write) -> Staging:
    """Batches for ``target``, a table of orders: id (long), note (string), n (int)."""
    columns = (
        Column("id", pa.int64()),
        Column("note", pa.string()),
        Column("n", pa.int32()),
    )
    return Staging(tmp_path, target, TableSchema(columns, ("id",)), write)


@pytest.fixture
def rows(spark: SparkSession) -> Callable[..., list[tuple[object, ...]]]:
    """Read a target's rows as another session sees them, sorted by their first column."""

    def read(target: TargetName, columns: str = "*") -> list[tuple[object, ...]]:
        name = f"`{target.sink}`.`{target.namespace}`.`{target.table}`"
        found: list[Row] = spark.newSession().sql(f"SELECT {columns} FROM {name}").collect()
        return sorted((tuple(row) for row in found), key=lambda row: (row[0] is None, row[0]))

    return read


@pytest.fixture
def orders() -> Callable[..., pa.Table]:
    """Make the file of orders: ``(op, id, note, n)`` a row."""

    def make(*changes: tuple[str, int, str | None, int | None]) -> pa.Table:
        ops, ids, notes, numbers = zip(*changes, strict=True)
        return pa.table(
            {
                "__binlogd_op": pa.array(ops, pa.string()),
                "id": pa.array(ids, pa.int64()),
                "note": pa.array(notes, pa.string()),
                "n": pa.array(numbers, pa.int32()),
            }
        )

    return make
