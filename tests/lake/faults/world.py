"""A lake behind breaking proxies, and a table in it with what its rows must be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch
from changes.model.model import Column, KeyBound, TableSchema, TableStep, TargetName
from demo.servers.s3 import BUCKET, REGION
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.section import CompactionSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.lake.faults.catalogue import of_catalog
from tests.lake.lakes import Lake
from tests.lake.proxy import Proxy, Rule
from tests.sparkwriter.conftest import Staging

BROKEN = "lake"
"""The catalog behind the proxies has the same name: a catalog in a database keeps it with each
table. In the writers' sessions it is reached through the proxies, in others past them."""

_IMPATIENT = {
    "rest.client.max-retries": "1",
    "rest.client.socket-timeout-ms": "6000",
    "s3.retry.num-retries": "2",
    "s3.retry.min-wait-ms": "10",
    "s3.retry.max-wait-ms": "20",
    "http-client.apache.socket-timeout-ms": "6000",
}
"""The clients' own patience, short: what they do is the same."""

SCHEMA = TableSchema(
    (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32())), ("id",)
)
_numbers = itertools.count()
Rows = dict[int, tuple[str | None, int]]


class World:
    """A lake behind proxies, and writers into it."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        folder: Path,
        proxies: Mapping[str, Proxy],
        ways: Mapping[str, str],
    ) -> None:
        """``ways``: properties of the catalog by which it is reached otherwise."""
        self.spark, self.lake, self.folder = spark, lake, folder
        self.proxies = proxies
        """``uri`` and ``s3.endpoint``, as far as the lake has them."""
        self._conf: dict[str, str] = {}
        ways = {key: proxy.url for key, proxy in proxies.items()} | dict(ways)
        never = {"cache-enabled": "false", "rest-metrics-reporting-enabled": "false"}
        for key, value in {**lake.catalog, **_IMPATIENT, **never, **ways}.items():
            self._conf[f"spark.sql.catalog.{BROKEN}.{key}"] = value
        self._catalog = LakeCatalog(spark)
        self.writer = self.new_writer()

    def new_writer(self) -> IcebergWriter:
        """Another member, with connections of its own."""
        never = Compactions(CompactionSection.model_construct(enabled=False))
        return IcebergWriter(self.spark, compactions=never, settings=self._conf)

    def proxy_of(self, kind: str) -> Proxy | None:
        """Where requests of a kind pass."""
        return self.proxies.get("uri" if of_catalog(kind) else "s3.endpoint")

    @contextmanager
    def breaking(self, rule: Rule) -> Iterator[None]:
        """Break by a rule in all proxies; afterwards nothing is under way."""
        with ExitStack() as stack:
            for proxy in self.proxies.values():
                stack.enter_context(proxy.breaking(rule))
            yield
        self.settle()

    def settle(self) -> None:
        """Wait until no request is under way."""
        for proxy in self.proxies.values():
            proxy.await_idle()

    def table(self, way: Write = Write.MERGE) -> Table:
        """A table that is not there yet."""
        name = f"t{next(_numbers)}"
        return Table(self, Staging(self.folder, TargetName(BROKEN, "faults", name), SCHEMA, way))

    def load(self, target: TargetName) -> LakeTable:
        """The table past the proxies."""
        table = self._catalog.load(target)
        assert table is not None
        return table

    def read(self, target: TargetName) -> Iterator[tuple[int, str | None, int]]:
        """The table's rows, by Iceberg's own reader: without a job of Spark's."""
        jvm = self.spark.sparkContext._jvm
        found = jvm.org.apache.iceberg.data.IcebergGenerics.read(self.load(target).table).build()
        try:
            each = found.iterator()
            while each.hasNext():
                row = each.next()
                yield row.getField("id"), row.getField("note"), row.getField("n")
        finally:
            found.close()

    def files(self, table: TargetName) -> set[str]:
        """Every file below a table's folder that a snapshot may name: data and Avro."""
        place = str(self.load(table).metadata.location()).removeprefix("file:")
        if self.lake.storage == "folder":
            found = {str(path) for path in Path(place).rglob("*") if path.is_file()}
        else:
            found = set(self._objects(place))
        return {path for path in found if path.endswith((".parquet", ".puffin", ".avro"))}

    def _objects(self, place: str) -> Iterator[str]:
        client = boto3.client(
            "s3", endpoint_url=self.lake.catalog["s3.endpoint"], region_name=REGION,
            aws_access_key_id="tests", aws_secret_access_key="anybodys-key",
        )  # fmt: skip
        prefix = place.removeprefix(f"s3://{BUCKET}/") + "/"
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix):
            for entry in page.get("Contents", ()):
                yield f"s3://{BUCKET}/{entry['Key']}"


