"""The state of a decoder of Debezium's records from one call to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from changes.column_changes import ColumnChange, ListedType, changed_columns, filled
from changes.formats.debezium.layout import NULL, DebeziumLayout
from changes.formats.debezium.record import Record
from changes.formats.debezium.shapes import Shapes
from changes.formats.debezium.types import Field, described, source_words
from changes.model import TableName


@dataclass(frozen=True, slots=True)
class State:
    """The layout, the shapes of records, and their lists of columns."""

    layout: DebeziumLayout
    shapes: Shapes = field(default_factory=Shapes)
    covered: bool = False
    """The record keys hold all of the configured key, so no update changes that."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """By column its type in MySQL's words, where the connector passes them on."""
    listed: Mapping[TableName, Mapping[str, ListedType]] = field(default_factory=dict)
    """By table the columns of its latest schema, with their types."""
    filled: Mapping[TableName, frozenset[str]] = field(default_factory=dict)
    """By table the columns in which a NULL may come as the default, as far as judged."""
    changed: tuple[ColumnChange, ...] = ()
    """Changes in these lists that were not taken yet."""
    begun: bool = False
    """Whether rows were decoded since the changes were taken last."""

    def with_sources(self, fields: Mapping[str, Field]) -> State:
        """Add the types in the source's own words."""
        sources = {name: said for name, each in fields.items() if (said := source_words(each))}
        if sources.items() <= self.sources.items():
            return self
        return replace(self, sources={**self.sources, **sources})

    def compared(self, record: Record, place: int) -> State:
        """Compare a record's list of columns with the former one of its table. ``place``: the
        number of records before it in this call."""
        if record.table is None or not record.fields:
            return self
        return self._filled(record.table, record)._listed(
            record.table, record.fields, amid=self.begun or place > 0
        )

    def _filled(self, table: TableName, record: Record) -> State:
        """Add the columns whose NULLs may come as their defaults.

        A null in one of them shows that NULLs come as NULL: the converter does one or the other.
        """
        names = [name for name, each in (record.fields or {}).items() if each.may_be_filled]
        known = self.filled.get(table, frozenset())
        if known.issuperset(names):
            return self
        image = record.after or record.before or {}
        nulls = any(name in image and bytes(image[name]) == NULL for name in names)
        changed = () if nulls else filled(str(table), [name for name in names if name not in known])
        judged = {**self.filled, table: known | {*names}}
        return replace(self, filled=judged, changed=(*self.changed, *changed))

    def _listed(self, table: TableName, fields: Mapping[str, Field], *, amid: bool) -> State:
        now = {name: described(each) for name, each in fields.items()}
        was = self.listed.get(table)
        if not now or now == was:
            return self
        changed = () if was is None else tuple(changed_columns(str(table), was, now, amid))
        if changed:  # so that the former list is noticed if it comes again
            self.shapes.payloads.clear()
        return replace(self, listed={**self.listed, table: now}, changed=(*self.changed, *changed))
