"""How many rows a driver fetches at a time, so that they fit into a task's memory. Pure."""

from __future__ import annotations

import re

from databases.base.port import SourceColumn, SourceTable

BYTES = 8 << 20
"""Of a task, for the rows that were fetched and not yet written."""
MOST_ROWS = 1000
MOST_UNBOUNDED_ROWS = 50
"""Where a row may have any length: rows beside each other may all be far above the mean."""
_MARGIN = 64
"""A mean row counts as so many."""
_FIXED_BYTES = 40
_SIGN_BYTES = 4
_SIZED = re.compile(
    r"(?:var)?(?:char|binary)\((\d+)\)|character(?: varying)?\((\d+)\)", re.IGNORECASE | re.ASCII
)
_FIXED = re.compile(
    r"(?:tiny|small|medium|big)?int|integer|year|decimal|numeric\(|float|double|real|bit|date|time"
    r"|boolean|uuid|inet|cidr|macaddr|oid|interval|money|point$|enum|set",
    re.IGNORECASE,
)


def fetch_rows(table: SourceTable | None) -> int:
    """The number of rows; without a table a small one."""
    if table is None:
        return MOST_UNBOUNDED_ROWS
    widths = [_width(column) for column in table.columns]
    if None not in widths:
        widest = sum(width for width in widths if width is not None)
        return max(1, min(MOST_ROWS, BYTES // max(widest, 1)))
    mean = table.bytes // max(table.rows, 1)
    return max(1, min(MOST_UNBOUNDED_ROWS, BYTES // max(_MARGIN * mean, 1)))


def _width(column: SourceColumn) -> int | None:
    """The most bytes of a column's text; None where its type does not bound it."""
    if column.type.endswith("]"):
        return None
    if (found := _SIZED.match(column.type)) is not None:
        return int(found[1] or found[2]) * _SIGN_BYTES
    if _FIXED.match(column.type) is None:
        return None
    return max(_FIXED_BYTES, len(column.type))
