"""Staged files that executors can't see: read from a shared place, and gone from there after."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from changes.model.errors import SinkUnavailable
from changes.model.model import HAS_PREFIX
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.staged_source import LooseTables, SharedStaging, StagedSource
from tests.sparkwriter.conftest import Staging, way_of

pytestmark = pytest.mark.integration

FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)
EVERY_TYPE = pa.table(
    {
        "boolean": [True, False, None],
        "int8": pa.array([-128, 127, None], pa.int8()),
        "int16": pa.array([-(2**15), 2**15 - 1, None], pa.int16()),
        "int": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "long": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
        "float": pa.array([float("nan"), float("-inf"), None], pa.float32()),
        "double": pa.array([-0.0, 5e-324, None], pa.float64()),
        "a.dotted `name`": ["", "a\0b ${x} \U0001f600", None],
        "large": pa.array(["x", "y", None], pa.large_string()),
        "binary": [b"", b"\xff\x00", None],
        "date": [date(1, 1, 1), date(9999, 12, 31), None],
        "timestamp": pa.array([FIRST, LAST, None], pa.timestamp("us")),
        "timestamptz": pa.array(
            [FIRST.replace(tzinfo=UTC), LAST.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")
        ),
        "wide": pa.array([Decimal("-9" * 1), Decimal("9" * 28 + "." + "9" * 10), None],
                         pa.decimal128(38, 10)),
    }
)  # fmt: skip


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The shared folder."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def test_the_copy_reads_as_the_file(spark: SparkSession, tmp_path, shared, staging, orders) -> None:
    """Each type, its bounds and NULL come out of the copy as out of the file itself."""
    path, session = str(tmp_path / "every type.parquet"), spark.newSession()
    pq.write_table(EVERY_TYPE, path)
    IcebergWriter(spark).write(staging.batch(orders(("U", 1, "a", 1)), 1))
    table = LakeCatalog(session).load(staging.target)
    loose, found = LooseTables(session), []
    for place in (None, SharedStaging(shared.as_uri())):
        source = StagedSource(session, loose, place)
        with source.view(table, staging.target.sink, path, EVERY_TYPE.schema) as view:
            # As text: Python's dates and floats can't hold or compare them all.
            columns = (
                f"CAST(`{name.replace('`', '``')}` AS STRING)" for name in EVERY_TYPE.column_names
            )
            rows = session.sql(f"SELECT {', '.join(columns)} FROM {view}").collect()
            found.append(sorted(map(tuple, rows), key=str))
    assert found[0] == found[1]
    assert len(found[1]) == 3
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize("write", [Write.MERGE])
def test_a_statement_reads_the_copy(spark, staging: Staging, rows, orders, shared, write) -> None:
    """Rows that lack a column are merged from it; nothing of it stays."""
    far = IcebergWriter(spark, shared_staging=SharedStaging(shared.as_uri()))
    far.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1))
    partial = orders(("U", 1, "A", None), ("D", 2, None, None))
    partial = partial.append_column(f"{HAS_PREFIX}n", pa.array([False, True]))
    assert way_of(far, staging.batch(partial, 2, partial=["n"])) == "merge"
    assert rows(staging.target) == [(1, "A", 1)]
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize("write", [Write.MERGE])
def test_a_statement_that_fails_leaves_no_copy(spark, staging, orders, shared, write) -> None:
    """What the shared place does not take is a reason to try again, and leaves nothing."""
    far = IcebergWriter(spark, shared_staging=SharedStaging(f"{shared.as_uri()}/{'x' * 300}"))
    far.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    partial = orders(("U", 1, "A", None))
    partial = partial.append_column(f"{HAS_PREFIX}n", pa.array([False]))
    with pytest.raises(SinkUnavailable, match="FileSystemException"):
        far.write(staging.batch(partial, 2, partial=["n"]))
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize("write", [Write.MERGE])
def test_copies_of_dead_runs_go(spark, staging, orders, shared, write) -> None:
    """The first statement removes what another run of the same daemon left, nothing of its own."""
    place = SharedStaging(shared.as_uri())
    for name in ("run-0123456789ab-x.parquet", f"{place.run}-other-writer.parquet"):
        (shared / name).touch()
    far = IcebergWriter(spark, shared_staging=place)
    far.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    partial = orders(("U", 1, "A", None))
    partial = partial.append_column(f"{HAS_PREFIX}n", pa.array([False]))
    far.write(staging.batch(partial, 2, partial=["n"]))
    assert [file.name for file in shared.iterdir()] == [f"{place.run}-other-writer.parquet"]
