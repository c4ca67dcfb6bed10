"""Verification of one partition of a real table of the lake, also as it is in a cut."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from daemon.operations.verify.at_cut import AtCut
from tests.daemon.operations.verify.rig import LANE, Rig
from tests.databases.base.servers import Server
from tests.needs import needed

pytestmark = pytest.mark.integration

TYPES = {"id": "long", "made": "timestamp", "seen": "timestamptz", "day": "date"}


@pytest.fixture(params=["mariadb", "postgresql"])
def rig(
    request: pytest.FixtureRequest,
    servers: Mapping[str, Server],
    drivers: None,
    spark: SparkSession,
    tmp_path: Path,
    lake_conf: Mapping[str, str],
) -> Rig:
    """Ten rows of each of three days, and their equal target."""
    with needed():
        server = servers[request.param]
    made = Rig(server, spark, tmp_path, lake_conf)
    postgres = server.kind == "postgresql"
    types = ("timestamp", "timestamptz") if postgres else ("DATETIME(6)", "TIMESTAMP(6) NULL")
    made.run(
        f"CREATE TABLE {made.schema}.t (id BIGINT PRIMARY KEY, made {types[0]}, seen {types[1]},"
        " day DATE)"
    )
    rows = []
    for number in range(30):
        day = f"2026-11-{24 + number // 10}"
        at = f"{day} 0{number % 10}:00:00"
        rows.append(f"({number}, '{at}', '{at}{'+00' if postgres else ''}', '{day}')")
    made.run(f"INSERT INTO {made.schema}.t VALUES {', '.join(rows)}")
    made.filled(TYPES)
    return made


def told(result: Mapping[str, Any]) -> dict[int, str]:
    (table,) = result["tables"]
    return {int(row["key"]["id"]): row["what"] for row in table["rows_that_differ"]}


def test_each_row_of_the_partition_is_found_wherever_it_is(rig: Rig) -> None:
    """Which of the columns selects does not matter. Other rows are not told, and stay as they are;
    what the target holds here and the source elsewhere is moved there."""
    whole = rig.verified(partition="day=2026-11-25")
    (table,) = whole["tables"]
    assert (whole["equal"], whole["partition"]) == (True, "day=2026-11-25"), whole
    assert (table["rows"], table["target_rows"]) == (10, 10)
    rig.lake("UPDATE {t} SET made = TIMESTAMP_NTZ'2026-11-25 23:59:59.999999' WHERE id IN (3, 12)")
    rig.lake("UPDATE {t} SET made = TIMESTAMP_NTZ'2026-11-26 00:00:00' WHERE id IN (13, 23)")
    rig.lake("UPDATE {t} SET made = NULL WHERE id IN (14, 24)")
    rig.lake("DELETE FROM {t} WHERE id IN (15, 25)")
    rig.lake(
        "INSERT INTO {t} (id, made) VALUES (98, TIMESTAMP_NTZ'2026-11-25 00:00:00'), (99, NULL)"
    )
    here = {3: "differs", 12: "differs", 13: "differs", 14: "differs", 15: "missing", 98: "extra"}
    assert told(rig.verified(partition="made=2026-11-25")) == here
    fixed = rig.verified(partition="made=2026-11-25", repair=True)
    assert (fixed["equal"], fixed["repaired"]) == (True, len(here)), fixed
    assert told(rig.verified()) == {23: "differs", 24: "differs", 25: "missing", 99: "extra"}


def test_an_instant_is_in_the_day_of_the_zone(rig: Rig) -> None:
    """On both sides."""
    for zone, rows in (("Z", 10), ("+05:00", 10), ("-05:00", 10), ("+02:00", 10)):
        (table,) = rig.verified(partition=f"seen=2026-11-25{zone}")["tables"]
        assert (table["equal"], table["rows"], table["target_rows"]) == (True, rows, rows), table
    rig.lake("UPDATE {t} SET day = NULL WHERE id IN (9, 10, 14, 15, 19, 20, 24, 25)")
    assert sorted(told(rig.verified(partition="seen=2026-11-25-05:00"))) == [15, 19, 20, 24]


def test_the_partition_as_it_is_in_a_cut(rig: Rig) -> None:
    """A row that has left it since, or come, has changed: nothing is told of it."""
    rig.lake("UPDATE {t} SET made = TIMESTAMP_NTZ'2026-11-25 12:00:00' WHERE id IN (3, 4)")
    name = f"lake.`{rig.schema}`.t"
    version = rig.session.sql(f"SELECT snapshot_id FROM {name}.refs WHERE name = 'main'").collect()
    versions = {str(rig.target): str(version[0][0])}
    cut = AtCut(7, None, None, {LANE: rig.log.logs[LANE].high}, versions, {}).document()
    rig.lake("UPDATE {t} SET made = TIMESTAMP_NTZ'2026-11-25 13:00:00' WHERE id = 5")
    for id_, made in ((12, "2026-11-24 09:30:00"), (22, "2026-11-25 09:30:00")):
        rig.run(f"UPDATE {rig.schema}.t SET made = '{made}' WHERE id = {id_}")
        row = {"id": id_, "made": made}
        rig.change(id_, {
            "database": rig.schema, "table": "t", "type": "UPDATE", "after": row,
            "data": [{name: str(value) for name, value in row.items()}], "old": [{"made": "x"}],
            "mysqlType": {"id": "bigint", "made": "datetime(6)"},
        })  # fmt: skip
    result = rig.verified(partition="made=2026-11-25", at_cut=cut)
    (table,) = result["tables"]
    assert told(result) == {3: "differs", 4: "differs"}
    assert (table["undecided"], table["changed_since"]) == ([], 2), table
    assert result["cut"]["number"] == 7


@pytest.mark.parametrize("rig", ["mariadb"], indirect=True)
def test_a_row_that_moves_meanwhile_is_no_difference(rig: Rig) -> None:
    """Out of the partition: the target gets it while the job waits."""
    rig.run(f"UPDATE {rig.schema}.t SET made = '2026-11-24 09:30:00' WHERE id = 12")
    message = {
        "database": rig.schema, "table": "t", "type": "UPDATE", "isDdl": False,
        "es": round(time.time() * 1000), "pkNames": ["id"],
        "mysqlType": {"id": "bigint", "made": "datetime(6)"},
        "data": [{"id": "12", "made": "2026-11-24 09:30:00"}], "old": [{"made": "x"}],
    }  # fmt: skip
    rig.log.produce(json.dumps(message).encode())
    rig.control.behind = 1_000_000

    def arrive() -> None:
        if rig.control.behind:
            rig.lake("UPDATE {t} SET made = TIMESTAMP_NTZ'2026-11-24 09:30:00' WHERE id = 12")
            rig.control.behind = 0

    rig.control.before_wait = arrive
    assert rig.verified(partition="made=2026-11-25", repair=True)["equal"]
    assert not rig.control.behind
