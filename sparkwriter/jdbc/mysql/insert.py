"""Columns of texts as INSERT statements. No code runs a row."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sparkwriter.jdbc.session import Loaded

_SPECIAL = r"[\\']"


def inserts(head: bytes, columns: Sequence[Loaded], most: int) -> Iterator[bytes]:
    """``head`` with all rows' values behind it, in statements of ``most`` bytes; longer only where
    one row alone is."""
    rows = pc.binary_join_element_wise(*map(_field, columns), ",")
    rows = pc.binary_join_element_wise("(", rows, "),", "")
    assert rows.offset == 0
    _, offsets, data = rows.buffers()
    ends = memoryview(offsets).cast("i")[1 : len(rows) + 1]
    text = memoryview(data)
    begin, at = 0, 0
    while at < len(ends):
        # The last row that fits, but one at least.
        last = max(bisect_right(ends, begin + most - len(head)) - 1, at)
        end = ends[last]
        yield head + text[begin : end - 1]
        begin, at = end, last + 1


def _field(column: Loaded) -> pa.Array:
    texts = column.texts
    if column.binary:
        return pc.fill_null(pc.binary_join_element_wise("x'", texts, "'", ""), "NULL")
    if pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
        texts = pc.replace_substring(texts, "\\", r"\\")
        texts = pc.replace_substring(texts, "'", r"\'")
    return pc.fill_null(pc.binary_join_element_wise("'", texts, "'", ""), "NULL")
