"""Decides rows that lack columns under a route's filter: by what the target stores of them.

The target's rows are those that pass. So a row that is stored is completed, and the filter decides
again. A row that is not stored was outside: it stays there if nothing changed that the filter uses,
and can't enter, because the rest of it is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from actors.contract.writes import StagedBatch
from actors.staging.staged_tables import StagedTables
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP
from changes.routes.fold import has_deletes, partial_columns
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.partial import RowFilter, as_deletes, with_left
from sparkwriter.kit.shape import lacked, not_whole
from sparkwriter.kit.store import FOUND, E, TableStore


def decided(store: TableStore[E], files: StagedTables, seen: E, batch: StagedBatch) -> StagedBatch:
    """The batch with rows that pass and deletes alone: itself, where nothing is looked up, or
    with a file of its own. Raises TargetRefused where a row enters that is not whole."""
    if batch.filter is None or batch.path is None:
        return batch
    held = lacked(store, batch, seen)
    if not (batch.partial or held):
        return batch
    try:
        table = files.read(batch.path)
        rows = _Rows(table, batch.filter, batch.schema.keys, held)
        table = as_deletes(with_left(table, rows.leaving(store, seen)))
        full = [name for name in partial_columns(table) if pc.all(table[HAS_PREFIX + name]).as_py()]
        table = table.drop_columns([HAS_PREFIX + name for name in full])
        # Another attempt of the same write may still be under way, which its time was up for.
        path = f"{batch.path}.decided-{uuid4().hex}"
        files.write(path, table)
    except OSError as error:
        raise SinkUnavailable(f"{batch.path}: {error}") from error
    except ShapeRefused as error:
        raise TargetRefused(str(error)) from error
    partial = partial_columns(table)
    return replace(batch, path=path, partial=partial, has_deletes=has_deletes(table))


@dataclass(frozen=True, slots=True)
class _Rows:
    """A staged file's rows. ``held``: columns of the target that none of them has."""

    table: pa.Table
    filter: RowFilter
    keys: Sequence[str]
    held: Sequence[str]

    def leaving(self, store: TableStore[E], seen: E) -> pa.Array:
        """Which of them the filter leaves out, of those that lack a column."""
        asked = self._undecided()
        part = self.table.filter(asked)
        lacks = [name for _, name in self.filter.columns if HAS_PREFIX + name in part.column_names]
        stored, moved = self._stored(store, seen, part, lacks)
        here = _whole(stored[FOUND])
        for name in lacks:
            has = part[HAS_PREFIX + name].combine_chunks()
            mine = part[name].combine_chunks()
            there = _whole(stored[name])
            value = pc.if_else(has, mine.cast(there.type), there)
            part = part.set_column(part.schema.get_field_index(name), name, value)
        carried, passes = self.filter.carried(part), pa.repeat(pa.scalar(True), part.num_rows)
        told = pc.or_(here, carried)
        if self.filter.is_stored:
            known = self.filter.passes(part.filter(told))
            passes = pc.replace_with_mask(passes, told, known)
        stays = pc.if_else(told, passes, self._touched(part, moved))
        if pc.any(enters := pc.and_not(stays, here)).as_py():
            raise self._refused(part, enters)
        gone = pc.invert(stays)
        return pc.replace_with_mask(pa.repeat(pa.scalar(False), len(asked)), asked, gone)

    def _undecided(self) -> pa.Array:
        """The rows that may be stored and lack a column."""
        alive = pc.equal(self.table[OP], "U").combine_chunks()
        if self.held:
            return alive
        whole = pa.repeat(pa.scalar(True), self.table.num_rows)
        for name in partial_columns(self.table):
            whole = pc.and_(whole, self.table[HAS_PREFIX + name].combine_chunks())
        return pc.and_not(alive, whole)

    def _stored(
        self, store: TableStore[E], seen: E, part: pa.Table, lacks: Sequence[str]
    ) -> tuple[pa.Table, pa.Array]:
        """What is stored of each row, and which of them came from another key: of those the row of
        that key. What their own key has may be another row, which has gone meanwhile."""
        keys = part.select(self.keys)
        moved = pa.repeat(pa.scalar(False), part.num_rows)
        if FROM in part.column_names:
            moved = pc.is_valid(part[FROM]).combine_chunks()
            for place, key in enumerate(self.keys):
                old = part[FROM_PREFIX + key].cast(part[key].type)
                keys = keys.set_column(place, key, pc.if_else(moved, old, keys[key]))
        return store.read_rows(seen, keys, lacks), moved

    def _touched(self, part: pa.Table, moved: pa.Array) -> pa.Array:
        """Where something changed that the filter uses, and where a row has another key: then
        what it was before is not known, should it not be stored."""
        found = moved
        keys = {key.lower() for key in self.keys}
        for _, name in self.filter.columns:
            if name.lower() in keys:
                continue
            if HAS_PREFIX + name in part.column_names:
                found = pc.or_(found, part[HAS_PREFIX + name].combine_chunks())
            else:
                found = pa.repeat(pa.scalar(True), part.num_rows)
        return found

    def _refused(self, part: pa.Table, enters: pa.Array) -> TargetRefused:
        """Names a column that a row lacks which may enter."""
        part = part.filter(enters)
        for name in partial_columns(part):
            if not pc.all(part[HAS_PREFIX + name]).as_py():
                return not_whole(name)
        return not_whole(self.held[0])


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
