"""Tags of cuts: a tagged snapshot stays readable whatever is done to its table, and is in no
other's way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from actors.contract.ports import Tags
from actors.contract.writes import Swap
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import AddColumn, Column, DropTable, TargetName, TruncateTable
from offsets.cuts import KeepCuts, tag_of
from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.ownership import anonymous
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.section import CompactionSection, MaintenanceSection, Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep

pytestmark = pytest.mark.integration
LANE = TopicPartition("shop", 0)
FIRST = 1_800_000_001
"""A cut's number, just behind a full hour."""
KEEP = KeepCuts(recent_s=60, hourly_days=1)
Rows = list[tuple[object, ...]]


@pytest.fixture
def at(spark: SparkSession, staging: Any) -> Callable[..., Rows]:
    """The target's rows in a version, as Spark reads it: a tag's name or a snapshot's id."""

    def read(version: str | int, target: TargetName | None = None) -> Rows:
        name = ".".join(f"`{part}`" for part in target or staging.target)
        text = version if isinstance(version, int) else f"'{version}'"
        found = spark.newSession().sql(f"SELECT * FROM {name} VERSION AS OF {text}").collect()
        return sorted(map(tuple, found))

    return read


@pytest.fixture
def tagged(writer: IcebergWriter, staging: Any, orders: Any) -> str:
    """A table with two rows, tagged for cut FIRST: its version."""
    state = writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1))
    writer.tag(staging.target, state.version, FIRST, KEEP)
    return str(state.version)


CHANGED = ("U", 1, "z", 9)
BACK = MarkMoves(lower={LANE: 0})
IN_THE_CUT: Rows = [(1, "a", 1), (2, "b", 2)]


def load(spark: SparkSession, target: TargetName) -> LakeTable:
    table = LakeCatalog(spark).load(target)
    assert table is not None
    return table


def tags(spark: SparkSession, target: TargetName) -> dict[str, int | None]:
    table = load(spark, target)
    return {name: table.head(name) for name in sorted(table.branches()) if table.is_tag(name)}


def commits(spark: SparkSession, target: TargetName) -> int:
    """How many the table's log of metadata files remembers."""
    return int(load(spark, target).metadata.previousFiles().size())


def test_a_tag_names_a_version_once(spark, writer, staging, tagged, at) -> None:
    """In one commit; done again it is none."""
    before = commits(spark, staging.target)
    writer.tag(staging.target, tagged, FIRST, KEEP)
    assert commits(spark, staging.target) == before
    assert tags(spark, staging.target) == {tag_of(FIRST): int(tagged)}
    assert at(tag_of(FIRST)) == IN_THE_CUT
    assert isinstance(writer, Tags)


def test_tags_that_no_cut_needs_go_in_the_same_commit(
    spark, writer, staging, orders, tagged
) -> None:
    numbers = [FIRST + 600 * step for step in (1, 2, 3)]
    for through, number in enumerate(numbers, start=2):
        state = writer.write(staging.batch(orders(("U", 1, "c", through)), through))
        before = commits(spark, staging.target)
        writer.tag(staging.target, state.version, number, KEEP)
        assert commits(spark, staging.target) == before + 1
    # The newest two: an hour has not passed, and a minute has.
    assert [*tags(spark, staging.target)] == [tag_of(number) for number in numbers[-2:]]


def test_one_snapshot_may_have_the_tags_of_several_cuts(spark, writer, staging, tagged) -> None:
    """As after a rebuild, or where a crash has lost what was tagged."""
    writer.tag(staging.target, tagged, FIRST + 1, KEEP)
    assert [*tags(spark, staging.target).values()] == [int(tagged)] * 2


def test_tags_of_cuts_that_never_came_go(spark, writer, staging, tagged) -> None:
    """And nobody else's: another's tag, a branch that has such a name."""
    table = load(spark, staging.target)
    refs = table.table.manageSnapshots().createTag("audit", int(tagged))
    refs.createBranch(tag_of(FIRST + 9), int(tagged)).commit()
    writer.tag(staging.target, tagged, FIRST + 1, KEEP)
    writer.untag(staging.target, FIRST)
    assert {*tags(spark, staging.target)} == {"audit", tag_of(FIRST)}
    assert load(spark, staging.target).head(tag_of(FIRST + 9)) == int(tagged)
    before = commits(spark, staging.target)
    writer.untag(staging.target, FIRST)
    assert commits(spark, staging.target) == before


