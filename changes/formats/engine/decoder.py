"""The decoding engine: the rows of a target's records, of any format, become one Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace

import pyarrow as pa

from changes.formats.engine.assemble import Misfit, Pieces, assemble
from changes.formats.engine.column_changes import ColumnChange
from changes.formats.engine.key_runs import KeyRun, KeyRuns, OfKeys, kept, resumed
from changes.formats.engine.lacking import Inserts
from changes.formats.engine.layout import Unfit
from changes.formats.engine.rows import Pass, Rows
from changes.model.model import (
    HAS_PREFIX,
    BadMessage,
    BadRecord,
    Changes,
    Column,
    ColumnTypes,
    FormatOptions,
    Head,
    Mode,
    TableSchema,
)


class TableEngine:
    """The ``TableDecoder`` of one target, for any format.

    A call that raises does not change the layout, so the records before the bad one can be decoded
    again without it.
    """

    def __init__(
        self,
        rows: Rows,
        options: FormatOptions,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes = (),
        positions: str | None = None,
        peek: Callable[[bytes], Head] | None = None,
    ) -> None:
        """``positions``: the name of those that the records have. ``peek``: the format's, for the
        tables that errors name. Raises ValueError for an invalid type."""
        self._rows = rows
        self._peek = peek
        self._options = options
        self._positions = None if mode is Mode.APPEND else positions
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        self._layout = rows.layout(keys, types)
        self._memory = rows.memory(fixed=self._fixed)
        self._amid = False
        self._key_texts: frozenset[bytes] = frozenset()
        self._runs: KeyRuns = {}
        self._seen = False
        self._stored: tuple[Column, ...] = ()
        self._inserts = Inserts(shows_nulls=not rows.drops_nulls) if rows.tells_inserts else None

    @property
    def schema(self) -> TableSchema | None:
        return self._whole(self._layout.schema) if self._seen else None

    @property
    def positions(self) -> str | None:
        return self._positions

    @property
    def declared_types(self) -> Mapping[str, str]:
        return self._rows.declared_types(self._layout, self._memory)

    def take_column_changes(self) -> tuple[ColumnChange, ...]:
        self._amid, self._memory = False, copy(self._memory)
        return self._rows.take_column_changes(self._memory)

    def use_stored_schema(self, stored: TableSchema) -> None:
        self._layout = self._layout.with_stored(stored)
        self._stored = stored.columns if self._rows.whole else ()

    @property
    def key_runs(self) -> KeyRuns:
        return self._runs

    def use_key_runs(self, runs: KeyRuns) -> None:
        self._runs = runs

    def resume(self, partition: int, held: int, start: int) -> None:
        self._runs = resumed(self._runs, partition, held, start)

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        run = self._runs.get(partition, KeyRun()).begun(offsets)
        memory = copy(self._memory)
        layout, texts = self._layout, self._key_texts
        before = memory, self._amid, self._options.by_key
        one = Pass(self._rows, layout, self._fixed, texts, run, *before)
        one.positions = None if self._positions is None else {}
        converter = self._rows.converter(self._options)
        table = None
        try:
            refused = one.read(values)
            layout, keys = one.layout, one.layout.keys or ()
            more = one.positions, one.times
            pieces = Pieces(one.segments, layout.columns, keys, self._fixed, *more)
            if one.segments:
                table = assemble(pieces, converter, layout.declared, partition, offsets)
        except Misfit as misfit:
            raise self._bad(misfit.record, misfit, values) from misfit
        if refused is not None:
            raise self._bad(one.place, refused, values) from refused
        if table is None:
            self._keep_run(partition, run.ended(one.number))
            return None
        carried = self._keep(one, pieces)
        self._keep_run(partition, run.ended(one.number))
        mode, begins = Mode.UPSERT if keys else Mode.APPEND, pieces.begins
        told = one.count, converter.nulled, carried, begins, pieces, run.cut, run.alike
        found = Changes(table, layout.schema, mode, *told)
        return self._with_all_columns(found) if self._rows.whole and keys else found

    def _with_all_columns(self, changes: Changes) -> Changes:
        """Whole rows with null for what they lack: also of a column that no record has shown since
        a restart, and that their stored rows have a value of."""
        schema, table = self._whole(changes.schema), changes.table
        for column in schema.columns[len(changes.schema.columns) :]:
            table = table.append_column(column.name, pa.nulls(table.num_rows, column.type))
            self._rows.given[column.name.lower()] = column.name
        table = table.drop_columns([n for n in table.column_names if n.startswith(HAS_PREFIX)])
        # An upsert does not say whether the source had the row before.
        return replace(changes, table=table, schema=schema, begins=changes.begins.replace("U", ""))

    def _whole(self, schema: TableSchema) -> TableSchema:
        """The schema with the columns that only the target has, where rows are whole. A changelog
        overwrites none."""
        here = {column.name.lower() for column in schema.columns}
        more = [
            Column(column.name, self._layout.type_of_stored(column))
            for column in self._stored
            if schema.keys and column.name.lower() not in here
        ]
        return replace(schema, columns=(*schema.columns, *more))

    def _keep(self, one: Pass, pieces: Pieces) -> frozenset[str] | None:
        """Keep what a call that ended well has learned; the columns that its inserts carry."""
        self._layout, self._memory = one.layout, one.memory
        self._key_texts = frozenset(one.key_texts)
        self._seen = self._amid = True
        if self._inserts is None:
            return None
        self._inserts, carried = self._inserts.after(pieces, one.lacked, one.shows_nulls)
        return carried

    def _keep_run(self, partition: int, run: KeyRun) -> None:
        """Keep a lane's run. Copies of this decoder have their own."""
        self._runs = kept(self._runs, partition, run)

    def _bad(self, place: int, error: Exception, values: Sequence[bytes]) -> BadRecord:
        """Put the table's name before the reason; several tables may feed one target."""
        table = self._table_of(values[place], error)
        reason = str(error) if table is None else f"{table}: {error}"
        of_table, of_keys = isinstance(error, Unfit), isinstance(error, OfKeys)
        return BadRecord(place, reason, of_table=of_table, of_keys=of_keys)

    def _table_of(self, value: bytes, error: Exception) -> object | None:
        table = self._rows.table_of(value, error)
        if table is not None or self._peek is None:
            return table
        try:
            return self._peek(value).table
        except BadMessage:
            return None
