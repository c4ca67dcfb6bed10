"""What every sink keeps of a table whose keys are spread over partitions: lanes side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.contract.writes import StagedBatch, Swap
from changes.model.errors import TargetRefused
from offsets.fence import Fenced, Span, Straggler
from offsets.key_partitioning import KeyPartitioning
from offsets.position import TopicPartition, repair_lane
from offsets.snapshot import MarkMoves
from sparkwriter.kit.writer import TargetWriter
from tests.sparkwriter.conftest import LANE

OTHER = TopicPartition("shop", 1)


FORM = "id integer (1)"
HELD = KeyPartitioning("shop", 6, FORM)


def keyed(batch: StagedBatch, **other: Any) -> StagedBatch:
    """A batch whose keys have one partition each."""
    spread = {"topic": "shop", "partitions": 6, "key": FORM, "checked": True, **other}
    return replace(batch, key_partitioning=KeyPartitioning(**spread))


def test_lanes_of_a_keyed_table_are_written_side_by_side(sink, staging, rows, orders) -> None:
    """Each under its own mark, by one member or by two: what is late in one lane fences no other,
    and a lost reply is covered."""
    one, two = TargetWriter(sink.store()), TargetWriter(sink.store())
    one.write(keyed(staging.batch(orders(("U", 1, "a", 1)), 4)))
    two.write(keyed(staging.batch(orders(("U", 2, "b", 2)), 9, after=-1, lane=OTHER)))
    late = keyed(staging.batch(orders(("U", 1, "A", 1), ("D", 5, None, None)), 7, after=4))
    state = one.write(late)
    assert state.hwms == {LANE: 7, OTHER: 9}
    assert one.write(late).covered
    both = keyed(staging.batch(orders(("D", 1, None, None), ("U", 2, "B", 2)), 8))
    both = replace(both, lanes={LANE: Span(7, 8), OTHER: Span(9, 11)})
    assert two.write(both) == one.open(staging.target)
    assert rows(staging.target) == [(2, "B", 2)]
    with pytest.raises(Fenced):
        one.write(keyed(staging.batch(orders(("U", 2, "old", 2)), 10, after=9, lane=OTHER)))


def test_a_moved_key_ends_equal_in_either_order(sink, staging, rows, orders) -> None:
    """The delete of the old key and the insert of the new one are in two lanes."""
    writer = TargetWriter(sink.store())
    writer.write(keyed(staging.batch(orders(("U", 1, "a", 1), ("U", 3, "c", 3)), 0)))
    writer.write(keyed(staging.batch(orders(("U", 2, "a", 1)), 0, after=-1, lane=OTHER)))
    writer.write(keyed(staging.batch(orders(("D", 1, None, None), ("D", 3, None, None)), 1)))
    later = staging.batch(orders(("U", 4, "c", 3)), 1, after=0, lane=OTHER)
    writer.write(keyed(later))
    assert rows(staging.target) == [(2, "a", 1), (4, "c", 3)]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"partitions": 5, "checked": False}, "had 6 partitions, and has 5 here"),
        ({"partitions": 8, "checked": False}, "had 6 partitions, and has 8 here"),
        ({"key": "id text (2)"}, r"another form than before \(id integer \(1\) before, id text"),
        ({"topic": "store"}, "spread over shop, and these are of store"),
    ],
)
def test_keys_that_are_spread_otherwise_are_refused(
    sink, staging, rows, orders, other, why
) -> None:
    """Another member may have seen more, or less: only the target tells."""
    writer = TargetWriter(sink.store())
    writer.write(keyed(staging.batch(orders(("U", 1, "a", 1)), 4)))
    late = keyed(staging.batch(orders(("U", 1, "z", 1)), 9, after=-1, lane=OTHER), **other)
    with pytest.raises(TargetRefused, match=why):
        writer.write(late)
    assert rows(staging.target) == [(1, "a", 1)]


def test_more_partitions_are_taken_where_each_record_is_checked(sink, staging, orders) -> None:
    """From then on fewer are refused, also after marks alone and in another member."""
    writer = TargetWriter(sink.store())
    writer.write(keyed(staging.batch(orders(("U", 1, "a", 1)), 4)))
    writer.write(keyed(staging.batch(orders(("U", 1, "b", 1)), 5), partitions=8))
    state = writer.write(staging.batch(None, 6))
    assert state.key_partitioning == KeyPartitioning("shop", 8, FORM)
    waited = keyed(staging.batch(orders(("U", 1, "c", 1)), 7, after=6), partitions=8, fewest=6)
    with pytest.raises(Straggler):  # rows that were staged before more were known are in it, too
        TargetWriter(sink.store()).write(waited)
    with pytest.raises(Straggler, match="has heard of more partitions"):  # it checks them once more
        TargetWriter(sink.store()).write(keyed(staging.batch(orders(("U", 1, "c", 1)), 7, after=6)))


def test_a_table_of_one_lane_becomes_one_of_several(sink, staging, rows, orders) -> None:
    """What it holds came in order; from now on each key has a partition. One of another topic
    stays refused."""
    writer, other = TargetWriter(sink.store()), TopicPartition("store", 0)
    writer.write(staging.batch(orders(("U", 1, "a", 10), ("U", 2, "b", 20)), 1))
    strange = staging.batch(orders(("U", 9, "x", 1)), 3, after=-1, lane=other)
    with pytest.raises(TargetRefused, match="already holds changes of shop"):
        writer.write(keyed(strange, topic="store"))
    writer.write(keyed(staging.batch(orders(("U", 2, "B", 1)), 3, after=-1, lane=OTHER)))
    assert rows(staging.target) == [(1, "a", 10), (2, "B", 1)]


def test_a_repair_names_all_lanes_where_they_stand(sink, staging, rows, orders) -> None:
    """It writes rows of any partition, once; where one has gone on meanwhile it is refused."""
    writer = TargetWriter(sink.store())
    writer.write(keyed(staging.batch(orders(("U", 1, "a", 1)), 4)))
    writer.write(keyed(staging.batch(orders(("U", 2, "b", 2)), 9, after=-1, lane=OTHER)))
    right = staging.batch(orders(("U", 1, "A", 1), ("D", 2, None, None)), 0, after=-1)
    stand = {LANE: Span(4, 4), OTHER: Span(9, 9)}
    repair = replace(right, lanes={**stand, repair_lane("job-1"): Span(-1, 0)})
    state = writer.write(repair)
    assert rows(staging.target) == [(1, "A", 1)]
    assert (state.hwms, state.key_partitioning) == ({LANE: 4, OTHER: 9}, HELD)
    writer.write(keyed(staging.batch(orders(("U", 2, "c", 3)), 11, after=9, lane=OTHER)))
    with pytest.raises(Fenced):
        writer.write(replace(repair, lanes={**stand, repair_lane("job-2"): Span(-1, 0)}))
    assert rows(staging.target) == [(1, "A", 1), (2, "c", 3)]


def test_a_reset_moves_the_lanes_that_are_meant(sink, staging, rows, orders) -> None:
    """How keys are spread stays known, and what is written again ends equal."""
    writer = TargetWriter(sink.store())
    writer.write(keyed(staging.batch(orders(("U", 1, "a", 1)), 4)))
    writer.write(keyed(staging.batch(orders(("U", 2, "b", 2)), 9, after=-1, lane=OTHER)))
    state = writer.reset(staging.target, MarkMoves({OTHER: 3}))
    assert (state.hwms, state.key_partitioning) == ({LANE: 4, OTHER: 3}, HELD)
    writer.write(keyed(staging.batch(orders(("U", 2, "b", 2)), 9, after=3, lane=OTHER)))
    assert rows(staging.target) == [(1, "a", 1), (2, "b", 2)]


def test_a_rebuilt_table_brings_how_its_keys_are_spread(sink, staging, orders) -> None:
    """Of the old one nothing stays: its topic had fewer partitions."""
    writer, old = TargetWriter(sink.store()), staging.target
    writer.write(keyed(staging.batch(orders(("U", 1, "a", 1)), 4)))
    new = old._replace(table=f"{old.table}__rebuild_1")
    again = keyed(staging.batch(orders(("U", 1, "a", 1)), 4, after=-1), partitions=8)
    writer.write(replace(again, target=new))
    aside = old._replace(table=f"{old.table}__before")
    state = sink.swaps().swap(Swap(old, new, aside, {LANE: 5}))
    assert state.key_partitioning == replace(HELD, partitions=8)