def test_what_cannot_be_tagged_is_refused_by_name(writer, staging, orders, tagged) -> None:
    later = writer.write(staging.batch(orders(("U", 1, "c", 3)), 2)).version
    with pytest.raises(TargetRefused, match=f"the tag cut-{FIRST} names snapshot {tagged}, not"):
        writer.tag(staging.target, later, FIRST, KEEP)
    with pytest.raises(TargetRefused, match="snapshot 7 is gone"):
        writer.tag(staging.target, "7", FIRST + 1, KEEP)
    nowhere = staging.target._replace(table="nowhere")
    with pytest.raises(TargetRefused, match="there is no table to tag"):
        writer.tag(nowhere, tagged, FIRST, KEEP)
    writer.untag(nowhere, FIRST)


def test_a_table_that_is_not_ours_is_not_tagged(spark, writer, target) -> None:
    name = ".".join(target)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {target.sink}.{target.namespace}")
    spark.sql(f"CREATE TABLE {name} USING iceberg AS SELECT 1 AS id")
    version = load(spark, target).head(MAIN)
    with pytest.raises(TargetRefused, match="not made by binlogd"):
        writer.tag(target, str(version), FIRST, KEEP)
    with pytest.raises(TargetRefused, match="not made by binlogd"):
        writer.untag(target, 0)


def test_a_catalog_that_takes_no_commit_is_away(
    spark, staging, tagged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(table: LakeTable, change: object) -> None:
        raise Py4JError("no answer")

    monkeypatch.setattr(LakeTable, "commit", fail)
    with pytest.raises(SinkUnavailable, match=r"takes no commit: .*no answer"):
        IcebergWriter(spark).tag(staging.target, tagged, FIRST + 1, KEEP)


def test_a_lost_reply_is_found_to_be_done(
    spark, staging, tagged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit has landed and its answer has not come."""
    commit, calls = LakeTable.commit, []

    def lose(table: LakeTable, change: Callable[[Any], object]) -> None:
        calls.append(1)
        commit(table, change)
        raise Py4JError("no answer")

    monkeypatch.setattr(LakeTable, "commit", lose)
    IcebergWriter(spark).tag(staging.target, tagged, FIRST + 1, KEEP)
    assert len(calls) == 1
    assert tag_of(FIRST + 1) in tags(spark, staging.target)


@pytest.mark.parametrize("write", list(Write))
def test_a_tag_between_look_and_publish_harms_no_write(
    spark, writer, staging, orders, tagged, at, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a write between look and tag harm the tag: each is repeated on what is there."""
    commit, other = LakeTable.commit, IcebergWriter(spark)

    def after_a_tag(table: LakeTable, change: Callable[[Any], object]) -> None:
        monkeypatch.setattr(LakeTable, "commit", commit)
        other.tag(staging.target, tagged, FIRST + 1, KEEP)
        commit(table, change)

    monkeypatch.setattr(LakeTable, "commit", after_a_tag)
    state = writer.write(staging.batch(orders(("U", 1, "c", 3), ("D", 2, None, None)), 2))
    assert (at(int(state.version)), state.hwms) == ([(1, "c", 3)], {LANE: 2})

    def after_a_write(table: LakeTable, change: Callable[[Any], object]) -> None:
        monkeypatch.setattr(LakeTable, "commit", commit)
        other.write(staging.batch(orders(("U", 3, "d", 4)), 3))
        commit(table, change)

    monkeypatch.setattr(LakeTable, "commit", after_a_write)
    writer.tag(staging.target, state.version, FIRST + 2, KEEP)
    assert at(tag_of(FIRST + 1)) == IN_THE_CUT
    assert at(tag_of(FIRST + 2)) == [(1, "c", 3)]
    assert writer.open(staging.target).hwms == {LANE: 3}


@pytest.mark.parametrize("write", list(Write))
def test_upkeep_and_compaction_leave_it_readable(spark, staging, orders, at, write: Write) -> None:
    """All other old snapshots go; files that only a tag needs stay."""
    ahead_s = 0.0
    settings = MaintenanceSection.model_construct(
        expire_snapshots_older_than_s=3600.0, retain_last=1, interval_s=0.0
    )
    upkeep = Upkeep(anonymous(), settings, lambda: time.time() + ahead_s)
    often = Compactions(CompactionSection.model_construct(max_deletes=2, small_files=4))
    writer = IcebergWriter(spark, upkeep, often)
    state = writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1))
    in_cut = state.version
    writer.tag(staging.target, in_cut, FIRST, KEEP)
    ahead_s = 7200.0
    for through in range(2, 10):
        changed = orders(("U", 1, "c", through), ("D", 2, None, None), ("U", 100 + through, "x", 0))
        state = writer.write(staging.batch(changed, through))
    upkeep.run(staging.target, load(spark, staging.target))
    assert load(spark, staging.target).snapshots() == 2
    assert at(tag_of(FIRST)) == IN_THE_CUT
    assert at(MAIN)[0] == (1, "c", 9)
    with capture_logs() as logs:
        upkeep.run(staging.target, load(spark, staging.target))
    assert logs == []
    # Without its tag it goes, so that it was the tag that has held it.
    writer.untag(staging.target, 0)
    upkeep.run(staging.target, load(spark, staging.target))
    assert not load(spark, staging.target).holds(int(in_cut))


