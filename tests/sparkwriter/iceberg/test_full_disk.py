"""A warehouse on a disk that gets full: nothing is left of a write that failed, none is lost."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from changes.model.errors import SinkUnavailable
from changes.model.model import Column, TableSchema, TargetName
from sparkwriter.iceberg import files as iceberg_files
from sparkwriter.iceberg.files import TableFiles
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.needs import missing
from tests.sparkwriter.conftest import Staging

pytestmark = [pytest.mark.integration, pytest.mark.long]
COLUMNS = (Column("id", pa.int64()), Column("note", pa.string()))
_numbers = itertools.count()


def mount(folder: Path, *options: str) -> None:
    """A file system in memory, or the one that is mounted there with another size."""
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        missing("mount", f"this user can't mount a disk of its own: {run.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(folder, "size=3m")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)  # the catalog is open in the JVM


@pytest.fixture
def there() -> TargetName:
    """A target on that disk, in a catalog of its own: a session keeps those that it has opened."""
    return TargetName(f"full{next(_numbers)}", "shop", "orders")


@pytest.fixture
def full(spark: SparkSession, disk: Path, there: TargetName) -> IcebergWriter:
    """A writer into a catalog on that disk."""
    writer = IcebergWriter(spark)
    key = f"spark.sql.catalog.{there.sink}"
    properties = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:file:{disk}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": str(disk),
        "cache-enabled": "false",
    }
    for session in (spark, writer._lake._spark):
        session.conf.set(key, "org.apache.iceberg.spark.SparkCatalog")
        for name, value in properties.items():
            session.conf.set(f"{key}.{name}", value)
    return writer


def orders(*ids: int, note: str = "a") -> pa.Table:
    """Rows of these keys; a note that can't be packed makes each one large."""
    noise = [note if note != "large" else os.urandom(60_000).hex() for _ in ids]
    return pa.table({"__binlogd_op": ["U"] * len(ids), "id": ids, "note": noise})


def files(disk: Path) -> dict[str, int]:
    """What lies in the warehouse beside the catalog, with its sizes.

    Not the table's metadata: where the catalog has no room for its pointer, Iceberg leaves the
    file that it should have named, and nobody else knows its name.
    """
    found = [path for path in disk.rglob("*") if path.is_file()]
    ours = [p for p in found if not p.name.startswith("catalog.db") and p.suffix != ".json"]
    return {path.name: path.stat().st_size for path in ours}


def count(spark: SparkSession, target: TargetName) -> int:
    """The rows that a reader finds."""
    (row,) = spark.sql(f"SELECT count(*) FROM {'.'.join(target)}").collect()
    return int(row[0])


@pytest.mark.parametrize("write", list(Write))
def test_a_write_too_large_for_the_disk(
    write: Write,
    full: IcebergWriter,
    there: TargetName,
    disk: Path,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Tried again and again it takes no byte, and it lands when there is room."""
    staging = Staging(tmp_path, there, TableSchema(COLUMNS, ("id",)), write)
    full.write(staging.batch(orders(1, 2), 1))
    before = files(disk)
    large = staging.batch(orders(*range(2, 60), note="large"), 2)
    for _ in range(3):
        with pytest.raises(SinkUnavailable, match="No space left on device"):
            full.write(large)
        assert files(disk) == before
    mount(disk, "remount", "size=64m")
    full.write(large)
    assert count(spark, there) == 59
    assert full.open(there).hwms == {next(iter(large.lanes)): 2}


@pytest.mark.parametrize("write", list(Write))
def test_a_disk_that_is_full_at_any_step(
    write: Write,
    full: IcebergWriter,
    there: TargetName,
    disk: Path,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Between files, amid one, at the catalog's pointer: the write is whole, or it left nothing."""
    staging = Staging(tmp_path, there, TableSchema(COLUMNS, ("id",)), write)
    full.write(staging.batch(orders(*range(50)), 0))
    filler, failed, landed = disk / "filler", 0, 0
    for pages in range(0, 26, 2):
        batch = staging.batch(orders(pages, 100 + pages, note="b"), 1 + pages)
        before = files(disk)
        state = os.statvfs(disk)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, (state.f_bavail - pages) * state.f_frsize or 1)
        try:
            full.write(batch)
        except SinkUnavailable:
            failed += 1
            filler.unlink()
            assert files(disk) == before, f"{pages} pages were free"
            full.write(batch)
        else:
            landed += 1
            filler.unlink()
        assert count(spark, there) == 50 + 1 + pages // 2
    assert failed > 3
    assert landed > 0


