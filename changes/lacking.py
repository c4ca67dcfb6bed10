"""Finds inserts that lack columns: MINIMAL row images leave out those with their default."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from changes.decoding.assemble import letters
from changes.model import HAS_PREFIX


def lacking_inserts(table: pa.Table, ops: bytes) -> tuple[str, ...]:
    """The columns that some insert among the rows lacks; ``ops`` has a letter for each row.

    Only columns that some row lacks are checked: whole rows cost nothing.
    """
    flags = [name for name in table.column_names if name.startswith(HAS_PREFIX)]
    if not flags or b"I" not in ops:
        return ()
    inserts = pc.equal(letters(ops), "I")
    return tuple(
        flag.removeprefix(HAS_PREFIX)
        for flag in flags
        if pc.any(pc.and_(inserts, pc.invert(table[flag]))).as_py()
    )
