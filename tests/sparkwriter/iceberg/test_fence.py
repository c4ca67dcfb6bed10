"""Nobody's publish is lost and no late one lands, whatever comes between look and commit."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from changes.model.errors import LostRace, SinkUnavailable, TargetRefused
from changes.model.model import OP, TargetName
from offsets.fence import Fenced, Span, Straggler
from offsets.position import TopicPartition
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.publish import (
    MAIN,
    change_table,
    create_branch,
    drop_branch,
    publish_branch,
)
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.statements import STAMP_CONF

pytestmark = pytest.mark.integration
LANE = TopicPartition("shop", 0)
OTHER = TopicPartition("shop", 1)
Rows = Callable[..., list[tuple[object, ...]]]


def load(spark: SparkSession, target: TargetName, kind: type[Any] = LakeTable) -> Any:
    """The table as another process would load it, behind the given class."""
    table = LakeCatalog(spark).load(target)
    assert table is not None
    return kind(spark.sparkContext._jvm, table.table)


def branches(spark: SparkSession, target: TargetName) -> list[str]:
    return [row.name for row in spark.sql(f"SELECT name FROM {'.'.join(target)}.refs").collect()]


@pytest.fixture
def begun(writer: IcebergWriter, staging: Any, orders: Any) -> Any:
    """The staging of a target that holds order 1 and the mark 1."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    return staging


def test_mark_below_the_batch(writer, begun, rows: Rows, orders) -> None:
    """A batch that begins above the mark would leave a gap: fenced by lane and both offsets."""
    with pytest.raises(Fenced, match=r"shop:0 stands at 1, expected 5"):
        writer.write(begun.batch(orders(("U", 2, "b", 2)), 9, after=5))
    assert rows(begun.target) == [(1, "a", 1)]


def test_mark_inside_the_batch(writer, begun, orders) -> None:
    """A batch that is partly written already is fenced, not written again."""
    with pytest.raises(Fenced, match=r"shop:0 stands at 1, expected 0"):
        writer.write(begun.batch(orders(("U", 1, "old", 0)), 9, after=0))


def test_one_lane_covered_another_not(writer, begun, rows: Rows, orders) -> None:
    """Where one lane is ahead, the batch's rows of it may be older than the table's: fenced."""
    batch = begun.batch(orders(("U", 1, "old", 0)), 0)
    lanes = {LANE: Span(-1, 0), OTHER: Span(-1, 7)}
    with pytest.raises(Fenced, match="shop:0"):
        writer.write(replace(batch, lanes=lanes))
    assert rows(begun.target) == [(1, "a", 1)]


def test_who_moved_a_mark_is_kept_beside_it(writer, begun, spark: SparkSession) -> None:
    """In the same snapshot, lane by lane: a write says so of those that it moves."""
    batch = begun.batch(None, 7, after=-1, lane=OTHER)
    writer.write(replace(batch, group="g@here"))
    table = load(spark, begun.target)
    assert json.loads(table.summary(table.head(MAIN), HWM)) == {
        "shop:0": 1,
        "shop:1": [7, "g@here"],
    }
    writer.write(replace(begun.batch(None, 2, after=1), group="g2@here"))
    table.refresh()
    marks = json.loads(table.summary(table.head(MAIN), HWM))
    assert marks == {"shop:0": [2, "g2@here"], "shop:1": [7, "g@here"]}
    assert writer.open(begun.target).hwms == {LANE: 2, OTHER: 7}


@pytest.mark.parametrize(
    ("mover", "told"), [("g@here", Straggler), ("g@there", Fenced), ("", Fenced)]
)
def test_a_straggler_of_the_own_group_is_told_from_a_stranger(
    writer, begun, orders, mover: str, told: type[Fenced]
) -> None:
    """By who moved the mark; one of whom nothing is known is a stranger, named where he is."""
    writer.write(replace(begun.batch(orders(("U", 2, "b", 2)), 5), group=mover))
    late = replace(begun.batch(orders(("U", 2, "old", 1)), 4, after=1), group="g@here")
    with pytest.raises(Fenced, match=r"shop:0 stands at 5, expected 1") as fenced:
        writer.write(late)
    assert type(fenced.value) is told
    assert ("moved by group g@there" in str(fenced.value)) == (mover == "g@there")