@pytest.fixture
def begun(writer: IcebergWriter, tmp_path: Path, target: TargetName) -> Staging:
    """A target with two rows."""
    staging = Staging(tmp_path, target, TableSchema(COLUMNS, ("id",)))
    writer.write(staging.batch(orders(1, 2), 1))
    return staging


def of(warehouse: Path, target: TargetName) -> set[str]:
    """The table's files, but for those of its metadata that the catalog names."""
    found = (warehouse / target.namespace / target.table).rglob("*")
    return {file.name for file in found if file.suffix in {".parquet", ".avro", ".puffin"}}


@pytest.mark.parametrize("local", [True, False])
def test_an_upload_that_fails_behind_its_puffin_file(
    local: bool, writer: IcebergWriter, begun: Staging, warehouse: Path, monkeypatch: Any
) -> None:
    """Neither stays, in a folder or in a storage that is asked through Iceberg."""
    if not local:
        monkeypatch.setattr(iceberg_files, "local_path", lambda table, location: None)
    before = of(warehouse, begun.target)

    def fails(self: TableFiles, *_: object) -> None:
        assert any(name.endswith(".puffin") for name in of(warehouse, begun.target) - before)
        raise OSError(28, "No space left on device")

    batch = begun.batch(orders(1, note="b"), 2)
    monkeypatch.setattr(TableFiles, "rows", fails)
    with pytest.raises(SinkUnavailable, match="No space left"):
        writer.write(batch)
    assert of(warehouse, begun.target) == before


Commit = Callable[[LakeTable, Callable[[Any], object]], None]


def test_a_commit_that_nobody_knows_of_keeps_its_files(
    writer: IcebergWriter, begun: Staging, rows: Any, spark: SparkSession, monkeypatch: Any
) -> None:
    """The connection broke each time, and the last commit lands when all have been given up."""
    real, late = LakeTable.commit, list[tuple[LakeTable, Any]]()

    def unheard(table: LakeTable, change: Callable[[Any], object]) -> None:
        late.append((table, change))
        raise Py4JError("connection reset")

    monkeypatch.setattr(LakeTable, "commit", unheard)
    with pytest.raises(SinkUnavailable, match="connection reset"):
        writer.write(begun.batch(orders(1, 3, note="b"), 2))
    monkeypatch.undo()
    real(*late[-1])
    assert [row[:2] for row in rows(begun.target)] == [(1, "b"), (2, "a"), (3, "b")]


def test_a_commit_that_was_refused_leaves_no_file(
    writer: IcebergWriter, begun: Staging, spark: SparkSession, warehouse: Path, monkeypatch: Any
) -> None:
    """Whatever was tried: the rows, the deletions, the manifests and the lists of all attempts."""
    real = LakeTable.commit
    name = ".".join(begun.target)

    def refused(table: LakeTable, change: Callable[[Any], object]) -> None:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = '{next(_numbers)}')")
        real(table, change)

    before = of(warehouse, begun.target)
    monkeypatch.setattr(LakeTable, "commit", refused)
    with pytest.raises(SinkUnavailable, match="takes no commit"):
        writer.write(begun.batch(orders(1, 3, note="b"), 2))
    assert of(warehouse, begun.target) == before
