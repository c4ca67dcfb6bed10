"""Messages of several entries: a JSON list of Canal JSON's own, and the format that reads both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa

from changes.formats.engine.assemble import Pieces
from changes.formats.engine.column_changes import ColumnChange
from changes.formats.engine.format import Entry, TableDecoder
from changes.formats.engine.heads import head_of
from changes.formats.engine.key_runs import KeyRuns
from changes.model.model import (
    BadRecord,
    Changes,
    ColumnTypes,
    Ddl,
    Head,
    Kind,
    Mode,
    TableName,
    TableSchema,
)
from tests.simulation.parts import SplitCanalJson

_LIST = b"["
_entries = msgspec.json.Decoder(list[msgspec.Raw])


def joined(values: Sequence[bytes]) -> bytes:
    """One message of these."""
    return _LIST + b",".join(values) + b"]"


def entries_of(value: bytes) -> list[bytes]:
    """The entries of a message; one that is no list is its own."""
    return list(map(bytes, _entries.decode(value))) if value.startswith(_LIST) else [value]


class SeveralCanalJson(SplitCanalJson):
    """Canal JSON, as a producer would write it that packs entries together."""

    def peek(self, value: bytes | None) -> Head:
        if value is not None and value.startswith(_LIST):
            return head_of((entry.kind, entry.table) for entry in self.entries(value))
        return super().peek(value)

    def entries(self, value: bytes) -> list[Entry]:
        heads = [(super(SeveralCanalJson, self).peek(raw), raw) for raw in entries_of(value)]
        return [
            Entry(head.kind, head.table or TableName("", ""), raw)
            for head, raw in heads
            if head.kind is not Kind.NOTHING
        ]

    def joined(self, _value: bytes, entries: Sequence[bytes]) -> bytes:
        return joined(entries)

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        found = [entry.data for entry in self.entries(value) if entry.kind is Kind.DDL]
        return tuple(ddl for raw in found for ddl in super(SeveralCanalJson, self).ddl(raw))

    def why_not_followed(self, value: bytes, found: tuple[Ddl, ...]) -> str | None:
        return None if value.startswith(_LIST) else super().why_not_followed(value, found)

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> Any:
        return _Unpacking(super().table_decoder(mode, keys, types))


class _Unpacking:
    """A decoder of lists: the rows of one are numbered on."""

    def __init__(self, decoder: TableDecoder) -> None:
        self._decoder = decoder

    @property
    def schema(self) -> TableSchema | None:
        return self._decoder.schema

    @property
    def positions(self) -> str | None:
        return self._decoder.positions

    @property
    def declared_types(self) -> Mapping[str, str]:
        return {}

    def take_column_changes(self) -> tuple[ColumnChange, ...]:
        return ()

    def use_stored_schema(self, stored: TableSchema) -> None:
        """Needs none."""

    @property
    def key_runs(self) -> KeyRuns:
        return self._decoder.key_runs

    def use_key_runs(self, runs: KeyRuns) -> None:
        self._decoder.use_key_runs(runs)

    def resume(self, partition: int, held: int, start: int) -> None:
        self._decoder.resume(partition, held, start)

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        flat = [(place, raw) for place, value in enumerate(values) for raw in entries_of(value)]
        places = [offsets[place] for place, _ in flat]
        try:
            changes = self._decoder.decode(partition, places, [raw for _, raw in flat])
        except BadRecord as error:
            raise BadRecord(flat[error.index][0], error.reason, of_table=error.of_table) from error
        if changes is None:
            return None
        assert isinstance(changes.origins, Pieces)
        for segment in changes.origins.segments:
            segment.records = [flat[record][0] for record in segment.records]
        origins = replace(changes.origins, times=())  # they are the entries'
        return _numbered(replace(changes, origins=origins))


def _numbered(changes: Changes) -> Changes:
    table = changes.table
    if "_offset" not in table.column_names:
        return changes
    seen: dict[int, int] = {}
    numbers = []
    for offset in table.column("_offset").to_pylist():
        numbers.append(seen.get(offset, 0))
        seen[offset] = numbers[-1] + 1
    place = table.schema.get_field_index("_index")
    counted = pa.array(numbers, pa.int32())
    return replace(changes, table=table.set_column(place, "_index", counted))
