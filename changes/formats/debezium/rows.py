"""Reads the rows of Debezium's records: any record exactly, blocks of a known shape at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Raw, Struct

from changes.formats.debezium import record as careful
from changes.formats.debezium.convert import DebeziumConverter
from changes.formats.debezium.fast_path import FastPath
from changes.formats.debezium.keys import (
    FULL,
    deleted_key,
    deleted_row,
    key_fields,
    other_values,
    replaced_key,
)
from changes.formats.debezium.layout import NULL, DebeziumLayout, DeclaredColumn
from changes.formats.debezium.memory import ListMemory
from changes.formats.debezium.parts import NEW_KEY, OLD_KEY, Members, key_of
from changes.formats.debezium.places import Names, position_of
from changes.formats.debezium.record import Record
from changes.formats.debezium.row_segment import NOT_AT_HAND, JsonRowSegment
from changes.formats.debezium.types import Field, from_schema, words
from changes.formats.debezium.unsent import (
    NOTHING_UNAVAILABLE,
    Unavailable,
    check_identity,
    connector_of,
    partial_image,
)
from changes.formats.debezium.untyped import ConfiguredWireTypes
from changes.formats.engine.assemble import ColumnConverter, RowSegment
from changes.formats.engine.column_changes import ColumnChange
from changes.formats.engine.format import packed_header
from changes.formats.engine.key_runs import PARTIAL_ROW, Key, OfKeys, Values, run_key
from changes.formats.engine.layout import Layout, Refused, other_key, spelled
from changes.formats.engine.rows import Pass, Rows
from changes.model.model import ColumnTypes, FormatOptions, Kind, TableName

_ROW_BY_ROW = (b'"mysql"', b'"mariadb"')
"""Connectors of databases that check keys row by row, as in ``source.connector``."""


class DebeziumRows(Rows):
    """The ``Rows`` of Debezium's JSON."""

    def __init__(
        self, names: Names, unavailable: Unavailable, *, placed: bool, by_key: bool = False
    ) -> None:
        """``by_key``: a partition may come behind others to a new column, so that what an insert
        lacks, in an image that is always whole, has a default at the source."""
        self.tells_inserts = by_key
        self._names = names
        self._unavailable = unavailable
        self._placed = placed

    def layout(self, keys: tuple[str, ...] | None, types: ColumnTypes) -> DebeziumLayout:
        configured = ConfiguredWireTypes.of(types)
        return DebeziumLayout({}, keys, {}, configured=configured, placed=self._placed)

    def memory(self, *, fixed: bool) -> ListMemory:
        return ListMemory(covered=not fixed)

    def converter(self, options: FormatOptions) -> ColumnConverter:
        return DebeziumConverter(options.zero_dates, options.time_zone)

    def segment(self, into: Pass) -> RowSegment:
        layout = into.layout
        return JsonRowSegment(
            layout.kinds, unavailable=self._unavailable, values=into.values, keyed=bool(layout.keys)
        )

    def table_of(self, value: bytes, error: Exception) -> TableName | None:
        try:
            return careful.read(value, self._names).table
        except Refused:
            return None

    def declared_types(self, layout: Layout, memory: ListMemory) -> Mapping[str, str]:
        return memory.sources

    def take_column_changes(self, memory: ListMemory) -> tuple[ColumnChange, ...]:
        changed, memory.changed = memory.changed, ()
        return changed

    def block(self, into: Pass) -> bool:
        return FastPath(into, self._unavailable).add()

    def add_one(self, into: Pass) -> None:
        packed = into.values[into.place]
        record = careful.read(packed, self._names)
        if record.kind is Kind.ROWS:
            _SlowPath(into, packed, record, self._unavailable).add()


def add_slowly(into: Pass, packed: bytes, record: Record) -> None:
    """Add one record of whole rows, in which every value was sent; raises Refused."""
    _SlowPath(into, packed, record, NOTHING_UNAVAILABLE).add()


