"""The streams of the comparison: the same each time, with the shares they promise."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest

from bench.compare.contestants import CONTESTANTS
from bench.compare.expected import fold
from bench.compare.workloads import RECENT, Workload, stream, workloads

SMALL = Workload("small", "", 8_000, tables=5)
EVERY = workloads(0.001)


@pytest.mark.parametrize("name", EVERY)
def test_a_stream_is_the_same_each_time(name: str) -> None:
    """A time-boxed contestant is judged by a second look at the stream."""
    first, second = (list(itertools.islice(stream(EVERY[name]), 500)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", EVERY)
def test_a_stream_has_as_many_changes_as_its_workload_says(name: str) -> None:
    """And as many messages, each of as many rows."""
    workload = EVERY[name]
    sizes = Counter(len(group.rows) for group in stream(workload))
    assert sizes == {workload.rows: workload.messages}
    assert workload.messages * workload.rows == workload.changes


@pytest.mark.parametrize("rows", [1, 8])
def test_half_are_inserts_two_fifths_updates_a_tenth_deletes(rows: int) -> None:
    """Within three points: the first changes of a table can only be inserts."""
    changes = 80_000
    ops = Counter(group.op for group in stream(replace(SMALL, changes=changes, rows=rows)))
    shares = {op: count * rows / changes for op, count in ops.items()}
    assert shares == pytest.approx({"I": 0.5, "U": 0.4, "D": 0.1}, abs=0.03)


@pytest.mark.parametrize("rows", [1, 8])
def test_the_fold_is_what_applying_each_change_gives(rows: int) -> None:
    """Each change finds the row as the one before left it, and the last state is the fold's."""
    workload = replace(SMALL, rows=rows, changes=4_000)
    tables: list[dict[int, int]] = [{} for _ in range(workload.tables)]
    for group in stream(workload):
        table = tables[group.table]
        assert len({row.key for row in group.rows}) == rows
        for key, before, after in group.rows:
            assert table.pop(key, None) == before
            if after is not None:
                table[key] = after
    found = fold(workload, workload.messages)
    assert [dict(zip(e.keys, e.versions, strict=True)) for e in found] == tables


def test_a_fold_up_to_an_offset_has_nothing_of_what_comes_later() -> None:
    """The n-th message has version n."""
    assert max(max(e.versions, default=0) for e in fold(SMALL, 100)) == 100


def test_a_changelog_has_a_row_for_each_change() -> None:
    """Of a delete the row as it was."""
    workload = replace(SMALL, mode="append", tables=1, changes=400)
    (found,) = fold(workload, workload.messages)
    told = [
        (key, before if after is None else after)
        for group in stream(workload)
        for key, before, after in group.rows
    ]
    assert list(zip(found.keys, found.versions, strict=True)) == told


def test_four_fifths_of_the_hot_updates_go_to_recent_keys() -> None:
    """The rest to any key, recent ones by chance among them."""
    hot = replace(EVERY["hot"], changes=5_000, preload=100_000)
    newest = hot.preload * (1 - RECENT)
    keys = [group.rows[0].key for group in stream(hot)]
    share = sum(key > newest for key in keys) / len(keys)
    assert share == pytest.approx(0.8 + 0.2 * RECENT, abs=0.03)
    assert all(group.op == "U" for group in stream(hot))


def test_preloaded_rows_are_updated_from_version_0() -> None:
    """No row is born: the fold has the touched ones only."""
    hot = EVERY["hot"]
    first = next(stream(hot)).rows[0]
    assert first.before == 0
    (found,) = fold(hot, hot.messages)
    assert set(found.keys) <= set(range(1, hot.preload + 1))


def test_the_tables_of_many_are_hit_by_zipfs_law() -> None:
    """The first one about ten times as often as the tenth."""
    hits = Counter(group.table for group in stream(replace(EVERY["many"], changes=50_000)))
    assert 7 < hits[0] / hits[9] < 14


def test_sizes_grow_with_the_scale() -> None:
    """SCALE=1 are the sizes that docs/performance.md names."""
    full = workloads(1.0)
    assert {name: full[name].changes for name in ("wide", "hot", "many", "append")} == {
        "wide": 2_000_000, "hot": 1_000_000, "many": 500_000, "append": 5_000_000,
    }  # fmt: skip
    assert full["hot"].preload == 5_000_000
    assert full["fresh"].changes == 500 * 180
    assert workloads(0.1)["wide"].changes == 200_000


def test_who_takes_part_exists() -> None:
    """A name that nobody has would be a contestant silently left out."""
    named = {name for workload in EVERY.values() for name in workload.contestants}
    assert named == CONTESTANTS.keys()
