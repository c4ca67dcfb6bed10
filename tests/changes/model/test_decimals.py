"""Decimals keep all digits in every text that is made of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.model import Changes, Column, Mode, TableSchema
from changes.model.types import shortest, texts
from changes.routes.expressions.types import text_of as masks_text
from changes.routes.shaping.masking import masked
from changes.routes.shaping.masks import mask_of
from changes.sql.spark.arrow_texts import printed
from daemon.operations.replay.keys import keys_of
from sparkwriter.sql.base.values import Texts
from sparkwriter.sqlite.rows import to_sqlite

ODD = ["0", "-0.00000001", "0.00000015", "1000", "-99999999999.99999999"]
LONG = ["12345678901234567890123456789.1", "12345678901234567890123456789.2"]
"""More digits than the 28 of Python's decimal context."""


class Database:
    name, holds_nul, holds_nan = "one", True, True


MAKERS: dict[str, Callable[[pa.Array], list[object]]] = {
    "sqlite": lambda column: list(to_sqlite("v", column)),
    "sqlite, in chunks": lambda column: list(to_sqlite("v", pa.chunked_array([column, column])))[
        : len(column)
    ],
    "jdbc": lambda column: Texts(Database()).of("v", column, None, key=True).to_pylist(),
    "verification": lambda column: printed(column).to_pylist(),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("scale", [0, 8, 20, 38])
def test_a_text_has_all_digits(maker: str, scale: int) -> None:
    """Of zero, of values near it, of the longest; null stays null."""
    fitting = [Decimal(text) for text in ODD] if scale in (8, 20) else [Decimal(0)]
    column = pa.array([*fitting, None], pa.decimal128(38, scale))
    expected = [f"{value:.{scale}f}" for value in fitting]
    assert MAKERS[maker](column) == [*expected, None]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**25),
                   max_value=10**25), st.integers(0, 5))  # fmt: skip
def test_the_shortest_text_is_one_for_equal_values(value: Decimal, zeros: int) -> None:
    """Whatever their scale, and for no others."""
    longer = Decimal(f"{value:f}{'0' * zeros}")
    assert shortest(value) == shortest(longer)
    assert Decimal(shortest(value)) == value
    assert "E" not in shortest(value)


def test_masks_tell_long_decimals_apart() -> None:
    """Two keys that differ in their thirtieth digit are two masked keys."""
    column = pa.chunked_array([pa.array(map(Decimal, LONG), pa.decimal128(38, 1))])
    assert masks_text(column).to_pylist() == LONG
    assert len(set(masked(column, mask_of("sha256"), "salt").to_pylist())) == 2


def test_keys_of_dead_letters_tell_long_decimals_apart() -> None:
    """A key's text is that of no other key."""
    column = pa.array([*map(Decimal, LONG), Decimal("0E-8")], pa.decimal128(38, 8))
    schema = TableSchema((Column("k", column.type),), ("k",))
    changes = Changes(pa.table({"k": column}), schema, Mode.UPSERT, 3)
    assert keys_of(changes) == {(text,) for text in [*LONG, "0"]}


def test_texts_of_no_rows() -> None:
    """Neither a column without rows nor one of nulls has a text."""
    assert texts(pa.array([], pa.decimal128(9, 8))).to_pylist() == []
    assert texts(pa.array([None], pa.decimal128(9, 8))).to_pylist() == [None]
