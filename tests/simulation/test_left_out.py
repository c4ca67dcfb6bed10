"""Inserts that lack a column which a statement added, under the seeded scheduler."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.simulation.lives import live_through
from tests.simulation.oracle import assert_equal
from tests.simulation.shape import random_shape
from tests.simulation.staging import RealStaging
from tests.simulation.stream import random_stream


@pytest.mark.parametrize("seed", range(40))
def test_tables_are_equal_or_marked_by_name(seed: int) -> None:
    """Their default is in no message. Through crashes, restarts, lost replies, rebalances: each
    table that differs has a mark that names a column which differs."""
    rng = random.Random(seed)
    shape = replace(random_shape(rng), ddl=0.2, lanes=False, minimal=True, leaves_out=True)
    stream = random_stream(rng, 60, shape=shape)
    faults = {"sink_fails": rng.choice((0, 0.4)), "disk_fails": rng.choice((0, 0.3)), "refusals": 1}
    durable = live_through(
        stream, rng, rng.randrange(4), rng.choice((0, 4)), faults, staging=RealStaging
    )
    for name, rows in stream.tables.items():
        table = durable.sink.tables.get(name)
        held = {} if table is None else table.shown()
        assert held.keys() == rows.keys(), name
        mark = None if table is None else table.differs
        for key, row in rows.items():
            for column in [column for column in row if held[key].get(column) != row[column]]:
                assert held[key].get(column) is None, (name, key, column)
                assert f"column {column}:" in (mark or "") or "and more" in (mark or ""), (
                    name, key, column, mark,
                )  # fmt: skip
                row[column] = None
    assert_equal(durable, stream)
