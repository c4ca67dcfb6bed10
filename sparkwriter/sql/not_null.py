"""Columns of a target that others made NOT NULL: a null in one makes a file nobody can read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.contract.ports import TargetRefused
from changes.model import HAS_PREFIX, OP


def check_not_null(required: Sequence[str], staged: str) -> None:
    """Refuse a batch that brings no value for a column that must have one. Raises TargetRefused.

    ``staged`` is its file. A row that leaves the column out, as in a partial image, may turn out
    to be new in the target: it counts as null.
    """
    if not required:
        return
    with pq.ParquetFile(staged) as file:
        names = {name.lower(): name for name in file.schema_arrow.names}
        for column in required:
            name = names.get(column.lower())
            if _lacks(_read(file, name), name):
                raise TargetRefused(
                    f"column {column} is NOT NULL in the lake, which binlogd did not ask for, and"
                    " the changes bring rows without a value in it: ALTER TABLE … ALTER COLUMN"
                    f" {column} DROP NOT NULL"
                )


def _read(file: pq.ParquetFile, name: str | None) -> pa.Table:
    """What tells of each row whether it has a value. Of no column the file knows its rows still."""
    have = file.schema_arrow.names
    wanted = [OP, name, HAS_PREFIX + (name or "")]
    columns = [each for each in wanted if each in have]
    return file.read(columns or have[:1])


def _lacks(rows: pa.Table, name: str | None) -> bool:
    """Whether a row that is to be stored has no value in the column."""
    if OP in rows.column_names:
        rows = rows.filter(pc.equal(rows.column(OP), "U"))
    if name is None:
        return bool(rows.num_rows)
    null = pc.is_null(rows.column(name))
    if HAS_PREFIX + name in rows.column_names:
        null = pc.or_(null, pc.invert(rows.column(HAS_PREFIX + name)))
    return bool(pc.any(null).as_py())
