"""What comes of rows and what they replaced: keys that end, nulls that were left out."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Struct
from msgspec.structs import astuple

from changes.decoding.assemble import Text
from changes.decoding.json_layout import JsonLayout
from changes.decoding.key_runs import KeyRun

_INSERT, _UPDATE = b"IU"


def may_move(layout: JsonLayout, ops: bytes, rows: Sequence[Struct], olds: Sequence[Any]) -> bool:
    """Whether a row may have another key than before; False is sure."""
    old_type = layout.row
    pairs = [
        (row, old)
        for op, row, old in zip(ops, rows, olds, strict=True)
        if op == _UPDATE and isinstance(old, old_type)
    ]
    if not pairs:
        return False
    after, before = zip(*pairs, strict=True)
    for field in layout.key_fields:
        get = operator.attrgetter(field)
        was = list(map(get, before))
        if was.count(UNSET) < len(was) and list(map(get, after)) != was:
            return True
    return False


def moves(
    layout: JsonLayout,
    ops: bytes,
    rows: Sequence[Struct],
    olds: Sequence[Any],
    first: int,
    run: KeyRun,
    number: int,
) -> tuple[bytes, list[Struct], list[Any], list[int], list[int]]:
    """Put before each row whose key changed the old key's end. ``first`` is the first row's record,
    ``number`` its number in the run.

    Gives ops, rows, what they replaced, their records, and the places of those that moved.
    """
    all_ops, found, replaced = bytearray(), list[Struct](), list[Any]()
    records, moved = list[int](), list[int]()
    for record, (op, row, old) in enumerate(zip(ops, rows, olds, strict=True), first):
        if op == _UPDATE and isinstance(old, layout.row):
            layout.complete_key(old, row)
            if layout.moves(old, row) and _leaves(layout, old, row, run, number + record - first):
                all_ops += b"D"
                found.append(layout.gone(old, row))
                replaced.append(None)
                records.append(record)
                moved.append(len(found))
        all_ops.append(op)
        found.append(row)
        replaced.append(old)
        records.append(record)
    return bytes(all_ops), found, replaced, records, moved


def _leaves(layout: JsonLayout, old: Struct, row: Struct, run: KeyRun, number: int) -> bool:
    """Whether the old key's row ends where this one moves away from it."""
    after, before = layout.beside_key(row), layout.beside_key(old)
    key = layout.key_of(layout.gone(old, row))
    return run.moves(number, key, before, layout.key_of(row), after)


def with_nulls(
    layout: JsonLayout, ops: bytes, olds: Sequence[Any], texts: Sequence[Text]
) -> list[Text]:
    """Where nulls are left out: an insert has every column, an update what it had before."""
    inserted: pa.Array | None = None
    found: list[Text] = []
    for field, text in zip(layout.fields.values(), texts, strict=True):
        if text.carried is None:
            found.append(text)
            continue
        if inserted is None:
            inserted = pa.array([op == _INSERT for op in ops])
        had = [isinstance(old, layout.row) and getattr(old, field) is not UNSET for old in olds]
        found.append(Text(text.values, pc.or_(text.carried, pc.or_(inserted, pa.array(had)))))
    return found


def with_olds(
    layout: JsonLayout, ops: bytes, rows: Sequence[Struct], olds: Sequence[Any]
) -> list[Struct]:
    """Rows of a changelog: what an update lacks, but what it replaced has, did not change."""
    found = list(rows)
    for place, (op, old) in enumerate(zip(ops, olds, strict=True)):
        if op != _UPDATE or not isinstance(old, layout.row):
            continue
        values = astuple(rows[place])
        if UNSET in values:
            pairs = zip(values, astuple(old), strict=True)
            found[place] = layout.row(*[was if now is UNSET else now for now, was in pairs])
    return found