def test_a_stranger_in_one_lane_is_not_hidden_by_a_straggler_in_another(
    writer, begun, orders
) -> None:
    """All lanes that moved must be the group's own."""
    writer.write(replace(begun.batch(orders(("U", 2, "b", 2)), 5), group="g@here"))
    stranger = begun.batch(None, 6, after=-1, lane=OTHER)
    writer.write(replace(stranger, group="g2@here"))
    late = begun.batch(orders(("U", 2, "old", 1)), 4)
    lanes = {LANE: Span(1, 4), OTHER: Span(-1, 7)}
    with pytest.raises(Fenced, match="g2@here") as fenced:
        writer.write(replace(late, lanes=lanes, group="g@here"))
    assert type(fenced.value) is Fenced


UNORDERED = (
    r"shop:1 up to offset 7: .* already holds changes of shop:0: partitions have no order between "
    r'them, .*route the second one to another target, use mode = "append", or set positions'
)


def test_a_second_lane_without_an_order(writer, begun, rows: Rows, orders) -> None:
    """It knows the first one's mark, or not: its rows may be older than the table's."""
    with pytest.raises(TargetRefused, match=UNORDERED):
        writer.write(begun.batch(orders(("U", 1, "old", 0)), 7, after=-1, lane=OTHER))
    assert rows(begun.target) == [(1, "a", 1)]
    assert writer.open(begun.target).hwms == {LANE: 1}
    both = begun.batch(orders(("U", 1, "old", 0)), 2)
    with pytest.raises(TargetRefused, match="no order between them"):
        writer.write(replace(both, lanes={LANE: Span(1, 2), OTHER: Span(-1, 7)}))


@pytest.mark.parametrize("step", ["create", "commit"])
def test_two_lanes_that_race_at_the_first_write(
    spark: SparkSession, writer, staging, rows: Rows, orders, monkeypatch, step: str
) -> None:
    """Both saw that there is no table: whoever comes second, to make it or to publish its rows,
    finds the other's lane."""
    first = staging.batch(orders(("U", 1, "a", 1)), 1, after=-1)
    second = staging.batch(orders(("U", 1, "old", 0)), 7, after=-1, lane=OTHER)
    kind: Any = LakeCatalog if step == "create" else LakeTable
    real = getattr(kind, step)

    def overtaken(*given: Any) -> Any:
        monkeypatch.undo()
        IcebergWriter(spark).write(first)
        return real(*given)

    monkeypatch.setattr(kind, step, overtaken)
    if step == "commit":
        with pytest.raises(LostRace, match="main moved"):
            writer.write(second)
    with pytest.raises(TargetRefused, match=UNORDERED):
        writer.write(second)
    assert rows(staging.target) == [(1, "a", 1)]
    assert writer.open(staging.target).hwms == {LANE: 1}


def test_table_that_went_away(writer, begun, spark: SparkSession, orders) -> None:
    """A table that was dropped is not made again from the middle of its stream."""
    spark.sql(f"DROP TABLE {'.'.join(begun.target)}")
    with pytest.raises(Fenced, match=r"stands at -1, expected 1"):
        writer.write(begun.batch(orders(("U", 2, "b", 2)), 2))


def test_zombie(writer, begun, spark: SparkSession, rows: Rows, orders) -> None:
    """A branch made before another's publish can't land after it, nor take anything back."""
    zombie = load(spark, begun.target)
    main = zombie.head(MAIN)
    create_branch(zombie, "zombie", main)
    zombie.stamp("zombie", "binlogd.hwm", '{"shop:0": 99}')
    state = writer.write(begun.batch(orders(("U", 2, "b", 2)), 2))
    zombie.refresh()
    with pytest.raises(SinkUnavailable, match="main moved"):
        publish_branch(zombie, "zombie", main, zombie.head("zombie"))
    assert writer.open(begun.target) == state
    assert rows(begun.target) == [(1, "a", 1), (2, "b", 2)]


