"""The warm-up on the real Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from sparkwriter.iceberg.sink import TARGET, IcebergWriter, warm_up


@pytest.mark.integration
def test_it_writes_without_a_complaint_and_leaves_nothing(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every write lands (a failure would be logged), and the scratch folder is gone after it."""
    folder = tmp_path_factory.getbasetemp() / "warm-up"
    with capture_logs() as logs:
        warm_up(spark, folder)
    assert [entry for entry in logs if entry["log_level"] != "debug"] == []
    assert not folder.exists()
    assert IcebergWriter(spark).open(TARGET).schema is None
