"""Cuts of a bank: in each, the accounts of all tables hold what they held together at first."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing

import duckdb
import pytest
from pyspark.sql import Row

from sparkwriter.iceberg.queries import load_extensions
from tests.integration.bank import TYPES, Bank, by_spark
from tests.integration.rig import Rig
from tests.integration.test_process import Follower, daemon, ended, follower

__all__ = ["follower"]

TABLES = 5


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("partitions", "format_"), [(1, "maxwell-json"), (3, "maxwell-json"), (3, "debezium-json")]
)
def test_a_cut_is_between_two_transactions(
    rig: Rig, follower: Follower, partitions: int, format_: str
) -> None:
    """Each of them, also behind a kill; what is read without one hardly ever is. Of several
    partitions by time, where each transaction has its own, or by Debezium's ends."""
    debezium = format_ == "debezium-json"
    if partitions > 1:
        rig.topic = f"{rig.topic}-{partitions}-{format_}"
        rig.create_topic(rig.topic, partitions + debezium)
    kind = {"format": format_, "cut_every": "1s", "cuts.table": f"lake.{rig.db}.cuts"}
    config = rig.write_config(p=rig.pipeline(**kind, types=TYPES, write=None))
    bank = Bank(rig, TABLES, partitions, debezium=debezium)
    bank.open()
    process = daemon("run", "--config", str(config), start_new_session=True)
    follower.wait_for("running")
    follower.wait_for("cut")
    with bank.open_for_business(500):
        follower.wait_for("cut", times=4)
        plain = [by_spark(rig, TABLES).held for _ in range(5)]
        process.kill()
        ended(process)
        process = daemon("run", "--config", str(config), start_new_session=True)
        follower.wait_for("running")
        follower.wait_for("cut", times=4)
    process.send_signal(signal.SIGTERM)
    assert ended(process, 120)[0] == 0
    rows = rig.spark.sql(f"SELECT * FROM lake.`{rig.db}`.cuts ORDER BY number").collect()
    by_transaction = [row for row in rows if row.boundary == "transaction"]
    if debezium:
        assert len(by_transaction) >= 6  # of each run all but the first ones
        rows = by_transaction
    else:
        assert len(rows) >= 9
        assert by_transaction == (rows if partitions == 1 else [])
    assert whole_of(rig, rows[-12:], bank.total) >= (5 if debezium else 8)
    assert set(plain) != {bank.total}
    for partition in range(partitions + debezium):
        places = [json.loads(row.positions)[f"{rig.topic}:{partition}"] for row in rows]
        assert places == sorted(set(places))


def whole_of(rig: Rig, rows: list[Row], total: int) -> int:
    """How many of these cuts have all tables: then their sum is right."""
    whole = 0
    for row in rows:
        versions, left_out = json.loads(row.tables), json.loads(row.left_out)
        assert len(versions) + len(left_out) == TABLES
        if not left_out:
            assert by_spark(rig, TABLES, versions).held == total, row
            whole += 1
    return whole


def at_once(rig: Rig) -> int:
    """What all accounts hold in a lake, by the pointers that its catalog shows in one look."""
    with closing(sqlite3.connect(rig.lake["uri"].removeprefix("jdbc:sqlite:"))) as catalog:
        asked = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND "
        asked += "table_name LIKE 'accounts%'"
        found = [place for (place,) in catalog.execute(asked, (rig.db,))]
    every = " UNION ALL ".join(f"SELECT held FROM iceberg_scan('{place}')" for place in found)
    with closing(duckdb.connect()) as connection:
        load_extensions(duckdb, connection)
        row = connection.execute(f"SELECT sum(held) FROM ({every})").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("atomic", [True, False])
def test_a_lakes_tables_come_to_a_cut_at_once(rig: Rig, follower: Follower, atomic: bool) -> None:
    """Whoever takes all pointers in one look sees whole transactions, behind a kill, too. Without
    it hardly ever (the control)."""
    if rig.lake.get("type") != "jdbc" or not rig.lake["uri"].startswith("jdbc:sqlite:"):
        pytest.skip("reads the catalog's own table")
    kind = {"format": "maxwell-json", "cut_every": "1s", "cuts.table": f"lake.{rig.db}.cuts"}
    more = {**kind, "cuts.atomic": atomic, "types": TYPES, "write": None}
    config, bank = rig.write_config(p=rig.pipeline(**more)), Bank(rig, TABLES)
    bank.open()
    process = daemon("run", "--config", str(config), start_new_session=True)
    follower.wait_for("running")
    follower.wait_for("cut")
    seen = []
    with bank.open_for_business(500):
        for _ in range(2):
            seen += [at_once(rig) for _ in range(15)]
            process.kill()
            ended(process)
            process = daemon("run", "--config", str(config), start_new_session=True)
            follower.wait_for("running")
            seen += [at_once(rig) for _ in range(5)]
            follower.wait_for("cut", times=2)
    process.send_signal(signal.SIGTERM)
    assert ended(process, 120)[0] == 0
    assert (set(seen) == {bank.total}) == atomic, [held - bank.total for held in seen]