class Raced(LakeTable):
    """Between its look and its commit, something else commits."""

    between: Callable[[], object]

    def commit(self, change: Callable[[Any], object]) -> None:
        between, self.between = self.between, lambda: None
        between()
        super().commit(change)


def test_main_moves_between_look_and_commit(
    writer, begun, spark: SparkSession, rows: Rows, orders
) -> None:
    """A publish that was fine when looked at loses to one that commits first, which stays."""
    table = load(spark, begun.target, Raced)
    main = table.head(MAIN)
    table.between = lambda: None
    create_branch(table, "late", main)
    table.stamp("late", "binlogd.hwm", '{"shop:0": 99}')
    table.refresh()
    batch = begun.batch(orders(("U", 2, "b", 2)), 2)
    table.between = lambda: writer.write(batch)
    with pytest.raises(LostRace, match="main moved"):
        publish_branch(table, "late", main, table.head("late"))
    assert rows(begun.target) == [(1, "a", 1), (2, "b", 2)]
    assert writer.open(begun.target).hwms == {LANE: 2}


def test_branch_is_not_made_from_an_old_main(writer, begun, spark: SparkSession, orders) -> None:
    """Making the branch does not set main back to what it was when the table was loaded.

    A REST catalog makes it, for main is not what that commit is about; it can't be published.
    """
    table = load(spark, begun.target, Raced)
    main = table.head(MAIN)
    batch = begun.batch(orders(("U", 2, "b", 2)), 2)
    table.between = lambda: writer.write(batch)
    with contextlib.suppress(LostRace):
        create_branch(table, "late", main)
    with pytest.raises(LostRace, match="main moved"):
        publish_branch(table, "late", main, main)
    assert writer.open(begun.target).hwms == {LANE: 2}


def test_properties_are_not_changed_on_an_old_main(
    writer, begun, spark: SparkSession, orders
) -> None:
    """What a renaming or a swap notes is of the rows that were looked at, or it is not noted: also
    in a REST catalog, which compares only what a commit changes."""
    table = load(spark, begun.target, Raced)
    main = table.head(MAIN)
    table.between = lambda: writer.write(begun.batch(orders(("U", 2, "b", 2)), 2))
    noted = {"noted": "yes"}
    with pytest.raises(LostRace, match="main moved"):
        change_table(table, main, lambda builder: builder.setProperties(noted), lambda: False)
    assert load(spark, begun.target).property("noted") is None


def test_properties_are_changed_as_often_as_it_takes(begun, spark: SparkSession) -> None:
    """Main shows what it showed, and is expired no sooner."""
    table = load(spark, begun.target)
    main = table.head(MAIN)
    for value in "abc":
        change_table(
            table,
            main,
            lambda builder, value=value: builder.setProperties({"noted": value}),
            lambda value=value: table.property("noted") == value,
        )
        assert load(spark, begun.target).property("noted") == value
    table.refresh()
    table.expire(2**62, 1)
    assert load(spark, begun.target).head(MAIN) == main


def test_unrelated_commit_between(writer, begun, spark: SparkSession) -> None:
    """A commit that leaves main where it is only makes the publish look again, and both stay."""
    table = load(spark, begun.target, Raced)
    main = table.head(MAIN)
    table.between = lambda: None
    create_branch(table, "fine", main)
    table.stamp("fine", "binlogd.hwm", '{"shop:0": 3}')
    table.refresh()
    name = ".".join(begun.target)
    table.between = lambda: spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')")
    publish_branch(table, "fine", main, table.head("fine"))
    assert writer.open(begun.target).hwms == {LANE: 3}
    assert branches(spark, begun.target) == [MAIN]
    assert load(spark, begun.target).property("a") == "b"


