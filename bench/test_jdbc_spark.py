"""From which size on does Spark's JDBC writer beat one connection into PostgreSQL and MariaDB?

Each batch is upserted into a table of 300,000 rows, by the sink and by Spark: that one writes the
same file from every core at once into a staging table, which is not logged (PostgreSQL) and has no
key, then one transaction changes the rows. The session is warm, and its start does not count.
``BENCH_JDBC_ROWS`` sets the sizes.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Lines

from actors.runtime.jars import extra_jars, lake_jars
from actors.runtime.java import find_java
from bench.kept import keep
from bench.test_jdbc_write import STORED, TICKS_A_SECOND, cpu_s, orders
from changes.model.model import OP, Column, TableSchema, TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.session.session import start_session
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.conftest import Staging
from tests.sparkwriter.databases import Server, running

TEXT = os.environ.get("BENCH_JDBC_ROWS", "10000,100000,1000000,4000000")
SIZES = [int(rows) for rows in TEXT.split(",")]
SMALL, ROUNDS = 100_000, 3
"""Up to so many rows a batch is written so often, after one that does not count; above, once."""

DRIVERS = {
    "postgresql": ("org.postgresql.Driver", "?reWriteBatchedInserts=true"),
    "mariadb": ("org.mariadb.jdbc.Driver", "?permitMysqlScheme&useBulkStmts=true"),
}
STAGE, CORES = "bench.staged", 2


class Took(NamedTuple):
    """One batch: by the clock, and of processor time of whoever writes and of the server."""

    clock_s: float
    client_s: float
    server_s: float


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as an expert sets it: a core each for two tasks, and room."""
    folder = tmp_path_factory.mktemp("spark")
    os.environ["JAVA_HOME"] = str(find_java().home)
    jars = [*lake_jars(), *extra_jars(["postgresql", "mariadb"])]
    conf = {"spark.driver.memory": "4g"}
    session = start_session(
        conf, f"local[{CORES}]", jars, {}, folder / "spark.log", folder / "scratch"
    )
    yield session
    session.stop()


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each in turn."""
    with running(request.param) as made:
        yield made


def jvm_s(pid: int) -> float:
    """Processor time of the JVM."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS_A_SECOND


def by_spark(spark: SparkSession, server: Server, session: Session, table: str, path: str) -> None:
    """Stage the file from every core, then change the rows in one transaction."""
    kind = "postgresql" if server.is_postgres else "mariadb"
    driver, parameters = DRIVERS[kind]
    url = server.url.replace("jdbc:mariadb:", "jdbc:mysql:") + parameters
    options = {"driver": driver, "user": server.user, "batchsize": "10000",
               "isolationLevel": "READ_COMMITTED"}  # fmt: skip
    rows = spark.read.parquet(path).drop(OP).repartition(CORES)
    rows.write.jdbc(url, STAGE, "append", options)
    names = ["id", "customer", "status", "note", "total", "at"]
    session.run("BEGIN")
    if server.is_postgres:
        session.run(f"ANALYZE {STAGE}")
        sets = ", ".join(f"{name} = EXCLUDED.{name}" for name in names[1:])
        end = f"ON CONFLICT (id) DO UPDATE SET {sets}"
    else:
        sets = ", ".join(f"{name} = VALUES({name})" for name in names[1:])
        end = f"ON DUPLICATE KEY UPDATE {sets}"
    all_names = ", ".join(names)
    session.run(f"INSERT INTO {table} ({all_names}) SELECT {all_names} FROM {STAGE} {end}")
    session.run("COMMIT")
    session.run(f"TRUNCATE TABLE {STAGE}")


@pytest.mark.parametrize("rows", SIZES)
def test_one_connection_and_spark(
    spark: SparkSession,
    server: Server,
    tmp_path: Path,
    rows: int,
    benchmark: Any,
) -> None:
    """Both in turn, into tables of their own; half of a batch is new where there are enough."""
    fields = orders([1]).schema
    schema = TableSchema(tuple(Column(field.name, field.type) for field in fields)[1:], ("id",))
    staging = Staging(tmp_path, TargetName("db", "bench", f"one_{rows}"), schema)
    store, session = JdbcStore(server.connect, "binlogd"), server.connect()
    writer, offsets, new = LedgeredWriter(store), itertools.count(), STORED
    writer.write(staging.batch(orders(list(range(STORED))), next(offsets)))
    table = prepare(server, session, rows)
    took: dict[str, list[Took]] = {"one connection": [], "Spark": []}
    for number in range(ROUNDS + 1 if rows <= SMALL else 1):
        old = random.Random(number).sample(range(STORED), min(rows // 2, STORED))
        ids = old + list(range(new, new + rows - len(old)))
        new += rows - len(old)
        batch = staging.batch(orders(ids), next(offsets))
        path = batch.path or ""
        both = (
            measured(spark, server, partial(writer.write, batch)),
            measured(spark, server, partial(by_spark, spark, server, session, table, path)),
        )
        if number or rows > SMALL:
            for way, one in zip(took, both, strict=True):
                took[way].append(one)
        (counts,) = session.rows(
            f"SELECT (SELECT count(*) FROM {table}), (SELECT count(*) FROM bench.one_{rows})"
        )
        assert counts == (new, new)
    store.close()
    session.close()
    show(server, rows, took)
    keep(benchmark, took)


def prepare(server: Server, session: Session, rows: int) -> str:
    """Make Spark's table, equal to the sink's, and the staging table."""
    table, of_sink = f"bench.spark_{rows}", f"bench.one_{rows}"
    like = f"(LIKE {of_sink} INCLUDING ALL)" if server.is_postgres else f"LIKE {of_sink}"
    session.run(f"CREATE TABLE {table} {like}")
    session.run(f"INSERT INTO {table} SELECT * FROM {of_sink}")
    session.run(f"DROP TABLE IF EXISTS {STAGE}")
    kind = "UNLOGGED " if server.is_postgres else ""
    session.run(f"CREATE {kind}TABLE {STAGE} AS SELECT * FROM {of_sink} WHERE 1 = 0")
    return table


def measured(spark: SparkSession, server: Server, write: Callable[[], object]) -> Took:
    """What one batch took."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pid = jvm.java.lang.ProcessHandle.current().pid()

    def now() -> Took:
        return Took(time.monotonic(), time.process_time() + jvm_s(pid), cpu_s(server))

    before = now()
    write()
    return Took(*(b - a for a, b in zip(before, now(), strict=True)))


def show(server: Server, rows: int, took: Mapping[str, Sequence[Took]]) -> None:
    """The least of each."""
    lines = Lines("rows", "way", "clock s", "client us/row", "server us/row", title=server.url)
    for way, those in took.items():
        clock_s, *processor_s = [min(values) for values in zip(*those, strict=True)]
        micros = [f"{seconds / rows * 1e6:.1f}" for seconds in processor_s]
        lines.add_row(f"{rows:,}", way, f"{clock_s:.2f}", *micros)
    Console(width=100).print(lines)
