"""Decides about tombstones. Each repeats the delete before it, so it has nothing to add.

One whose delete is unknown (reading began between the two, or the log was compacted) names its
table only by its key's schema, where Debezium writes ``_`` for most signs: ``a b`` and ``a_b`` have
the same name. Such a tombstone deletes a row only where the name can be of one table alone. Else it
is reported and skipped: a guess could delete another table's rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from changes.formats.debezium.parts import NOT_COLUMNS, key_of
from changes.formats.debezium.places import Names, key_spells, spelled_surely, table_of
from changes.formats.debezium.record import Tombstone
from changes.formats.engine.format import VALUE_AT, sizes
from changes.model.model import BadMessage, Head, Kind, TableName

_DELETES_KEPT = 256
"""Deletes of a partition whose tombstones have not come. Fewer: connectors that write to one
partition displace each other's, and their tombstones are reported as unknown. More costs memory, a
key each, where the connector writes no tombstones."""

_NAMES_KEPT = 10_000
"""Names of key schemas with the tables that they came with: some for each table."""

_NOTHING, _PASSED_OVER = Head(Kind.NOTHING, None), Head(Kind.PASSED_OVER, None)
_REWRITE = "have the connector rewrite deletes (delete.tombstone.handling.mode)"
_WAYS_OUT = (
    "set options.tombstones = \"delete\" where the names in the keys' schemas are the tables' own, "
    f"with default_database and default_table where they have none, or {_REWRITE}"
)
_WHAT_IT_MEANS = (
    "; where reading began behind its delete it says nothing new, on a compacted topic its row "
    "stays in the target, see tombstones in the configuration"
)


@dataclass(slots=True)
class _Partition:
    """What is known of one partition's records."""

    deletes: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    """The keys of deletes whose tombstones have not come, the oldest first."""
    flattened: bool = False
    """Rows came without envelopes: by default such streams have tombstones as their only
    deletes."""


class Tombstones:
    """Decides what each tombstone of a stream means. Used by one thread, in partition order.

    It remembers only records of this process: they may narrow what a record says by itself, never
    add to it.
    """

    def __init__(self, names: Names, *, delete: bool, placed: bool) -> None:
        """``delete``: tombstones are the stream's deletes, and names those of tables, by
        configuration. ``placed``: rows carry positions, which no tombstone has."""
        self._names = names
        self._delete = delete
        self._placed = placed
        self._here = _Partition()
        self._partitions = {"": self._here}
        self._came_with: dict[str, set[TableName]] = {}
        self._alone = True
        """No row came of another table than the one that the configuration names."""

    def turn_to(self, partition: str) -> None:
        """See ``Format.turn_to``."""
        self._here = self._partitions.setdefault(partition, _Partition())

    def flattened(self) -> None:
        """Note a row without an envelope."""
        self._here.flattened = True

    def deleted(self, packed: bytes) -> None:
        """Note a delete: its tombstone will have nothing to add."""
        size, key_size, _ = sizes(packed)
        if key_size > 0:
            begin, deletes = VALUE_AT + max(size, 0), self._here.deletes
            deletes[packed[begin : begin + key_size]] = None
            if len(deletes) > _DELETES_KEPT:
                deletes.popitem(last=False)

    def seen(self, packed: bytes, table: TableName) -> None:
        """Note which table the name of a key's schema came with: once for each table is enough."""
        self._alone = self._alone and table == self._names.default
        key = key_of(packed, lenient=True)
        if key is not None and key.field is not None and key.field.name:
            if len(self._came_with) >= _NAMES_KEPT:
                self._came_with.clear()
            self._came_with.setdefault(key.field.name, set()).add(table)

    def head(self, tombstone: Tombstone) -> Head:
        """The head of a tombstone: rows, nothing, or passed over. To be called once for each.

        Raises BadMessage for one that can't be followed where no delete may have come before it.
        """
        if tombstone.key is None:
            return _NOTHING
        if tombstone.key in self._here.deletes:
            del self._here.deletes[tombstone.key]
            return _NOTHING
        table = self._table(tombstone)
        if isinstance(table, TableName):
            return Head(Kind.ROWS, table)
        named = self._names.default is not None and not self._placed
        bare = named and tombstone.schema_name is None
        if self._here.flattened or self._delete or bare:
            raise BadMessage(f"{table}: {_REWRITE if self._placed else _WAYS_OUT}")
        return _PASSED_OVER

    def why_not(self, tombstone: Tombstone) -> str:
        """Why a tombstone is passed over, in one line."""
        table = self._table(tombstone)
        return f"a tombstone of {table}" if isinstance(table, TableName) else table + _WHAT_IT_MEANS

    def _table(self, tombstone: Tombstone) -> TableName | str:
        """The table of a tombstone whose delete is unknown, or why the table is unknown."""
        name = tombstone.schema_name
        begin = "a tombstone whose delete is not known"
        if self._placed:
            return f"{begin} has no position among the rows"
        known: Collection[TableName] = self._came_with.get(name or "", ())
        sure = table_of(name) if self._delete else spelled_surely(name)
        if sure is not None and {*known} <= {sure} and NOT_COLUMNS not in tombstone.text:
            return sure
        default = self._names.default
        if default is not None and {*known} <= {default} and self._is_defaults(name):
            return default
        if name is None:
            return f"{begin}, and whose key has no schema that names a table"
        came = " and ".join(sorted(map(str, known)))
        came = f", which came with {came}" if came else ""
        return f"{begin}, and whose key's schema names no table beyond doubt: {name}{came}"

    def _is_defaults(self, name: str | None) -> bool:
        """Whether a key with a schema of that name can only be the configured table's. Without a
        schema it may be any table's: of one whose rows have not come since the start, too."""
        if name is not None:
            assert self._names.default is not None
            return key_spells(name, self._names.default)
        return self._alone and (self._delete or self._here.flattened)
