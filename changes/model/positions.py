"""Source positions as text that sorts in the source's order: they order the lanes of one target.

A position is a list of numbers, the most significant first: a commit timestamp; an LSN; the number
of a reign (see below), of a binlog file, a place in it, a row. Each number is written in decimal
after a letter for its number of digits, so texts compare like the numbers, of any size: binlog file
1000000 comes after 999999. The last character is how the change ends, ``d`` or ``u``: of the two
halves of a key-changing update that have one position in one key (swapped keys), the row stays.

Numbers that don't compare must not become a position. A GTID has no order. Places in the binlogs of
two servers have none either: a format that numbers by files begins with the number of the server's
reign, from the configuration, and refuses a server that is not named there.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.model import FROM, FROM_PREFIX, OP, POSITION

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
    """Complete the positions of rows by their changes: ``ops`` are U or D."""
    return pc.binary_join_element_wise(positions, pc.utf8_lower(ops), "")


def in_source_order(table: pa.Table) -> pa.Table:
    """Sort the rows of one target by their positions.

    Rows of one position keep their order: they came in one lane, or are the same change. ``FROM``
    is dropped: a format with positions has whole rows.
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
