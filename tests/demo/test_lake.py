"""Reading back: what lies in Iceberg equals what the shop expects, and a tampered row is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from demo.compare import compare_all
from demo.expected import expected_tables, keys_of
from demo.lake import read_tables
from demo.shop import Shop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300), pytest.mark.long]

NAMESPACE = "shop_as_expected"


@pytest.fixture(scope="module")
def shop() -> Shop:
    """A small shop whose stream was taken whole."""
    shop = Shop(5000)
    for _ in shop.messages():
        pass
    return shop


@pytest.fixture(scope="module")
def expected(shop: Shop) -> dict[str, pa.Table]:
    """Its tables, the messages at the offsets 0, 1, 2..."""
    return expected_tables(shop, range(5000))


@pytest.fixture
def shop_lake(
    spark: SparkSession, expected: dict[str, pa.Table], tmp_path: Path
) -> Iterator[SparkSession]:
    """A session on a lake that holds the tables as they must be."""
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")
    for name, table in expected.items():
        staged = tmp_path / f"{name}.parquet"
        pq.write_table(table, staged)
        spark.sql(
            f"CREATE TABLE lake.{NAMESPACE}.{name} USING iceberg"
            f" AS SELECT * FROM parquet.`{staged}`"
        )
    yield spark
    for name in expected:
        spark.sql(f"DROP TABLE IF EXISTS lake.{NAMESPACE}.{name} PURGE")
    spark.sql(f"DROP NAMESPACE lake.{NAMESPACE}")


def test_tampering_is_found(
    shop_lake: SparkSession, shop: Shop, expected: dict[str, pa.Table]
) -> None:
    """Equal as written; then one value, one row and one table are tampered with, and named."""
    keys = keys_of(shop)
    assert compare_all(expected, read_tables(shop_lake, NAMESPACE), keys) == []
    order = expected["orders"]["id"][0].as_py()
    sku = expected["products"]["sku"][0].as_py()
    shop_lake.sql(f"UPDATE lake.{NAMESPACE}.orders SET total = -1.00 WHERE id = {order}")
    shop_lake.sql(f'DELETE FROM lake.{NAMESPACE}.products WHERE sku = "{sku}"')
    shop_lake.sql(f"DROP TABLE lake.{NAMESPACE}.coupons PURGE")
    total = expected["orders"]["total"][0].as_py()
    assert compare_all(expected, read_tables(shop_lake, NAMESPACE), keys) == [
        "coupons: the table is missing",
        f"orders: row id={order}, column total: expected {total!r}, found Decimal('-1.00')",
        f"products: the row sku={sku!r} is missing",
    ]


def test_a_lake_without_the_namespace_is_empty(spark: SparkSession) -> None:
    """Where the daemon wrote nothing, no table is found: every one will be missing."""
    assert read_tables(spark, "never_made") == {}
