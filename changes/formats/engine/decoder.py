"""The decoding engine: the rows of a target's records, of any format, become one Arrow table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from changes.formats.engine.assemble import Misfit, Pieces, assemble
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.format import DecoderDefaults
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.lacking import Inserts
from changes.formats.engine.layout import Layout, Unfit
from changes.formats.engine.rows import Pass, Rows
from changes.model.model import (
    BadRecord,
    Changes,
    ColumnTypes,
    FormatOptions,
    Mode,
    TableSchema,
)
from changes.sql.convert import Converter


class TableEngine(DecoderDefaults):
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
    ) -> None:
        """``positions``: the name of those that the images have. Raises ValueError for an invalid
        type."""
        self._rows = rows
        self._options = options
        self._positions = None if mode is Mode.APPEND else positions
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        self._layout = rows.layout(keys, ConfiguredTypes.of(types))
        self._key_texts: frozenset[bytes] = frozenset()
        self._run = KeyRun()
        self._seen = False
        self._inserts = Inserts(shows_nulls=not rows.drops_nulls)

    @property
    def schema(self) -> TableSchema | None:
        return self._layout.schema if self._seen else None

    @property
    def positions(self) -> str | None:
        return self._positions

    @property
    def declared_types(self) -> Mapping[str, str]:
        return self._layout.declared_types if self._rows.own_types else {}

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        run = self._run.begun(partition, offsets)
        one = Pass(self._rows, self._layout, self._fixed, self._key_texts, run)
        one.positions = None if self._positions is None else {}
        refused = one.read(values)
        layout: Layout = one.layout
        converter = Converter(self._rows.zone or self._options.time_zone, self._options.zero_dates)
        table, keys = None, layout.keys or ()
        pieces = Pieces(one.segments, layout.columns, keys, self._fixed, one.positions)
        try:
            if one.segments:
                table = assemble(pieces, converter, layout.declared, partition, offsets)
        except Misfit as misfit:
            raise self._bad(misfit.record, misfit, values) from misfit
        if refused is not None:
            raise self._bad(one.place, refused, values) from refused
        if table is None:
            return None
        self._layout, self._key_texts, self._seen = layout, frozenset(one.key_texts), True
        self._run = one.run.ended(one.count)
        self._inserts, carried = self._inserts.after(pieces, one.lacked, one.shows_nulls)
        return Changes(
            table,
            layout.schema,
            Mode.UPSERT if keys else Mode.APPEND,
            one.count,
            converter.nulled,
            carried,
            pieces.begins,
            pieces,
        )

    def _bad(self, place: int, error: Exception, values: Sequence[bytes]) -> BadRecord:
        """Put the table's name before the reason; several tables may feed one target."""
        table = self._rows.table_of(values[place], error)
        reason = str(error) if table is None else f"{table}: {error}"
        return BadRecord(place, reason, of_table=isinstance(error, Unfit))