class Deaf(LakeTable):
    """Its commits land, their replies do not."""

    def commit(self, change: Callable[[Any], object]) -> None:
        super().commit(change)
        raise Py4JError("the reply was lost")


@pytest.mark.parametrize("attempts", [1, 10])
def test_reply_that_is_lost(writer, begun, spark: SparkSession, monkeypatch, attempts) -> None:
    """A publish that landed is found to have, though its commit seemed to fail: the last of its
    attempts, too."""
    monkeypatch.setattr("sparkwriter.iceberg.publish.SWAP_ATTEMPTS", attempts)
    table = load(spark, begun.target, Deaf)
    main = table.head(MAIN)
    create_branch(table, "heard", main)
    table.stamp("heard", "binlogd.hwm", '{"shop:0": 4}')
    table.refresh()
    publish_branch(table, "heard", main, table.head("heard"))
    assert writer.open(begun.target).hwms == {LANE: 4}


def test_dropping_twice(begun, spark: SparkSession) -> None:
    """A branch that is gone is dropped already."""
    table = load(spark, begun.target)
    create_branch(table, "gone", table.head(MAIN))
    drop_branch(table, "gone")
    drop_branch(table, "gone")
    assert branches(spark, begun.target) == [MAIN]


def test_failed_write_leaves_nothing(writer, begun, spark: SparkSession, rows: Rows) -> None:
    """After a failure in the middle: no branch, no view, no stamp waiting, one line of reason."""
    bad = pa.table({OP: ["U", "U"], "id": [1, 1], "note": ["x", "y"], "n": pa.array([1, 1], "i4")})
    with pytest.raises(TargetRefused) as refusal:
        writer.write(begun.batch(bad, 2))
    assert "\n" not in str(refusal.value)
    assert str(begun.target) in str(refusal.value)
    assert branches(spark, begun.target) == [MAIN]
    assert writer._lake._spark.catalog.listTables() == []
    assert writer._lake._spark.conf.get(STAMP_CONF, None) is None
    assert rows(begun.target) == [(1, "a", 1)]


def test_staged_file_that_is_gone(writer, begun, orders, spark: SparkSession) -> None:
    """It can be staged again, so the write may be tried again."""
    batch = begun.batch(orders(("U", 2, "b", 2)), 2)
    Path(batch.path).unlink()
    with pytest.raises(SinkUnavailable, match="staged file"):
        writer.write(batch)
    assert branches(spark, begun.target) == [MAIN]


def test_foreign_table(writer, staging, spark: SparkSession, orders) -> None:
    """A table that somebody else made is refused by name, and left alone."""
    writer._lake.catalog.create(staging.target, (), {}, ("some", "stamp"))
    with pytest.raises(TargetRefused, match=staging.target.table):
        writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    with pytest.raises(TargetRefused, match="not made by binlogd"):
        writer.open(staging.target)


def test_mark_that_is_gone(writer, staging, begun, spark: SparkSession) -> None:
    """Where no snapshot of main's history carries the mark, nobody guesses it."""
    name = ".".join(begun.target)
    spark.sql(f"INSERT INTO {name} VALUES (5, 'e', 5)")
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{begun.target.namespace}."
        f"{begun.target.table}', older_than => TIMESTAMP '9999-01-01', retain_last => 1)"
    )
    with pytest.raises(TargetRefused, match="mark is gone"):
        writer.open(begun.target)


def test_maintenance_keeps_the_mark(writer, begun, spark: SparkSession, rows: Rows, orders) -> None:
    """The mark is read through snapshots that others put on top."""
    name = ".".join(begun.target)
    spark.sql(
        f"CALL lake.system.rewrite_manifests('{begun.target.namespace}.{begun.target.table}')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (5, 'e', 5)")
    assert writer.open(begun.target).hwms == {LANE: 1}
    writer.write(begun.batch(orders(("U", 5, "E", 5)), 2))
    assert rows(begun.target) == [(1, "a", 1), (5, "E", 5)]


