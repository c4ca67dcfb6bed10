"""Decodes the row records of one target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from changes.formats.debezium import record as careful
from changes.formats.debezium.convert import DebeziumConverter
from changes.formats.debezium.decode_pass import DecodePass
from changes.formats.debezium.layout import DebeziumLayout
from changes.formats.debezium.places import Names
from changes.formats.debezium.state import State
from changes.formats.debezium.unsent import Unavailable
from changes.formats.debezium.untyped import ConfiguredWireTypes
from changes.formats.engine.assemble import Misfit, Pieces, assemble
from changes.formats.engine.column_changes import ColumnChange
from changes.formats.engine.format import DecoderDefaults
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.layout import Refused, Unfit
from changes.model.model import BadRecord, Changes, ColumnTypes, FormatOptions, Mode, TableSchema


class DebeziumTableDecoder(DecoderDefaults):
    """The ``TableDecoder`` of Debezium's JSON.

    A call that raises leaves what is known of the columns as it was, so the records before the
    bad one can be decoded again without it.
    """

    def __init__(
        self,
        options: FormatOptions,
        names: Names,
        unavailable: Unavailable,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes = (),
    ) -> None:
        self._options = options
        self._names = names
        self._unavailable = unavailable
        self._positions = None if mode is Mode.APPEND else options.extra.get("positions")
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        configured, placed = ConfiguredWireTypes.of(types), self._positions is not None
        self._state = State(
            DebeziumLayout({}, keys, {}, configured=configured, placed=placed),
            covered=keys is None,
        )
        self._run = KeyRun()
        self._seen = False

    @property
    def schema(self) -> TableSchema | None:
        return self._state.layout.schema if self._seen else None

    def use_stored_schema(self, stored: TableSchema) -> None:
        self._state = replace(self._state, layout=self._state.layout.with_stored(stored))

    @property
    def positions(self) -> str | None:
        return self._positions

    def take_column_changes(self) -> tuple[ColumnChange, ...]:
        changed = self._state.changed
        if changed or self._state.begun:
            self._state = replace(self._state, changed=(), begun=False)
        return changed

    @property
    def declared_types(self) -> Mapping[str, str]:
        return self._state.sources

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        run = self._run.begun(partition, offsets)
        decoding = DecodePass(self._state, self._fixed, self._names, self._unavailable, run)
        if self._positions is not None:
            decoding.positions = {}
        converter = DebeziumConverter(self._options.zero_dates, self._options.time_zone)
        table = None
        try:
            refused = decoding.read(values)
            layout = decoding.state.layout
            if decoding.segments:
                keys, marks = layout.keys or (), decoding.positions
                pieces = Pieces(decoding.segments, layout.columns, keys, self._fixed, marks)
                table = assemble(pieces, converter, layout.declared, partition, offsets)
        except Misfit as misfit:
            raise self._bad(misfit.record, misfit, values) from misfit
        if refused is not None:
            raise self._bad(decoding.place, refused, values) from refused
        if table is None:
            return None
        self._state, self._seen = replace(decoding.state, begun=True), True
        self._run = decoding.run.ended(decoding.numbered)
        mode = Mode.UPSERT if layout.keys else Mode.APPEND
        return Changes(
            table,
            layout.schema,
            mode,
            decoding.count,
            converter.nulled,
            None,
            pieces.begins,
            pieces,
        )

    def _bad(self, place: int, error: Exception, values: Sequence[bytes]) -> BadRecord:
        """Put the table's name before the reason; several tables may feed one target."""
        try:
            table = careful.read(values[place], self._names).table
        except Refused:
            table = None
        reason = str(error) if table is None else f"{table}: {error}"
        return BadRecord(place, reason, of_table=isinstance(error, Unfit))
