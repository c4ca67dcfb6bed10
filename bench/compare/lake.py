"""The harness's own Spark, a process apart: it makes the tables, compares them, reads them.

``python -m bench.compare.lake FOLDER [EXTRA ...]`` takes requests as JSON lines on standard input
and answers each with one line. Contestants run while it waits, and it uses no processor then.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from actors.runtime.jars import extra_jars, lake_jars
from actors.runtime.java import CHECKOUT, find_java
from bench.compare import rows
from bench.compare.fresh import delays_s
from bench.compare.job import CATALOG, NAMESPACE, TableSpec
from changes.model.model import Mode, TargetName
from changes.sql.spark.schema import LakeColumn
from offsets.fence import Marks
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import KEYS, MODE
from sparkwriter.iceberg.store import TABLE_PROPERTIES
from sparkwriter.session.session import start_session

_TOGETHER = 25
"""Tables read in one query: fewer, and 300 tables take minutes; more, and planning does."""
_SHOWN = 5
_ICEBERG = {"BIGINT": "long", "INT": "int", "STRING": "string", "TIMESTAMP_NTZ": "timestamp",
            "DECIMAL(10,2)": "decimal(10, 2)"}  # fmt: skip


class Prepare(msgspec.Struct, frozen=True, tag=True):
    """Make the tables in the catalog, the first one with so many rows."""

    catalog: dict[str, str]
    tables: tuple[TableSpec, ...]
    preload: int


class Verify(msgspec.Struct, frozen=True, tag=True):
    """Compare each table with its Parquet file of ids and versions in ``expected``.

    ``preload``: the first table began with so many rows; the file has those that were touched.
    ``live``: rows tell when they were sent.
    """

    catalog: dict[str, str]
    tables: tuple[TableSpec, ...]
    expected: str
    preload: int
    live: bool


class VerifyLoad(msgspec.Struct, frozen=True, tag=True):
    """Compare a table with what a database has written of its own: text, a line a row."""

    catalog: dict[str, str]
    table: TableSpec
    dump: str


class Verdict(msgspec.Struct, frozen=True):
    """How the tables are. ``scan_s``: what reading all of them whole takes, once compared."""

    differences: list[str]
    scan_s: float = 0.0
    delays_s: list[float] = []
    """Of a live workload: from sent to visible, a figure for each row that was ever visible."""


class Lake:
    """The process as the harness has it; ``close`` ends it."""

    def __init__(self, folder: Path, extras: Sequence[str] = ()) -> None:
        """``extras``: jars that the catalogs need."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lake.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.compare.lake", str(folder), *extras],
                cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        self._log = folder / "lake.log"

    def prepare(self, request: Prepare) -> None:
        """Make tables; raises RuntimeError."""
        self._ask(request)

    def verify(self, request: Verify | VerifyLoad) -> Verdict:
        """Compare tables; raises RuntimeError."""
        return self._ask(request)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _ask(self, request: Prepare | Verify | VerifyLoad) -> Verdict:
        pipe, answers = self._process.stdin, self._process.stdout
        assert pipe is not None
        assert answers is not None
        pipe.write(msgspec.json.encode(request) + b"\n")
        pipe.flush()
        answer = answers.readline()
        if not answer:
            raise RuntimeError(f"the harness's Spark ended: see {self._log}")
        return msgspec.json.decode(answer, type=Verdict)


def main() -> None:
    """Answer until standard input ends."""
    folder = Path(sys.argv[1])
    os.environ["JAVA_HOME"] = str(find_java().home)
    conf = {"spark.sql.warehouse.dir": str(folder / "spark-warehouse")}
    jars = [*lake_jars(), *extra_jars(sys.argv[2:])]
    base = start_session(conf, "local[*]", jars, {}, folder / "jvm.log", folder / "scratch")
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=Prepare | Verify | VerifyLoad)
        # A catalog's file is another one each time, under the same name: a session of its own.
        spark = _session(base, request.catalog)
        match request:
            case Prepare():
                answer = _prepare(spark, request)
            case Verify():
                answer = _verify(spark, request)
            case VerifyLoad():
                answer = verify_load(spark, request)
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.flush()
    base.stop()


