"""What a target with source positions asks of a write: the SQL, pure.

A row is taken only where it is not older than what the target holds of its key, nor than the key's
deletion. Deletions are remembered as tombstones in a table beside the target's, whose own rows
are thus just the living ones. A tombstone only says that a key was deleted at a position: true from
before the delete is published, true for ever, so adding one early or twice does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from changes.model.errors import TargetRefused
from changes.model.model import HAS_PREFIX, OP, POSITION
from changes.sql.spark.schema import LakeColumn

SUFFIX = "__binlogd_tombstones"
"""What a target's table of tombstones is named: the target's name and this."""

OF = "__binlogd_of"
"""The UUID of the table that a tombstone is of. A recreated table has another."""

AT = "__binlogd_at"
"""When the tombstone was written: it goes once no lane can lag that far behind."""

TOMBSTONE_COLUMNS = (
    LakeColumn(POSITION, "string"),
    LakeColumn(OF, "string"),
    LakeColumn(AT, "timestamptz"),
)


@dataclass(frozen=True, slots=True)
class Guard:
    """``tombstones``: the table's quoted identifier, None where there is none yet.

    ``of`` is the UUID of the target's table.
    """

    of: str
    tombstones: str | None = None


def newer_than_tombstones(
    guard: Guard, key: Mapping[str, str], ranges: Sequence[str], source: str
) -> str:
    """The source without the rows that are older than their key's tombstone.

    ``key`` maps the target's key columns to the source's, all quoted; ``ranges`` are conditions on
    ``t``, the tombstones, that only spare reading files.
    """
    if guard.tombstones is None:
        return source
    same = [f"t.{have} <=> s.{given}" for have, given in key.items()]
    terms = [f"t.{OF} = '{guard.of}'", *same, *ranges, f"t.{POSITION} > s.{POSITION}"]
    return (
        f"(\n  SELECT s.* FROM {source} s\n"
        f"  LEFT ANTI JOIN {guard.tombstones} t ON {' AND '.join(terms)}\n)"
    )


NOT_OLDER = f"s.{POSITION} >= coalesce(t.{POSITION}, '')"
"""The condition under which a row replaces or ends the stored one. Equal ones are the same change,
or of one lane, which is in order."""


def add_tombstones(guard: Guard, key: Mapping[str, str], source: str) -> str:
    """The statement that remembers the deletions in the source."""
    names = [*key, POSITION, OF, AT]
    values = [*(f"s.{given}" for given in key.values()), f"s.{POSITION}", f"'{guard.of}'"]
    return (
        f"INSERT INTO {guard.tombstones} ({', '.join(names)})\n"
        f"SELECT {', '.join(values)}, current_timestamp()\nFROM {source} s\nWHERE s.{OP} <> 'U'"
    )


# Columns of a target that others made NOT NULL: a null in one makes a file that can't be read.


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
