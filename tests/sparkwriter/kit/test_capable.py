"""What a sink can't is refused by name, before anything of it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import OP, DropTable
from changes.routes.shaping.partial import RowFilter
from sparkwriter.kit.store import Capabilities, Delivery
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.sparkwriter.conftest import LANE

PART = pa.table(
    {
        OP: ["U"],
        "id": [1],
        "note": ["x"],
        "__binlogd_has_note": [False],
        "n": pa.array([1], "int32"),
    }
)


def writer(path: Path, can: Capabilities) -> TargetWriter:
    """A sink that can less than it could."""
    store = SqliteStore(path)
    store.capabilities = can
    return TargetWriter(store)


def test_each_is_named_with_a_way_out(tmp_path: Path, staging) -> None:
    """Rows that lack columns, source positions, names that change, tables that go."""
    to = staging.target._replace(table="other")
    asked = {
        "without the columns note": (
            Capabilities(partial_rows=False),
            staging.batch(PART, 1, partial=["note"]),
        ),
        "source positions": (
            Capabilities(positions=False),
            replace(staging.batch(None, 1), positions="binlog"),
        ),
        "give the new name a route": (
            Capabilities(rename=False),
            staging.batch(None, 1, ddl=[[]], moves_to=to),
        ),
        'ddl.drop_table = "keep"': (
            Capabilities(drop=False),
            staging.batch(None, 1, ddl=[[DropTable()]]),
        ),
    }
    for number, (said, (can, batch)) in enumerate(asked.items()):
        made = writer(tmp_path / f"{number}.db", can)
        with pytest.raises(TargetRefused, match=said):
            made.write(batch)
        assert made.open(batch.target).hwms == {}


def test_a_sink_that_tells_nothing_wants_whole_rows_under_a_filter(
    tmp_path: Path, staging, orders
) -> None:
    """Its rows decide nothing."""
    made = writer(tmp_path / "s.db", Capabilities(read_rows=False))
    filter_ = RowFilter("n > 0", (("n", "n"),))
    whole = staging.batch(orders(("U", 1, "a", 1)), 1)
    assert made.write(replace(whole, filter=filter_)).hwms == {LANE: 1}
    part = staging.batch(PART, 2, partial=["note"])
    with pytest.raises(TargetRefused, match="rows come without column note"):
        made.write(replace(part, filter=filter_))


def test_an_idempotent_sink_takes_one_lane(tmp_path: Path, staging, orders) -> None:
    """Its rows come before its marks: positions don't put two lanes in order there."""
    made = writer(tmp_path / "s.db", Capabilities(Delivery.IDEMPOTENT))
    made.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    other = staging.batch(orders(("U", 1, "b", 1)), 1, after=-1, lane=LANE._replace(partition=1))
    with pytest.raises(TargetRefused, match="partitions have no order"):
        made.write(other)
