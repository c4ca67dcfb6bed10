"""Compares columns by the one text that a value of a lake's type has, not by the source's own.

Pure. So rows that a route shapes are compared, and targets that are tables of another database.
"""

from __future__ import annotations

from collections.abc import Mapping

from changes.model import Column, TableSchema
from changes.shaping.additions import DELETED, METADATA
from daemon.databases.port import SourceColumn, SourceTable
from daemon.databases.streamed import Streamed
from daemon.jobs.verify.columns import Pair, Shape, key_pairs, unlike
from sparkwriter.sql.arrow_texts import natural
from sparkwriter.sql.forms import Form
from sparkwriter.sql.schema import iceberg_type

_ALIKE: Mapping[Form, frozenset[Form]] = {
    Form.WHOLE: frozenset((Form.WHOLE, Form.BOOLEAN)),
    Form.BOOLEAN: frozenset((Form.WHOLE, Form.BOOLEAN)),
    Form.DECIMAL: frozenset((Form.DECIMAL, Form.WHOLE, Form.BOOLEAN)),
    Form.BITS: frozenset((Form.BITS,)),
    Form.TEXT: frozenset(
        (Form.TEXT, Form.WHOLE, Form.DECIMAL, Form.VARIABLE, Form.DATE, Form.TIME, Form.JSON,
         Form.ARRAY)
    ),
    Form.HEX: frozenset((Form.HEX, Form.STRIPPED)),
    Form.DATE: frozenset((Form.DATE,)),
    Form.LOCAL: frozenset((Form.LOCAL,)),
    Form.INSTANT: frozenset((Form.INSTANT,)),
}  # fmt: skip
"""By the form of a lake's type those of sources whose texts are the same, a decimal's digits aside.
"""


def prints_alike(pair: Pair) -> bool:
    """Whether a value's text at the source is the one that it has in the target's type."""
    form, other = pair.source.form, natural(pair.type)
    if form not in _ALIKE[other]:
        return False
    return other is not Form.DECIMAL or (pair.scale or 0) == _scale(pair.type)


def shape_by_values(
    source: SourceTable, streamed: Streamed, shown: TableSchema, target: TableSchema
) -> Shape:
    """Match what a route shows of a table with the target's columns. Raises NotComparable."""
    stored = {column.name.lower(): column for column in target.columns}
    added = {column.name: column for column in (*METADATA.values(), DELETED)}
    wanted = [column for column in shown.columns if added.get(column.name) != column]
    here = {column.name.lower() for column in wanted}
    pairs: dict[str, Pair] = {}
    notes = [f"not compared: {line}" for line in streamed.refused]
    missing = [column.name for column in wanted if column.name.lower() not in stored]
    for column in wanted:
        there = stored.get(column.name.lower())
        if there is None:
            continue
        pair = _pair(column, there)
        if prints_alike(pair):
            pairs[column.name] = pair
        else:
            notes.append(unlike(pair))
    for name, there in stored.items():
        if there.name in added and name not in here:
            if there.name != DELETED.name:
                notes.append(f"not compared: column {there.name}, which tells of changes")
        elif name not in here:
            notes.append(f"not compared: column {there.name}, which the source has not")
    whole = not streamed.refused and len(pairs) == len(wanted)
    keys = key_pairs(source, shown.keys, pairs)
    deleted = DELETED.name if DELETED in shown.columns else None
    return Shape(tuple(pairs.values()), keys, tuple(notes), tuple(missing), whole, deleted)


def _pair(column: Column, there: Column) -> Pair:
    words = iceberg_type(column.type)
    return Pair(
        SourceColumn(there.name, words, True, natural(words)), there.name, iceberg_type(there.type)
    )


def _scale(type_: str) -> int:
    return int(type_.rpartition(",")[2].rstrip(") "))
