"""The rows over which an expression is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Value = Any
"""An array or a scalar: what a part of an expression gives: a value of each row, or one for all."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns by their names in small letters, each as one array."""

    columns: Mapping[str, pa.Array]
    count: int

    def where(self, mask: pa.Array) -> Rows:
        """The rows at which the mask, without nulls, is true."""
        columns = {name: column.filter(mask) for name, column in self.columns.items()}
        return Rows(columns, pc.sum(mask).as_py() or 0)

    def part(self, start: int, count: int) -> Rows:
        """Some rows, without a copy."""
        columns = {name: column.slice(start, count) for name, column in self.columns.items()}
        return Rows(columns, count)


def spread(value: Value, count: int) -> pa.Array:
    """The value as an array."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, count)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


def placed(into: pa.Array, mask: pa.Array, values: pa.Array) -> pa.Array:
    """The array with these values where the mask is true."""
    return pc.replace_with_mask(into, mask, values)
