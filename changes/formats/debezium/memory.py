"""What a decoder of Debezium's records remembers from one call to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec import Raw

from changes.formats.debezium.layout import NULL
from changes.formats.debezium.parts import announces
from changes.formats.debezium.record import Record
from changes.formats.debezium.types import Field, described, source_words
from changes.formats.engine.column_changes import ColumnChange, ListedType, changed_columns, filled
from changes.formats.engine.format import VALUE_AT, sizes
from changes.formats.engine.layout import json_name
from changes.model.model import TableName

# Remembers the shapes of records that were read slowly, to read others like them fast.

_BRACE = ord("}")

_MOST = 8
"""Beginnings remembered. Fewer: tables that share a target take the slow path. More: each costs a
comparison."""


@dataclass(slots=True)
class Shapes:
    """The beginnings of payloads and keys of one target."""

    payloads: list[bytes] = field(default_factory=list)
    """The bytes before a wrapped payload, the latest first."""
    bare: bool = False
    """Whether envelopes come without a wrapping."""
    keys: tuple[bytes, ...] = ()
    """The bytes before the columns of a wrapped key, the latest first."""
    bare_key: Any = None
    """The decoder of a key that is not wrapped; it accepts only these columns."""
    bare_names: tuple[str, ...] = ()
    """The names of the columns of such a key."""
    keyless: bool = False
    added: tuple[str, ...] | None = None
    """The members of flattened rows that are no columns; None: records are envelopes."""

    def copy(self) -> Shapes:
        """A copy that can be changed independently."""
        return replace(self, payloads=[*self.payloads])

    def cut(self, values: Sequence[bytes], *, check_keys: bool) -> tuple[list[bytes], list[bytes]]:
        """The payloads of the first packed records, as many as have a known beginning, and those of
        their keys that ``bare_key`` still has to check.

        A single loop, as cheap as possible: it takes half as long as the decoding.
        """
        payloads: list[bytes] = []
        keys: list[bytes] = []
        known_keys, prefix = self.keys, self.payloads[0] if self.payloads else b""
        begin, tail = VALUE_AT + len(prefix), 1 if prefix else 0
        if not prefix and not self.bare:
            return payloads, keys
        for packed, (size, key_size, headers_size) in zip(values, map(sizes, values), strict=True):
            end = VALUE_AT + size
            if prefix and not packed.startswith(prefix, VALUE_AT):
                prefix = next((p for p in self.payloads if packed.startswith(p, VALUE_AT)), b"")
                if not prefix and not self.bare:
                    break
                begin, tail = VALUE_AT + len(prefix), 1 if prefix else 0
            if (tail and packed[end - 1] != _BRACE) or (headers_size and announces(packed)):
                break
            if check_keys:
                if key_size < 0:
                    if not self.keyless:
                        break
                elif not known_keys or not packed.startswith(known_keys, end):
                    if self.bare_key is None:
                        break
                    keys.append(packed[end : end + key_size])
            # A wrapped payload ends one byte before the value does.
            payloads.append(packed[begin : end - tail])
        return payloads, keys

    def forget(self) -> None:
        """Forget the beginnings that hold a schema."""
        self.payloads.clear()
        self.keys = ()

    def learn_payload(self, prefix: bytes, added: tuple[str, ...] | None) -> None:
        """Remember the bytes before a payload (none where it is bare), and its added members."""
        if added != self.added:
            self.payloads.clear()
            self.bare, self.added = False, added
        if not prefix:
            self.bare = True
        elif prefix not in self.payloads:
            self.payloads[:] = [prefix, *self.payloads[: _MOST - 1]]

    def learn_key(self, prefix: bytes | None, names: Sequence[str]) -> None:
        """Remember the beginning of a key; that of a bare one is empty."""
        if prefix:
            if prefix not in self.keys:
                self.keys = (prefix, *self.keys[: _MOST - 1])
        elif (
            prefix is not None
            and tuple(names) != self.bare_names
            and all(json_name(name, "") == name for name in names)
        ):
            self.bare_names = tuple(names)
            cells = [(f"f{place}", Raw) for place in range(len(names))]
            rename = {f"f{place}": name for place, name in enumerate(names)}
            key = msgspec.defstruct(
                "Key", cells, rename=rename, gc=False, forbid_unknown_fields=True
            )
            self.bare_key = msgspec.json.Decoder(key).decode


@dataclass(slots=True)
class ListMemory:
    """What a decoder has to remember of records: their shapes, and their lists of columns."""

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
    moves: bool = False
    """Whether the record before, in this call, was a delete that announced a new key."""

    def __copy__(self) -> ListMemory:
        """For the next call: what it learns does not change this one."""
        return replace(self, shapes=self.shapes.copy(), moves=False)

    def add_sources(self, fields: Mapping[str, Field]) -> None:
        """Add the types in the source's own words."""
        sources = {name: said for name, each in fields.items() if (said := source_words(each))}
        if not sources.items() <= self.sources.items():
            self.sources = {**self.sources, **sources}

    def compare(self, record: Record, *, amid: bool) -> None:
        """Compare a record's list of columns with the former one of its table. ``amid``: see
        ``ColumnChange``."""
        if record.table is not None and record.fields:
            self._fill(record.table, record)
            self._list(record.table, record.fields, amid)

    def _fill(self, table: TableName, record: Record) -> None:
        """Add the columns whose NULLs may come as their defaults.

        A null in one of them shows that NULLs come as NULL: the converter does one or the other.
        """
        names = [name for name, each in (record.fields or {}).items() if each.may_be_filled]
        known = self.filled.get(table, frozenset())
        if known.issuperset(names):
            return
        image = record.after or record.before or {}
        nulls = any(name in image and bytes(image[name]) == NULL for name in names)
        self.filled = {**self.filled, table: known | {*names}}
        if not nulls:
            self.changed += filled(str(table), [name for name in names if name not in known])

    def _list(self, table: TableName, fields: Mapping[str, Field], amid: bool) -> None:
        now = {name: described(each) for name, each in fields.items()}
        was = self.listed.get(table)
        if not now or now == was:
            return
        changed = () if was is None else tuple(changed_columns(str(table), was, now, amid))
        if changed:  # so that the former list is noticed if it comes again
            self.shapes.payloads.clear()
        self.listed = {**self.listed, table: now}
        self.changed += changed