class Table:
    """A target and its oracle: changes go into both."""

    def __init__(self, world: World, staging: Staging) -> None:
        self._world, self.staging = world, staging
        self.rows: Rows = {}
        self.left: set[str] = set()
        """Files that no snapshot names, as they were found last."""
        self._named: dict[int, set[str]] = {}
        self.next = 1

    @property
    def target(self) -> TargetName:
        """As the writers know it."""
        return self.staging.target

    def insert(self, count: int = 2, more: Sequence[Column] = ()) -> StagedBatch:
        """A batch of new keys: a file of rows alone. ``more``: columns that the table lacks."""
        changes = [("U", self._key(), "new", self.staging.after) for _ in range(count)]
        return self._batch(changes, more)

    def statement(self, *steps: TableStep) -> StagedBatch:
        """A batch that is a statement."""
        return self.staging.batch(None, self.staging.after + 1, ddl=[steps])

    def renaming(self) -> Iterator[StagedBatch]:
        """The halves of a renaming, the new name's first; the table is then under that."""
        old = self.staging
        name = f"{old.target.table}_new"
        new = Staging(old.folder, old.target._replace(table=name), old.schema, old.write)
        at = old.after + 1
        yield new.batch(None, at, takes_from=old.target)
        yield old.batch(None, at, ddl=[()], moves_to=new.target)
        self.staging = new

    def change(self) -> StagedBatch:
        """A batch that updates a row, deletes one and adds two."""
        first, last = min(self.rows), max(self.rows)
        number = self.staging.after
        added = [("U", self._key(), None, number), ("U", self._key(), "added", number)]
        return self._batch([("U", last, "changed", number), ("D", first, None, 0), *added])

    def stored(self) -> Rows:
        """As a reader finds it, past the proxies."""
        rows = list(self._world.read(self.target))
        assert len(rows) == len({row[0] for row in rows}), f"a key is there twice: {rows}"
        return {key: (note, n) for key, note, n in rows}

    def named(self) -> set[str]:
        """Every file that a snapshot names; none has expired."""
        table = self._world.load(self.target)
        snapshots = table.metadata.snapshots()
        paths = set[str]()
        for snapshot in (snapshots.get(at) for at in range(snapshots.size())):
            number = int(snapshot.snapshotId())
            if number not in self._named:
                self._named[number] = table.files_of(snapshot)
            paths |= self._named[number]
        return {path.removeprefix("file:") for path in paths}

    def files(self) -> set[str]:
        """See ``World.files``."""
        return self._world.files(self.target)

    def _key(self) -> int:
        self.next += 1
        return self.next

    def _batch(
        self, changes: list[tuple[str, int, str | None, int]], more: Sequence[Column] = ()
    ) -> StagedBatch:
        for op, key, note, n in changes:
            self.rows.pop(key, None)
            if op == "U":
                self.rows[key] = (note, n)
        ops, ids, notes, numbers = zip(*changes, strict=True)
        types = (pa.string(), pa.int64(), pa.string(), pa.int32())
        arrays = [pa.array(v, t) for v, t in zip((ops, ids, notes, numbers), types, strict=True)]
        names = ["__binlogd_op", "id", "note", "n"]
        bounds = [KeyBound("id", min(ids), max(ids))]
        through = self.staging.after + 1
        rows, schema = pa.table(arrays, names), None
        for column in more:
            rows = rows.append_column(column.name, pa.nulls(len(ids), column.type))
            schema = TableSchema((*self.staging.schema.columns, column), ("id",))
        return self.staging.batch(rows, through, bounds=bounds, schema=schema)


@contextmanager
def world(
    spark: SparkSession, lake: Lake, folder: Path, ways: Mapping[str, str] | None = None
) -> Iterator[World]:
    """A world over a lake of the tests' session."""
    with ExitStack() as stack:
        proxies = {}
        for key in ("uri", "s3.endpoint"):
            if lake.catalog.get(key, "").startswith("http://"):
                upstream = urlsplit(lake.catalog[key]).netloc
                proxies[key] = stack.enter_context(Proxy(upstream))
        yield World(spark, lake, folder, proxies, ways or {})
