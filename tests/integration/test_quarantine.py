"""A refused target on the real broker and Spark: others go on, and it is whole in the end."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from offsets.position import TopicPartition
from settings.exit import Exit
from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, daemon, ended, run


@pytest.fixture
def follower(rig: Rig) -> Iterator[Follower]:
    made = Follower(rig.log_file)
    yield made
    made.close()


def produce_refused(rig: Rig) -> None:
    """A table whose ``qty`` the lake holds as a number, and then as a text; one that is fine."""
    bad, good = f"{rig.db}.bad", f"{rig.db}.good"
    text = {"mysqlType": {"id": "int(11)", "name": "varchar(255)", "qty": "varchar(9)"}}
    rig.produce(
        canal(bad, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(good, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
    )
    assert rig.run(config(rig)) is Exit.OK
    rig.produce(
        canal(bad, "INSERT", [{"id": 2, "name": "b", "qty": "x2"}], **text),
        canal(good, "INSERT", [{"id": 2, "name": "b", "qty": 2}]),
        canal(bad, "UPDATE", [{"id": 2, "name": "c", "qty": "x3"}], old=[{"qty": "x2"}], **text),
        canal(bad, "INSERT", [{"id": 3, "name": "d", "qty": "x4"}], **text),
    )


def config(rig: Rig) -> Path:
    routes = [
        {"target": "lake.{database}.{table}"},
        {"target": "lake.{database}.{table}_log", "mode": "append"},
    ]
    lines = {"on_refused_target": "quarantine", "target": None, "route": routes}
    return rig.write_config(p=rig.pipeline(**lines))


def put_right(rig: Rig) -> None:
    """The operator makes room: the columns become texts."""
    for table in ("bad", "bad_log"):
        name = f"lake.`{rig.db}`.`{table}`"
        rig.spark.sql(f"ALTER TABLE {name} RENAME COLUMN qty TO qty_number")
        rig.spark.sql(f"ALTER TABLE {name} ADD COLUMN qty STRING")


def test_a_refused_target_is_quarantined_and_others_go_on(rig: Rig) -> None:
    """The frontier is at the end: neither it nor Kafka's retention waits for the target."""
    produce_refused(rig)
    assert rig.run(config(rig)) is Exit.OK
    assert rig.rows("good") == [(1, "a", 1), (2, "b", 2)]
    assert rig.rows("bad") == [(1, "a", 1)]
    source = TopicPartition(rig.topic, 0)
    assert rig.snapshot().partitions[source].frontier == 6
    assert rig.snapshot().spills[f"lake.{rig.db}.bad"].lanes == {source: (2, 5)}


@pytest.mark.long
def test_kill_9_in_quarantine_then_a_release_writes_all_once(rig: Rig, follower: Follower) -> None:
    """Tables are equal, and the changelog beside shows each message once."""
    produce_refused(rig)
    path = config(rig)
    process = daemon("run", "-c", str(path))
    follower.wait_for("spilling", times=2)  # from here on it outlives the process
    process.send_signal(signal.SIGKILL)
    process.communicate()
    put_right(rig)
    rig.produce(canal(f"{rig.db}.good", "INSERT", [{"id": 3, "name": "c", "qty": 3}]))
    process = daemon("run", "-c", str(path))
    try:
        follower.wait_for("assigned")
        follower.wait_for("written")  # the good one's: reading is under way
        for table in ("bad", "bad_log"):
            target = f"lake.{rig.db}.{table}"
            assert run("tables", "retry", target, "-c", str(path)) == (0, "")
        follower.wait_for("released", times=2)
        refused, said = run("tables", "retry", f"lake.{rig.db}.bad", "-c", str(path))
        assert (refused, "is not in quarantine" in said) == (2, True)
        assert run("tables", "retry", "lake.no.such", "-c", str(path))[0] == 2
        listed = daemon("tables", "list", "--json", "-c", str(path)).communicate()[0]
    finally:
        process.send_signal(signal.SIGTERM)
        status, said = ended(process)
    assert status == 0, said
    assert all(row["spill"] is None for row in json.loads(listed))
    assert run("tables", "retry", "lake.no.such", "-c", str(path))[0] == 3
    found = rig.spark.sql(f"SELECT id, name, qty FROM lake.`{rig.db}`.bad ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, "a", None), (2, "c", "x3"), (3, "d", "x4")]
    log = rig.spark.sql(f"SELECT * FROM lake.`{rig.db}`.bad_log")
    offset = next(name for name in log.columns if "offset" in name)
    assert sorted(row[offset] for row in log.collect()) == [0, 2, 4, 5]
    assert rig.rows("good")[-1] == (3, "c", 3)