def test_rolled_back(writer, begun, spark: SparkSession, orders) -> None:
    """After a rollback the table shows the mark of what it holds, not of what it held."""
    before = writer.open(begun.target)
    writer.write(begun.batch(orders(("U", 2, "b", 2)), 2))
    spark.sql(
        f"CALL lake.system.rollback_to_snapshot('{begun.target.namespace}.{begun.target.table}',"
        f" {before.version})"
    )
    assert writer.open(begun.target) == before


def test_writers_side_by_side(spark: SparkSession, staging, rows: Rows, orders) -> None:
    """Two writers on two threads write two targets at once, each with its own marks."""
    gate = threading.Barrier(2, timeout=60)

    def run(table: str, number: int) -> dict[TopicPartition, int]:
        writer = IcebergWriter(spark)
        target = TargetName("lake", "sink", table)
        for step in range(3):
            batch = staging.batch(orders(("U", number, "a", step)), number + step, after=0)
            span = Span(number + step - 1 if step else -1, number + step)
            gate.wait()
            writer.write(replace(batch, target=target, lanes={LANE: span}))
        return dict(writer.open(target).hwms)

    names = [f"{staging.target.table}_{letter}" for letter in "ab"]
    with ThreadPoolExecutor(2) as pool:
        marks = list(pool.map(run, names, [100, 200]))
    assert marks == [{LANE: 102}, {LANE: 202}]
    assert [rows(TargetName("lake", "sink", name)) for name in names] == [
        [(100, "a", 2)],
        [(200, "a", 2)],
    ]


CHILD = """
import pickle, sys
from pathlib import Path
import structlog
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
from changes.model.errors import SinkUnavailable
from offsets.fence import Fenced
from sparkwriter.iceberg.sink import IcebergWriter
from actors.runtime.jars import lake_jars
from sparkwriter.session.session import start_session
log, conf, batch = pickle.load(sys.stdin.buffer)
scratch = Path(log).with_suffix(".scratch")
spark = start_session({}, "local[1]", lake_jars(), {"lake": conf}, Path(log), scratch)
writer = IcebergWriter(spark)
writer.open(batch.target)
print("ready", flush=True)
sys.stdin.buffer.readline()
try:
    print(writer.write(batch).version, flush=True)
except (Fenced, SinkUnavailable) as fenced:
    print("Fenced", fenced, flush=True)
"""


@pytest.mark.long
def test_two_processes(
    writer, begun, spark: SparkSession, rows: Rows, orders, lake_conf, tmp_path: Path, monkeypatch
) -> None:
    """Of two processes that write one target from one mark, one lands and the other is fenced."""
    import pickle

    from actors.runtime.java import find_java

    theirs = begun.batch(orders(("U", 2, "theirs", 2)), 20, after=1)
    ours = begun.batch(orders(("U", 2, "ours", 2)), 10, after=1)
    monkeypatch.setenv("JAVA_HOME", str(find_java().home))
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        pickle.dump((str(tmp_path / "child.log"), lake_conf, theirs), child.stdin)
        child.stdin.flush()
        assert child.stdout.readline() == b"ready\n"
        child.stdin.write(b"go\n")
        child.stdin.flush()
        try:
            won = bool(writer.write(ours).version)
        except (Fenced, SinkUnavailable):  # told apart by who looked when: the retry is fenced
            won = False
            with pytest.raises(Fenced):
                writer.write(ours)
        said = child.stdout.readline().decode()
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.wait()
    assert said.startswith("Fenced") is won
    assert rows(begun.target) == [(1, "a", 1), (2, "ours" if won else "theirs", 2)]
    assert writer.open(begun.target).hwms == {LANE: 10 if won else 20}
    assert branches(spark, begun.target) == [MAIN]


def test_stamp_is_readable(begun, spark: SparkSession) -> None:
    """The mark stands in the snapshot's summary as plain JSON."""
    table = load(spark, begun.target)
    text = table.summary(table.head(MAIN), "binlogd.hwm")
    assert json.loads(text) == {"shop:0": 1}
