"""A table's history against what was recorded: rolled back, expired, replaced: on real tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from actors.contract.writes import TargetState
from changes.model.errors import TargetRefused
from offsets.position import TopicPartition
from offsets.snapshot import TargetMark
from sparkwriter.iceberg.sink import IcebergWriter

pytestmark = pytest.mark.integration
LANE = TopicPartition("shop", 0)
Rows = Callable[..., list[tuple[object, ...]]]


def mark(state: TargetState) -> TargetMark:
    """What the offset file says of it."""
    return TargetMark(state.version, state.hwms)


@pytest.fixture
def states(writer: IcebergWriter, staging: Any, orders: Any) -> list[TargetState]:
    """Three writes, the mark at 1, 2, 3."""
    return [
        writer.write(staging.batch(orders(("U", n, "a", n)), n, after=n - 1 if n > 1 else -1))
        for n in (1, 2, 3)
    ]


def sql(spark: SparkSession, text: str) -> None:
    spark.sql(text).collect()


def table(staging: Any) -> str:
    return ".".join(staging.target)


def test_what_was_recorded_is_in_the_history(writer, staging, states) -> None:
    """Also where later writes of ours, or of others, came on top."""
    for state in states:
        found = writer.open(staging.target, mark(state))
        assert (found.hwms, found.diverged) == ({LANE: 3}, False)


def test_a_rollback_shows_in_mark_and_history(spark, writer, staging, states) -> None:
    """The recorded version is no ancestor of main any more, and the mark is an older one."""
    sql(spark, f"CALL lake.system.rollback_to_snapshot('{table(staging)}', {states[0].version})")
    found = writer.open(staging.target, mark(states[2]))
    assert (found.hwms, found.version, found.diverged) == ({LANE: 1}, states[0].version, True)


def test_marks_that_others_expired_are_put_back(
    spark, writer, staging, states, rows: Rows, orders
) -> None:
    """What is left begins right behind what we published last: nothing of ours came after."""
    expire_all_but_anothers_commit(spark, staging)
    found = writer.open(staging.target, mark(states[2]))
    assert (found.hwms, found.diverged) == ({LANE: 3}, False)
    writer.write(staging.batch(orders(("U", 9, "b", 9)), 9, after=3))
    assert [row[0] for row in rows(staging.target)] == [1, 2, 3, 7, 9]


def test_expired_marks_are_not_made_up(spark, writer, staging, states) -> None:
    """A record that is behind the table by a write would have that write applied again."""
    expire_all_but_anothers_commit(spark, staging)
    for recorded in (mark(states[1]), TargetMark("12", {LANE: 3}), None):
        with pytest.raises(TargetRefused, match=r"binlogd tables rebuild lake\.sink\."):
            writer.open(staging.target, recorded)


def expire_all_but_anothers_commit(spark: SparkSession, staging: Any) -> None:
    """Somebody's own row, and then somebody's maintenance."""
    name = table(staging)
    sql(spark, f"INSERT INTO {name} (id, note, n) VALUES (7, 'x', 7)")
    sql(
        spark,
        f"CALL lake.system.expire_snapshots(table => '{name}',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)",
    )


def test_an_expired_version_is_no_matter_while_the_marks_are_there(
    spark, writer, staging, states, orders
) -> None:
    """Ours is behind what is left of the history: it may have been in it."""
    writer.write(staging.batch(orders(("U", 4, "a", 4)), 4, after=3))
    sql(
        spark,
        f"CALL lake.system.expire_snapshots(table => '{table(staging)}',"
        " older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)",
    )
    found = writer.open(staging.target, mark(states[0]))
    assert (found.hwms, found.diverged) == ({LANE: 4}, False)
