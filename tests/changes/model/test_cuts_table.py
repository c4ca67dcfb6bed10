"""A cut is a row, and a row is a cut."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.cut_row import cut_of
from changes.model.cuts_table import SCHEMA, staged_row
from changes.model.model import OP
from offsets.cuts import Cut
from offsets.position import TopicPartition

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
CUTS = st.builds(
    Cut,
    number=st.integers(1, 4_000_000_000),
    pipeline=TEXTS,
    boundary=st.sampled_from(["transaction", "time"]),
    positions=st.dictionaries(
        st.builds(TopicPartition, TEXTS.filter(bool), st.integers(0, 99)),
        st.integers(0, 2**63 - 1),
        max_size=3,
    ),
    time_ms=st.none() | st.integers(0, 4_000_000_000_000),
    transaction=st.none() | TEXTS,
    versions=st.dictionaries(TEXTS, TEXTS, max_size=3),
    left_out=st.dictionaries(TEXTS, TEXTS, max_size=3),
)


@given(CUTS)
def test_a_cut_comes_back_as_it_was(cut: Cut) -> None:
    table, schema = staged_row(cut)
    assert table.schema.names == [OP, *(column.name for column in schema.columns)]
    (row,) = table.to_pylist()
    assert cut_of(row) == cut


def test_the_columns_are_for_readers(cut_row: dict[str, Any]) -> None:
    """Times as times, and JSON that any tool can read."""
    assert cut_row == {
        OP: "U",
        "number": 1_800_000_000,
        "pipeline": "shop",
        "made": datetime(2027, 1, 15, 8, 0, tzinfo=UTC),
        "boundary": "transaction",
        "source_time": datetime(2027, 1, 15, 7, 59, 59, 123_000, tzinfo=UTC),
        "transaction": "3E11FA47:23",
        "positions": '{"shop.binlog:0": 4711}',
        "tables": '{"lake.shop.a": "12", "lake.shop.b": "7"}',
        "left_out": '{"lake.shop.c": "is in quarantine"}',
    }
    assert SCHEMA.keys == ("number", "pipeline")


@pytest.fixture
def cut_row() -> dict[str, Any]:
    cut = Cut(
        number=1_800_000_000,
        pipeline="shop",
        boundary="transaction",
        positions={TopicPartition("shop.binlog", 0): 4711},
        time_ms=1_799_999_999_123,
        transaction="3E11FA47:23",
        versions={"lake.shop.b": "7", "lake.shop.a": "12"},
        left_out={"lake.shop.c": "is in quarantine"},
    )
    (row,) = staged_row(cut)[0].to_pylist()
    return dict(row)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("boundary", "somewhere"),
        ("positions", "[]"),
        ("positions", '{"t:0": "1"}'),
        ("positions", '{"t": 1}'),
        ("tables", '{"a": 1}'),
        ("tables", "{"),
    ],
)
def test_a_row_that_is_no_cut_is_refused(cut_row: dict[str, Any], column: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"boundary|positions|topic|tables|delimiter|property"):
        cut_of({**cut_row, column: value})
