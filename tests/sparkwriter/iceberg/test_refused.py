"""What can never be written is refused, so that its target alone stops; what may pass is not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import AddColumn, Column, RenameColumn, TableSchema
from sparkwriter.iceberg.refusals import reasons
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from tests.sparkwriter.conftest import Staging

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("write", [Write.MERGE], ids=["merge"]),
]


@pytest.mark.parametrize("name", ["", "x\0y", "L" * 300, "Ü" * 140], ids=["empty", "nul", "L", "Ü"])
def test_names_that_the_catalog_or_the_disk_forbids(writer, staging, orders, name: str) -> None:
    """No retry makes them possible."""
    staging.target = staging.target._replace(table=name)
    with pytest.raises(TargetRefused):
        writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))


@pytest.mark.parametrize("name", ["x\0y", "L" * 300], ids=["nul", "long"])
def test_a_namespace_that_the_catalog_or_the_disk_forbids(
    writer, staging, orders, name: str
) -> None:
    """The same with a namespace's name; a look at it says so already where the name is none."""
    staging.target = staging.target._replace(namespace=name)
    with pytest.raises(TargetRefused):
        writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))


def test_a_name_that_is_too_long_is_told_shortly(writer, staging, orders) -> None:
    """The message names the limit, and is a line that fits a log."""
    staging.target = staging.target._replace(table="L" * 300)
    with pytest.raises(TargetRefused, match="longer than the 255 bytes") as refusal:
        writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    assert "\n" not in str(refusal.value)


def test_a_view_of_that_name(writer, staging, orders, spark: SparkSession) -> None:
    """The catalog says that the table is there already, and nobody ever finds it."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{staging.target.namespace}")
    spark.sql(f"CREATE VIEW {'.'.join(staging.target)} AS SELECT 1 AS a")
    with pytest.raises(TargetRefused, match="a view has that name"):
        writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))


def test_a_table_renamed_to_a_views_name(writer, staging, orders, spark: SparkSession) -> None:
    """The new name's own target is at the statement, and the view never goes away by itself."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    to = staging.target._replace(table=f"{staging.target.table}_view")
    spark.sql(f"CREATE VIEW {'.'.join(to)} AS SELECT 1 AS a")
    end = Staging(staging.folder, to, staging.schema)
    with pytest.raises(SinkUnavailable, match="has its name"):
        writer.write(end.batch(None, 2, takes_from=staging.target))
    with pytest.raises(TargetRefused, match="a view has that name"):
        writer.write(staging.batch(None, 2, ddl=[[]], moves_to=to))


def test_columns_without_a_name(writer, staging, orders) -> None:
    """In a new table, added by rows, added by a statement, as the new name of another."""
    schema = TableSchema((*staging.schema.columns, Column("", pa.string())), ("id",))
    table = orders(("U", 1, "a", 1)).append_column("", pa.array(["x"]))
    with pytest.raises(TargetRefused, match="a column without a name"):
        writer.write(staging.batch(table, 1, after=-1, schema=schema))
    staging.after = -1
    first = staging.batch(
        orders(("U", 1, "a", 1)), 1, schema=TableSchema(schema.columns[:-1], ("id",))
    )
    writer.write(first)
    with pytest.raises(TargetRefused, match="a column without a name"):
        writer.write(staging.batch(table, 2, after=1, schema=schema))
    for step in (RenameColumn("note", ""), AddColumn(Column("", pa.string()))):
        with pytest.raises(TargetRefused, match="a column without a name"):
            writer.write(staging.batch(None, 2, after=1, ddl=[[step]]))


def test_a_staged_file_that_is_none(writer, staging, orders) -> None:
    """Read a second time it is the same; the quarantine reads its records from the log again."""
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    Path(batch.path).write_bytes(b"no Parquet file at all, but long enough for one")
    with pytest.raises(TargetRefused, match="the staged file"):
        writer.write(batch)


def failure(writer: IcebergWriter, error: object) -> Py4JJavaError:
    """A failure of Java as py4j raises it, of an exception that was made in the JVM."""
    return Py4JJavaError("An error occurred", error)


def test_what_may_pass_is_tried_again(writer, staging, spark: SparkSession) -> None:
    """The same words of Java's where a network is the cause, or two writers that met."""
    java = spark.sparkContext._jvm.java
    unknown = java.lang.IllegalArgumentException(java.net.UnknownHostException("namenode"))
    conflict = spark.sparkContext._jvm.org.apache.iceberg.exceptions.ValidationException(
        "Found conflicting files", spark.sparkContext._gateway.new_array(java.lang.Object, 0)
    )
    for cause in (unknown, conflict, java.io.IOException("No space left on device")):
        with pytest.raises(SinkUnavailable), reasons(staging.target):
            raise failure(writer, cause)


def test_files_and_memory_may_be_there_later(staging) -> None:
    """A disk that is full, a file that is gone, memory that is short: only a name is for ever."""
    for error in (OSError(28, "No space left on device"), pa.ArrowMemoryError("malloc failed")):
        with pytest.raises(SinkUnavailable), reasons(staging.target):
            raise error
    with pytest.raises(TargetRefused), reasons(staging.target):
        raise OSError(36, "File name too long")
