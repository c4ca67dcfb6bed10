"""Daemons of one group on one lake: killed, stopped and joining while the stream runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.broker import DevBroker
from tests.lake.daemons import Daemons, running
from tests.lake.lakes import Lake
from tests.lake.streams import TableInEach, TableInSeveral

pytestmark = [pytest.mark.lake, pytest.mark.integration, pytest.mark.timeout(600)]

KAFKA = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "group.instance.id": ""}
"""A member that is killed is out soon, and nobody waits for one that does not come back."""

PLACES = "`_partition`, `_offset`"


class Group:
    """Two topics: of a table in each partition, and of a table in several; what becomes of them."""

    def __init__(self, lake: Lake, broker: DevBroker, folder: Path, partitions: int) -> None:
        # The lake is the run's: no other test has a database of the folder's name.
        self.shop, self.book = f"{folder.name}_shop", f"{folder.name}_book"
        self.each = TableInEach(self.shop, partitions)
        self.several = TableInSeveral(self.book, "orders", partitions)
        routes = [
            {"target": "lake.{database}.{table}"},
            {"target": "lake.{database}.{table}_log", "mode": "append"},
        ]
        shared = {"route": routes, "kafka": KAFKA}
        pipelines = {
            "shop": {
                "topics": ["shop"], "format": "canal-json", "group": "shop",
                "include": [f"{self.shop}.*"], **shared,
            },
            "book": {
                "topics": ["book"], "format": "debezium-json", "group": "book",
                "include": [f"{self.book}.*"], "positions": "postgres-lsn", **shared,
            },
        }  # fmt: skip
        self.daemons = Daemons(lake, broker, folder, pipelines)
        for topic in ("shop", "book"):
            self.daemons.create_topic(topic, partitions)

    def wave(self) -> None:
        """More of both topics, while whoever runs reads them."""
        self.daemons.produce("shop", self.each.wave(150))
        self.daemons.produce("book", self.several.wave(150))

    def check(self, spark: SparkSession) -> None:
        """Each table is the source's; each change is in its log once."""
        for number, rows in enumerate(self.each.tables):
            assert held(spark, f"{self.shop}.t{number}", "id, name, qty") == listed(rows)
            places = [(number, offset) for offset in range(self.each.sent[number])]
            assert held(spark, f"{self.shop}.t{number}_log", PLACES) == places
        assert held(spark, f"{self.book}.orders", "id, name, n") == listed(self.several.rows)
        places = [(part, at) for part, sent in enumerate(self.several.sent) for at in range(sent)]
        assert held(spark, f"{self.book}.orders_log", PLACES) == places


def held(spark: SparkSession, table: str, columns: str) -> list[tuple[object, ...]]:
    """A table's rows, ordered."""
    found = spark.sql(f"SELECT {columns} FROM lake.{table} ORDER BY 1, 2")
    return [tuple(row) for row in found.collect()]


def listed(rows: dict[int, tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted((key, *row) for key, row in rows.items())


@pytest.fixture
def broker(lake: Lake, spark_master: str, tmp_path: Path) -> Iterator[DevBroker]:
    """A broker of the test's own, where the lake is the one that this file is about."""
    if lake.name != "rest-s3" or not spark_master.startswith("local"):
        pytest.skip("one lake is enough: rest-s3, and each daemon's Spark in one process")
    with DevBroker(tmp_path / "broker") as started:
        yield started


def test_two_daemons(lake, broker, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """One of them is killed in mid-stream, the other is stopped."""
    group = Group(lake, broker, tmp_path, 2)
    with running(group.daemons) as daemons:
        group.wave()
        first, second = daemons.start("first"), daemons.start("second")
        theirs = second.of("shop", "assigned")["source"]
        group.wave()
        second.wait_for("written")
        group.wave()
        daemons.kill("second")
        group.wave()
        first.of("shop", "assigned", source=theirs)
        group.wave()
        daemons.stop("first")
        daemons.catch_up("last")
    group.check(request.getfixturevalue("spark"))


def test_four_daemons(lake, broker, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Two are killed, one of which comes back; one is stopped; two join."""
    group = Group(lake, broker, tmp_path, 8)
    with running(group.daemons) as daemons:
        group.wave()
        logs = {name: daemons.start(name) for name in ("a", "b")}
        for log in logs.values():
            log.of("book", "assigned")
        group.wave()
        logs |= {name: daemons.start(name) for name in ("c", "d")}
        for name in ("c", "d"):
            logs[name].of("shop", "assigned")
            group.wave()
        logs["b"].wait_for("written")
        daemons.kill("b")
        group.wave()
        daemons.stop("c")
        group.wave()
        daemons.start("b").of("shop", "assigned")
        group.wave()
        daemons.kill("d")
        daemons.start("e").of("book", "assigned")
        group.wave()
        daemons.stop("a", "b", "e")
        daemons.catch_up("last")
    group.check(request.getfixturevalue("spark"))
