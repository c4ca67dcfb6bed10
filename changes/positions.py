"""Source positions as text that sorts like the source's own order: what the lanes of one target
are put in order by.

A position is the numbers that place a change in its source, the most significant first: a commit
timestamp; an LSN; the number of a reign (see below), of a binlog file, a place in it, a row. Each
number is written in decimal behind a letter that tells how many digits it has, so texts compare
like the numbers do, however large those become: binlog file 1000000 comes after 999999.
The last sign tells how the change ends, ``d`` or ``u``: of the two halves of a key-changing update
that meet at one position in one key (keys that were swapped), the row is what stays.

What can't be compared must not become a position. A GTID has no order. Places in the binlogs of
two servers have none either: a format that numbers by files leads with the number of the server's
reign, from the configuration, and refuses a server that is not named there.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from changes.model import FROM, FROM_PREFIX, OP, POSITION

_MAX_DIGITS = 26


def position_text(*numbers: int) -> str:
    """The text of a position. Raises ValueError for a number below 0 or of over 26 digits."""
    return ".".join(map(_number, numbers))


def _number(number: int) -> str:
    digits = str(number)
    if number < 0 or len(digits) > _MAX_DIGITS:
        raise ValueError(f"{number} is no part of a position")
    return chr(ord("a") + len(digits) - 1) + digits


def with_ends(positions: pa.Array, ops: pa.Array) -> pa.Array:
    """Complete the positions of rows by how each row ends: ``ops`` are U or D."""
    return pc.binary_join_element_wise(positions, pc.utf8_lower(ops), "")


def in_source_order(table: pa.Table) -> pa.Table:
    """Put the rows of one target in the order of their positions.

    Rows of one position stay as they are: they came in one lane, or are the same change. Where a
    row came from is dropped: a format that gives positions gives whole rows.
    """
    names = table.column_names
    origins = [name for name in names if name == FROM or name.startswith(FROM_PREFIX)]
    place = "place"
    rows = pa.table({POSITION: table[POSITION], place: pa.array(range(table.num_rows), pa.int64())})
    order = pc.sort_indices(rows, [(POSITION, "ascending"), (place, "ascending")])
    return table.drop_columns(origins).take(order)


def has_positions(table: pa.Table) -> bool:
    """Whether the rows of a decoded table carry positions."""
    return OP in table.column_names and POSITION in table.column_names
