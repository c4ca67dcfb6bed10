"""``binlogd check-config --connect`` tries what ``cuts.atomic`` needs of a JDBC catalog."""

from __future__ import annotations

from typing import Any

import pytest

from sparkwriter.iceberg import together
from sparkwriter.iceberg.pointers import move
from sparkwriter.iceberg.probe_together import probe_together

pytestmark = pytest.mark.integration


def test_what_it_needs_of_a_catalog_is_tried(spark, lake, lake_conf, monkeypatch) -> None:
    """With tables that are gone afterwards. A catalog that moves one without the other is told."""
    if lake_conf.get("type") != "jdbc":
        pytest.skip("moves tables of a JDBC catalog")
    spaces = spark.sql("SHOW NAMESPACES IN lake").collect()
    assert [*probe_together(spark, "lake", lake_conf)] == []
    assert spark.sql("SHOW NAMESPACES IN lake").collect() == spaces

    def one_by_one(connection: Any, pointer: Any, wait_s: float) -> bool:
        moved = move(connection, pointer, wait_s)
        connection.commit()
        return moved

    monkeypatch.setattr(together, "move", one_by_one)
    line, *_ = probe_together(spark, "lake", lake_conf)
    assert line.startswith("sink lake: its tables can't change in one transaction")
