"""Decimals as text with all their digits: no exponent, nothing rounded. Pure.

Python's and Arrow's own texts have an exponent beyond six zeros (``0E-8``, ``1.50E-7``), and
``Decimal.normalize`` rounds to the 28 digits of Python's context.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc


def shortest(value: Decimal) -> str:
    """A value's text without zeros behind its last digit: one for equal values of any scale."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def texts(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The texts of a column of decimals, each with all digits of its scale."""
    found = pc.cast(column, pa.string())
    if not pc.any(pc.match_substring(found, "E")).as_py():
        return found
    plain = [None if value is None else f"{value:f}" for value in column.to_pylist()]
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([pa.array(plain, pa.string())])
    return pa.array(plain, pa.string())