@pytest.mark.parametrize("write", list(Write))
def test_anothers_expiry_leaves_it_readable(
    spark, writer, staging, orders, tagged, at, write: Write
) -> None:
    """Spark's procedure with the shortest times, and a property by which refs age."""
    for through in (2, 3):
        writer.write(staging.batch(orders(("U", 1, "c", through)), through))
    name = f"{staging.target.namespace}.{staging.target.table}"
    spark.sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('history.expire.max-ref-age-ms' = '1')")
    before = load(spark, staging.target).snapshots()
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', retain_last => 1, "
        "older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )
    assert load(spark, staging.target).snapshots() < before
    assert at(tag_of(FIRST)) == IN_THE_CUT
    assert writer.open(staging.target).hwms == {LANE: 3}


def statement(*steps: Any) -> Any:
    return lambda writer, staging, _: writer.write(staging.batch(None, 2, ddl=[steps]))


@pytest.mark.parametrize(
    ("act", "mark"),
    [
        (lambda writer, staging, orders: writer.write(staging.batch(orders(CHANGED), 2)), 2),
        (lambda writer, staging, orders: writer.write(staging.batch(None, 2)), 2),
        (statement(AddColumn(Column("more", pa.string()), "x")), 2),
        (statement(TruncateTable()), 2),
        (lambda writer, staging, orders: writer.reset(staging.target, BACK), 0),
    ],
)
def test_what_comes_after_it_is_as_without(
    writer, staging, orders, tagged, at, act: Any, mark: int
) -> None:
    """Writes, statements, a reset: the marks are theirs, and the cut's rows and columns stay."""
    state = act(writer, staging, orders)
    assert state.hwms == {LANE: mark}
    assert writer.open(staging.target).hwms == {LANE: mark}
    assert at(tag_of(FIRST)) == IN_THE_CUT


def test_a_table_that_is_dropped_takes_its_tags_along(writer, staging, orders, tagged) -> None:
    """And the next one of its name begins without."""
    writer.write(staging.batch(None, 2, ddl=[(DropTable(),)]))
    with pytest.raises(TargetRefused, match="there is no table to tag"):
        writer.tag(staging.target, tagged, FIRST + 1, KEEP)
    writer.untag(staging.target, 0)


def test_a_rebuilt_table_has_none_and_takes_new_ones(
    spark, writer, staging, orders, tagged, at
) -> None:
    """The old one goes with its tags, or aside with them."""
    old = staging.target
    staging.target = new = old._replace(table=f"{old.table}__new")
    writer.write(staging.batch(orders(("U", 1, "n", 1)), 5, after=-1))
    swap = Swap(old, new, old._replace(table=f"{old.table}__aside"), {LANE: 6})
    state = writer.swap(replace(swap, keep_old=True))
    assert tags(spark, old) == {}
    assert at(tag_of(FIRST), swap.aside) == IN_THE_CUT
    with pytest.raises(TargetRefused, match=f"snapshot {tagged} is gone"):
        writer.tag(old, tagged, FIRST, KEEP)
    writer.tag(old, state.version, FIRST + 1, KEEP)
    assert at(tag_of(FIRST + 1), old) == [(1, "n", 1)]