class _SlowPath:
    """One record of a row, read slowly and exactly into a pass. Its methods raise Refused."""

    def __init__(self, into: Pass, packed: bytes, record: Record, unavailable: Unavailable) -> None:
        self._into = into
        self._memory: ListMemory = into.memory
        self._packed = packed
        self._record = record
        self._unavailable = unavailable
        self._key = key_of(packed, lenient=into.fixed)

    def add(self) -> None:
        into, memory, record, key = self._into, self._memory, self._record, self._key
        self._learn_key()
        keys = into.layout.keys or ()
        if key is not None and keys and not memory.covered:
            memory.covered = key.columns.keys() >= set(keys)
        if record.tombstone is not None and not (keys and self._is_unseen()):
            return
        if into.positions is not None:
            if record.tombstone is not None:  # it repeats a delete, and has no position
                return
            into.positions[into.place] = position_of(record.payload or {})
        if record.letter == "D":
            self._delete(keys)
        else:
            self._change(keys)
            memory.moves, into.run.deleted = False, None
        memory.compare(record, amid=into.amid or into.place > 0)
        if record.prefix is not None:
            memory.shapes.learn_payload(record.prefix, record.added)
        if not into.fixed and key is not None:
            memory.shapes.learn_key(key.prefix, list(key.members))

    def _is_unseen(self) -> bool:
        """Whether a tombstone says more than the delete just before it."""
        key = self._key
        return key is not None and self._into.run.deleted != key.text

    def _learn_key(self) -> None:
        """Take the key of the record, or the configured one as the record spells it."""
        layout: DebeziumLayout = self._into.layout
        record, columns = self._record, self._key.columns if self._key else {}
        if self._into.fixed:
            names = {*(record.after or ()), *(record.before or ()), *columns}
            keys = spelled(layout.keys, names)
            if keys is not None and keys != layout.keys:
                self._into.layout = layout.with_keys(keys)
        elif layout.keys is None:
            self._into.layout = layout.with_keys(tuple(columns))
            self._memory.shapes.keyless = not columns
        elif set(columns) != set(layout.keys):
            raise other_key(layout.keys, tuple(columns))

    def _learn(
        self, fields: Mapping[str, Field], carried: Members, unsent: Sequence[str] = ()
    ) -> None:
        """Take in a record's columns, by its schema and its values.

        ``unsent`` are columns that it has, but no values of.
        """
        types = {n: DeclaredColumn(from_schema(each), words(each)) for n, each in fields.items()}
        types |= {name: DeclaredColumn(None, "") for name in unsent if name not in fields}
        before: DebeziumLayout = self._into.layout
        layout = before.extended(types, carried)
        self._memory.add_sources(fields)
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        if layout is not before and not before.means_the_same(layout):
            # What is known of beginnings holds for columns that meant other things.
            self._memory.shapes.forget()
        self._into.layout = layout

    def _delete(self, keys: Sequence[str]) -> None:
        record, key, into = self._record, self._key, self._into
        if keys:
            image = deleted_key(record, key, keys, configured=into.fixed)
            if record.tombstone is None:
                check_identity(record, image, keys)
            self._learn(record.fields or key_fields(key), image)
            row = self._key_row(image)
        else:
            image = deleted_row(record, key)
            self._learn(record.fields or {}, image)
            row = into.layout.make(image)
        moves = packed_header(self._packed, NEW_KEY) is not None
        if not (moves and keys) or self._leaves(image, keys):
            into.add("D", row)
            into.halves += moves
        else:
            moves = False  # an insert that lacks something can't have it from there
        self._memory.moves, into.run.deleted = moves, None if key is None else key.text

    def _key_row(self, key: Members) -> Struct:
        """The row that ends a key; the rest is null."""
        row = self._into.layout.make(key)
        ended: Struct = self._into.layout.gone(row, row)
        return ended

    def _change(self, keys: Sequence[str]) -> None:
        record, into, after = self._record, self._into, self._record.after
        if after is None:
            raise Refused("an insert or update without the new row")
        if not after:
            raise Refused("a row without columns")
        sent, lost = self._sent(after, keys)
        old = None
        if record.letter == "U" and keys:
            old = replaced_key(record, self._key, keys, configured=into.fixed)
        if old is not None:
            self._learn(record.fields or {}, old)
        self._learn(record.fields or {}, sent, [name for name in after if name not in sent])
        row = into.layout.make(sent)
        if old is not None:
            into.check_alone()
            if self._moves(old, sent, keys):
                into.end_key(self._key_row(old))
        elif record.letter == "I" and keys:
            self._second_half(sent, lost if len(sent) < len(after) else None, keys)
        into.add(record.letter, row)

    def _sent(self, after: Members, keys: Sequence[str]) -> tuple[Members, str | None]:
        """The values of the new row that were sent, and the first column whose value was not."""
        record, unavailable = self._record, self._unavailable.within(self._record.payload or {})
        sent = unavailable.without(after)
        lost = next((name for name in (*after, *(record.fields or ())) if name not in sent), None)
        if lost is not None and self._into.positions is not None:
            raise Refused(
                f"column {lost} is missing: rows that carry only part of their columns can't be "
                "put in order by a position a row"
            )
        if record.letter == "U" and not keys:  # a changelog's: what was not sent did not change
            sent = unavailable.without(record.before or {}) | sent
        return sent, lost

    # --- keys that change: in one record, or by a delete and an insert that announce each other

    def _moves(self, old: Members, sent: Members, keys: Sequence[str]) -> bool:
        """Whether the old key's row ends where this one moves away from it.

        Another row may have come there. Rows of partial images differ by their record keys,
        which such a change leaves as they are.
        """
        image = partial_image(self._record, keys)
        return self._into.run.moves(
            self._into.number,
            _key_of(old, keys),
            self._known(self._record.before, keys),
            _key_of({**old, **sent}, keys),
            self._values(sent, keys),
            None if image is None else (self._key and self._key.text, image),
            free=self._moves_freely,
        )

    def _leaves(self, old: Members, keys: Sequence[str]) -> bool:
        """The same of a key's first half, a record of its own."""
        before = self._known(self._record.before, keys)
        image, key = partial_image(self._record, keys), _key_of(old, keys)
        run = self._into.run
        came = run.next_ == self._into.number and key in run.arrived
        if self._into.by_key and image is not None and came:
            # Whether it is the row that came there shows in the image with which that left its
            # former key, maybe in another partition.
            raise OfKeys(f"{PARTIAL_ROW} ({FULL})")
        return run.leaves(self._into.number, key, before, image, free=self._moves_freely)

    @property
    def _moves_freely(self) -> bool:
        """As of ``Rows.moves_freely``, of this record."""
        return connector_of(self._record.payload or {}) in _ROW_BY_ROW

    def _second_half(self, sent: Members, lost: str | None, keys: Sequence[str]) -> None:
        """Note an insert that its headers call the second half of a change; one that lacks values
        has to be."""
        arrives = packed_header(self._packed, OLD_KEY) is not None
        if lost is not None and not (self._memory.moves and arrives):
            kind = OfKeys if self._into.by_key else Refused
            raise kind(f"{lost}: {NOT_AT_HAND}")
        if arrives:
            after = self._values(sent, keys)
            self._into.run.arrives(self._into.number, _key_of(sent, keys), after)
        if lost is not None:
            self._into.comes_from_before()

    def _known(self, before: Members | None, keys: Sequence[str]) -> Values:
        """An old row's values without its key; UNSET for those that may not have been sent: under
        REPLICA IDENTITY DEFAULT null is one."""
        found = self._values(before or {}, keys)
        return {name: (UNSET if raw == NULL else raw, kind) for name, (raw, kind) in found.items()}

    def _values(self, image: Members, keys: Sequence[str]) -> Values:
        return other_values(image, self._into.layout.columns, self._record.fields, keys)


def _key_of(image: Members, keys: Sequence[str]) -> Key:
    return run_key((name, bytes(image.get(name, Raw(NULL)))) for name in keys)
