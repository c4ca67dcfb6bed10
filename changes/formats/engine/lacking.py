"""Finds which columns inserts carry: MINIMAL row images leave out those that took their default."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.engine.assemble import Pieces, RowSegment, Text, letters

_INSERT = b"I"


def carried_by_inserts(pieces: Pieces) -> frozenset[str] | None:
    """The columns that each insert among the rows carries; None where no row is an insert.

    Rows are looked at only in columns that some row lacks: whole rows cost nothing. After
    ``assemble``.
    """
    return common(_carried(part) for part in pieces.segments if _INSERT in part.ops)


def common(found: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """The columns that are in all of them; None says nothing."""
    told = [each for each in found if each is not None]
    return reduce(frozenset.intersection, told) if told else None


def lacked_by_inserts(ops: bytes, texts: Mapping[str, Text]) -> set[str]:
    """The columns of some rows that an insert among them lacks; ``ops`` has a letter a row."""
    some = {name: text.carried for name, text in texts.items() if text.carried is not None}
    if not some:
        return set()
    inserts = pc.equal(letters(ops), "I")
    return {name for name, has in some.items() if pc.any(pc.and_not(inserts, has)).as_py()}


def shows_null(text: Text) -> bool:
    """Whether some row carries the column as null."""
    lacked = 0 if text.carried is None else len(text.carried) - text.carried.true_count
    return bool(text.values.null_count > lacked)


class ShownColumns(NamedTuple):
    """What rows of one source table, among those of others, have: the columns of any row, and those
    of each insert (None: no insert)."""

    any: frozenset[str] = frozenset()
    inserts: frozenset[str] | None = None

    def and_(self, other: ShownColumns) -> ShownColumns:
        """What both have shown."""
        return ShownColumns(self.any | other.any, common((self.inserts, other.inserts)))


def shown_by_tables(pieces: Pieces, tables: Sequence[str]) -> dict[str, ShownColumns]:
    """What each table's rows have; ``tables`` has the table of each record. After ``assemble``."""
    found: dict[str, ShownColumns] = {}
    for segment in pieces.segments:
        names = [tables[record] for record in segment.records]
        start = 0
        for block in segment.blocks:
            end = start + len(next(iter(block.values())).values)
            ops = bytes(segment.ops[start:end])
            for table, shown in _shown(names[start:end], ops, block).items():
                found[table] = shown.and_(found.get(table, ShownColumns()))
            start = end
    return found


def _shown(names: Sequence[str], ops: bytes, block: Mapping[str, Text]) -> dict[str, ShownColumns]:
    whole = frozenset(name for name, text in block.items() if text.carried is None)
    some = [name for name in block if name not in whole]
    flags = [pc.cast(block[name].carried, pa.bool_()) for name in some]
    columns = [str(place) for place in range(len(some))]
    rows = pa.table([pa.array(names), letters(ops), *flags], ["table", "op", *columns])
    how = [(column, way) for column in columns for way in ("any", "all")]
    found: dict[str, ShownColumns] = {}
    for row in rows.group_by(["table", "op"]).aggregate(how).to_pylist():
        has = {way: [n for n, c in zip(some, columns, strict=True) if row[f"{c}_{way}"]]
               for way in ("any", "all")}  # fmt: skip
        inserts = whole.union(has["all"]) if row["op"] == "I" else None
        shown = ShownColumns(whole.union(has["any"]), inserts)
        found[row["table"]] = shown.and_(found.get(row["table"], ShownColumns()))
    return found


@dataclass(frozen=True, slots=True)
class Inserts:
    """What a writer's inserts carry that may leave nulls out, which then look like defaults.

    The first null that it shows says that it leaves none out: what inserts lacked until then took
    its default. ``earlier``: what those carried.
    """

    shows_nulls: bool
    earlier: frozenset[str] | None = None

    def after(
        self, pieces: Pieces, lacked: Collection[str], shows_nulls: bool
    ) -> tuple[Inserts, frozenset[str] | None]:
        """After one call's rows, and the columns that its inserts carry, as far as that is known.
        ``lacked``: what they lack, in the rows as they came."""
        carried = carried_by_inserts(pieces)
        if carried is not None:
            carried -= frozenset(lacked)
        carried = common((self.earlier, carried))
        if not (self.shows_nulls or shows_nulls):
            return Inserts(False, carried), None
        return Inserts(True), carried


def _carried(segment: RowSegment) -> frozenset[str]:
    lacked: set[str] = set()
    start = 0
    for block in segment.blocks:
        end = start + len(next(iter(block.values())).values)
        lacked |= lacked_by_inserts(bytes(segment.ops[start:end]), block)
        start = end
    return frozenset(segment.columns) - lacked
