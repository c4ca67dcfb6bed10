"""Verification of a real table as it is in a cut, while source and target go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from changes.model.model import TargetName
from daemon.operations.engine.record import JobRequest
from daemon.operations.verify.at_cut import AtCut, at_cut, why_not_in
from daemon.operations.verify.job.kind import VerifyKind
from offsets.cuts import Cut
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot, SpillMark
from tests.daemon.operations.verify.rig import LANE, Rig
from tests.databases.base.servers import Server
from tests.needs import needed


@pytest.fixture(params=["mariadb", "postgresql"])
def numbered(
    request: pytest.FixtureRequest,
    servers: Mapping[str, Server],
    drivers: None,
    spark: SparkSession,
    tmp_path: Path,
    lake_conf: Mapping[str, str],
) -> Rig:
    """100 rows with a number as key, and their equal target."""
    with needed():
        server = servers[request.param]
    rig = Rig(server, spark, tmp_path, lake_conf)
    rig.run(f"CREATE TABLE {rig.schema}.t (id BIGINT PRIMARY KEY, note VARCHAR(20))")
    rows = ", ".join(f"({number}, 'note {number}')" for number in range(100))
    rig.run(f"INSERT INTO {rig.schema}.t VALUES {rows}")
    rig.filled({"id": "long", "note": "string"})
    return rig


def change(rig: Rig, id_: int, note: str | None) -> None:
    """At the source, and in its log, in a message that is one of Canal's and one of Debezium's."""
    row = {"id": id_, "note": note or f"note {id_}"}
    if note is None:
        rig.run(f"DELETE FROM {rig.schema}.t WHERE id = {id_}")
        more = {"type": "DELETE", "op": "d", "before": row, "after": None, "old": None}
    else:
        rig.run(f"UPDATE {rig.schema}.t SET note = '{note}' WHERE id = {id_}")
        more = {"type": "UPDATE", "after": row, "old": [{"note": "x"}]}
    data = [{name: str(value) for name, value in row.items()}]
    types = {"id": "bigint", "note": "varchar(20)"}
    rig.change(id_, more | {"database": rig.schema, "table": "t", "data": data, "mysqlType": types})


def cut(rig: Rig) -> dict[str, Any]:
    """One of now."""
    at = rig.log.logs[LANE].high
    version = rig.session.sql(
        f"SELECT snapshot_id FROM lake.`{rig.schema}`.t.refs WHERE name = 'main'"
    ).collect()[0][0]
    versions = {str(rig.target): str(version)}
    return AtCut(7, 1_800_000_000_000, "0-1-9", {LANE: at}, versions, {}).document()


@pytest.mark.integration
def test_the_data_of_the_cut_is_compared_and_nothing_later(numbered: Rig) -> None:
    """What was wrong then is told, though the target was mended since; what became wrong is not."""
    rig = numbered
    rig.lake("UPDATE {t} SET note = 'stale' WHERE id IN (5, 6)")
    rig.lake("DELETE FROM {t} WHERE id = 11")
    then = cut(rig)
    rig.lake("UPDATE {t} SET note = 'note 5' WHERE id = 5")
    rig.lake("UPDATE {t} SET note = 'junk' WHERE id = 9")
    for key, note in ((6, "since"), (7, "since"), (8, None)):
        change(rig, key, note)
    result = rig.verified(at_cut=then)
    (table,) = result["tables"]
    assert [(row["key"], row["what"]) for row in table["rows_that_differ"]] == [
        ({"id": "11"}, "missing"), ({"id": "5"}, "differs"),
    ], table  # fmt: skip
    assert (table["undecided"], table["changed_since"]) == ([], 3)
    assert "3 rows have changed since the cut, and can't be compared" in table["notes"]
    assert result["cut"] == {name: then[name] for name in result["cut"]}


@pytest.mark.integration
def test_a_table_that_goes_on_is_equal_in_its_cut(numbered: Rig) -> None:
    """Nothing is waited for: the pipeline stands still, and its target is in quarantine."""
    rig = numbered
    then = cut(rig)
    change(rig, 7, "since")
    rig.lake("UPDATE {t} SET note = 'junk' WHERE id = 9")
    rig.control.spills[str(rig.target)] = SpillMark(9, {LANE: (then["positions"][str(LANE)], 99)})
    result = rig.verified(at_cut=then)
    (table,) = result["tables"]
    assert (table["equal"], table["changed_since"]) == (True, 1), table


@pytest.mark.integration
@pytest.mark.parametrize("numbered", ["mariadb"], indirect=True)
def test_a_version_that_is_gone_or_had_other_columns_is_not_compared(numbered: Rig) -> None:
    """It is told in the result: the job goes on with other tables."""
    rig = numbered
    then = cut(rig)
    without = then | {"versions": {}, "left_out": {str(rig.target): "cut 7 is without it: paused"}}
    result = rig.verified(at_cut=without)
    (table,) = result["tables"]
    assert (table["skipped"], result["equal"]) == ("cut 7 is without it: paused", False)
    gone = then | {"versions": {str(rig.target): "123"}}
    (table,) = rig.verified(at_cut=gone)["tables"]
    assert table["skipped"] == "its snapshot 123 is gone: it was filled again, or has expired"
    rig.run(f"ALTER TABLE {rig.schema}.t ADD COLUMN more INT DEFAULT 5")
    rig.lake("ALTER TABLE {t} ADD COLUMN more INT")
    (table,) = rig.verified(at_cut=then)["tables"]
    assert table["skipped"] == "its columns were others then: no more"


def recorded(state: PartitionState | None) -> Snapshot:
    return Snapshot("p", "g", partitions={} if state is None else {LANE: state})


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (PartitionState(10, begin=3), None),
        (PartitionState(9), "cut 7 is of offset 10 of shop:0, which is not read here"),
        (None, "which is not read here"),
        (PartitionState(50, begin=20), "shop:0 is read from offset 20 on, behind cut 7"),
    ],
)
def test_a_log_that_does_not_tell_what_changed_since_is_refused(
    state: PartitionState | None, why: str | None
) -> None:
    of = AtCut(7, None, None, {LANE: 10}, {"t": "1"}, {})
    said = of.refuses("t", recorded(state))
    assert said is None if why is None else why in str(said)


def test_a_job_with_a_broken_cut_is_refused() -> None:
    params = {"tables": ["s.t"], "sample": 1, "at_cut": {"number": 7}}
    wanted = JobRequest("verify", "p", ("lake.s.t",), params)
    assert '"at_cut" is none' in "".join(VerifyKind().wrong(wanted))
    whole = AtCut(7, None, None, {TopicPartition("shop", 0): 10}, {"lake.s.t": "1"}, {}).document()
    again = JobRequest(
        "verify", "p", ("lake.s.t",), {**params, "at_cut": json.loads(json.dumps(whole))}
    )
    assert VerifyKind().wrong(again) == []
    assert AtCut.of(whole).document() == whole


def test_only_what_is_in_the_cut_is_compared() -> None:
    """The others are named with the reason."""
    orders, items, nobody = (TargetName("lake", "s", name) for name in ("orders", "items", "x"))
    places = {LANE: 10}
    of = Cut(7, "p", "transaction", places, None, None, {str(orders): "1"}, {str(items): "is away"})
    assert why_not_in(of, orders, {"lake"}) is None
    assert why_not_in(of, items, {"lake"}) == "cut 7 is without it: is away"
    assert why_not_in(of, nobody, {"lake"}) == "cut 7 knows no such table"
    gone = "sink lake keeps no former versions of its tables"
    assert why_not_in(of, orders, {"other"}) == gone
    found = at_cut(of, [orders, items], {"lake"})
    out = {str(items): "cut 7 is without it: is away"}
    assert found == AtCut(7, None, None, places, {str(orders): "1"}, out)
    assert found.refuses(str(items), recorded(PartitionState(10))) == out[str(items)]
