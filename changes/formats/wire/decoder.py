"""Decodes the records of one target on any wire: translated, they are read as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy

from changes.formats.engine.column_changes import ColumnChange
from changes.formats.engine.format import TableDecoder
from changes.formats.engine.key_runs import KeyRuns
from changes.formats.engine.layout import Refused
from changes.formats.wire.connect import respelled
from changes.formats.wire.translation import SchemaNotKept
from changes.model.model import BadRecord, Changes, TableSchema


class SchemaLost(BadRecord):
    """A record may be good, but its schema is gone from the folder of schemas, or can't be read.

    Messages are dispatched once their schemas are kept; so it was lost since.
    """


class WireDecoder:
    """The ``TableDecoder`` of a target. ``plain`` translates records; it raises Refused
    in the place of one.

    ``names`` are the key's columns that a schema can't spell, by field (``Translations.whole``).
    """

    def __init__(
        self,
        inner: TableDecoder,
        plain: Callable[[Sequence[bytes], dict[str, str]], Iterable[bytes]],
        names: Mapping[str, str],
    ) -> None:
        self._inner = inner
        self._plain = plain
        self._names = dict(names)

    def __copy__(self) -> WireDecoder:
        """As it is now: what it decodes later does not change the copy."""
        return WireDecoder(copy(self._inner), self._plain, self._names)

    @property
    def schema(self) -> TableSchema | None:
        return self._inner.schema

    @property
    def positions(self) -> str | None:
        return self._inner.positions

    @property
    def declared_types(self) -> Mapping[str, str]:
        return self._inner.declared_types

    def take_column_changes(self) -> tuple[ColumnChange, ...]:
        return self._inner.take_column_changes()

    def use_stored_schema(self, stored: TableSchema) -> None:
        self._inner.use_stored_schema(stored)
        self._names |= respelled(stored.keys)

    @property
    def key_runs(self) -> KeyRuns:
        return self._inner.key_runs

    def use_key_runs(self, runs: KeyRuns) -> None:
        self._inner.use_key_runs(runs)

    def resume(self, partition: int, held: int, start: int) -> None:
        self._inner.resume(partition, held, start)

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        found: list[bytes] = []
        try:
            # Those before an error stay: a list grows as it takes from an iterator.
            found.extend(self._plain(values, self._names))
        except Refused as refused:
            if found:  # one of these may be the first that is bad
                copy(self._inner).decode(partition, offsets[: len(found)], found)
            kind = SchemaLost if isinstance(refused, SchemaNotKept) else BadRecord
            raise kind(len(found), str(refused)) from refused
        return self._inner.decode(partition, offsets, found)