def _session(base: SparkSession, catalog: dict[str, str]) -> SparkSession:
    spark = base.newSession()
    spark.conf.set(f"spark.sql.catalog.{CATALOG}", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.{CATALOG}.cache-enabled", "false")
    for name, value in catalog.items():
        spark.conf.set(f"spark.sql.catalog.{CATALOG}.{name}", value)
    return spark


def _prepare(spark: SparkSession, request: Prepare) -> Verdict:
    """The tables as binlogd makes them, each with a mark that says: nothing is applied."""
    catalog = LakeCatalog(spark)
    nothing = Marks().text()
    for table in request.tables:
        keys = msgspec.json.encode(table.key).decode()
        properties = {**TABLE_PROPERTIES, MODE: Mode.UPSERT.value, KEYS: keys}
        columns = [LakeColumn(column.name, _ICEBERG[column.spark]) for column in table.columns]
        target = TargetName(CATALOG, NAMESPACE, table.name)
        catalog.create(target, columns, properties, (HWM, nothing))
    if request.preload:
        name = _named(request.tables[0])
        spark.conf.set(f"spark.sql.iceberg.snapshot-property.{HWM}", nothing)
        source = f"(SELECT id, 0L AS version FROM range(1, {request.preload + 1}))"
        spark.sql(f"INSERT INTO {name} {rows.select(source)}")
    return Verdict([])


def _named(table: TableSpec) -> str:
    return f"`{CATALOG}`.`{NAMESPACE}`.`{table.name}`"


def _verify(spark: SparkSession, request: Verify) -> Verdict:
    there = {row.tableName for row in spark.sql(f"SHOW TABLES IN {CATALOG}.{NAMESPACE}").collect()}
    missing = [f"{t.name}: the table is missing" for t in request.tables if t.name not in there]
    differences = missing or [
        line for table in request.tables for line in _layout(spark.table(_named(table)), table)
    ]
    if differences:
        return Verdict(differences[:_SHOWN])
    places = range(0, len(request.tables), _TOGETHER)
    parts = [request.tables[place : place + _TOGETHER] for place in places]
    for part in parts:
        differences += _compare(spark, request, part)
    return Verdict(
        differences[:_SHOWN],
        sum(_scan_s(spark, part) for part in parts),
        delays_s(spark, [_named(table) for table in request.tables]) if request.live else [],
    )


def verify_load(spark: SparkSession, request: VerifyLoad) -> Verdict:
    """A text that does not fit its column ends the comparison: ANSI casts."""
    table, name = request.table, _named(request.table)
    if differences := _layout(spark.table(name), table):
        return Verdict(differences[:_SHOWN])
    lines = spark.read.text(request.dump).selectExpr("split(value, '\\t') AS texts")
    typed = lines.selectExpr(
        *(
            f"CAST(nullif(texts[{place}], r'\\N') AS {column.spark}) AS `{column.name}`"
            for place, column in enumerate(table.columns)
        )
    )
    typed.createOrReplaceTempView("dump")
    names = ", ".join(f"`{column.name}`" for column in table.columns)
    wrong = spark.sql(
        f"SELECT '{table.name}' AS `table`, {names}, sum(n) AS n FROM (SELECT *, 1 AS n FROM dump"
        f" UNION ALL SELECT {names}, -1 AS n FROM {name})"
        f" GROUP BY {names} HAVING sum(n) <> 0 LIMIT {_SHOWN}"
    ).collect()
    return Verdict([_told(row.asDict()) for row in wrong], _scan_s(spark, (table,)))


def _layout(found: DataFrame, table: TableSpec) -> list[str]:
    """Columns that are missing or of another type; a table may have more."""
    types = {field.name: field.dataType.simpleString().upper() for field in found.schema}
    return [
        f"{table.name}: column {column.name} is {types.get(column.name, 'missing')},"
        f" expected {column.spark}"
        for column in table.columns
        if types.get(column.name) != column.spark
    ]


def _compare(spark: SparkSession, request: Verify, part: tuple[TableSpec, ...]) -> list[str]:
    """Rows that are in one of expectation and table more often than in the other."""
    names = ", ".join(f"`{name}`" for name in rows.EXPRESSIONS)
    sides = []
    for table in part:
        expected = rows.select(_expected(request, table))
        sides.append(f"SELECT '{table.name}' AS `table`, *, 1 AS n FROM ({expected})")
        sides.append(f"SELECT '{table.name}' AS `table`, {names}, -1 AS n FROM {_named(table)}")
    wrong = spark.sql(
        f"SELECT `table`, {names}, sum(n) AS n FROM ({' UNION ALL '.join(sides)})"
        f" GROUP BY `table`, {names} HAVING sum(n) <> 0 LIMIT {_SHOWN}"
    ).collect()
    return [_told(row.asDict()) for row in wrong]


def _told(row: dict[str, Any]) -> str:
    table, count = row.pop("table"), row.pop("n")
    return f"{table}: {abs(count)} {'missing' if count > 0 else 'too many'}: {row}"


def _expected(request: Verify, table: TableSpec) -> str:
    """Ids and versions that the table must have, as a relation."""
    file = f"parquet.`{request.expected}/{table.name}.parquet`"
    if not request.preload or table != request.tables[0]:
        return file
    return (
        f"(SELECT r.id, coalesce(e.version, 0L) AS version FROM range(1, {request.preload + 1}) r"
        f" LEFT JOIN {file} e ON r.id = e.id)"
    )


def _scan_s(spark: SparkSession, part: tuple[TableSpec, ...]) -> float:
    """Seconds to read every column of these tables; the comparison has read them once before."""
    every = " UNION ALL ".join(f"SELECT * FROM {_named(table)}" for table in part)
    began = time.perf_counter()
    spark.sql(every).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
