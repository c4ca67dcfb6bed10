"""A sink of dicts under the real kit: it publishes atomically and follows DDL, as a real one does.

What may land, and in which steps, is the kit's (``sparkwriter.kit``); here is what a step does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from actors.contract.writes import StagedBatch, TargetState
from changes.model.errors import LostRace
from changes.model.model import POSITION, Mode, TableName, TargetName
from changes.sql.spark.ddl_plan import DdlTable, LakeField
from changes.sql.spark.schema import AddLakeColumn, LakeColumn, SchemaStep, StoredTable, arrow_type
from offsets.fence import Marks
from offsets.position import TopicPartition
from offsets.snapshot import TargetMark
from sparkwriter.kit.store import FOUND, Absent, Capabilities, Existing, Facts, TableChange
from sparkwriter.kit.writer import TargetWriter
from tests.simulation.rows import Key, Net
from tests.simulation.staging import Content, Entry, StagedNets


@dataclass
class Table:
    """One table. ``rows`` hold their values by the columns' ids, which no renaming changes."""

    plan: DdlTable
    mode: Mode
    positions: str | None = None
    marks: Marks = field(default_factory=Marks)
    rows: dict[Key, dict[int, Any]] = field(default_factory=dict)
    at: dict[Key, str] = field(default_factory=dict)
    tombstones: dict[Key, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    next_id: int = 0
    source: TableName | None = None
    differs: str | None = None
    """What may have changed its rows at the source alone."""
    dropped: str | None = None
    """Where the source dropped its own."""
    shape: str = ""
    key_partitioning: str = ""

    def take_facts(self, facts: Facts) -> None:
        """Say so from now on."""
        self.marks, self.differs, self.source = facts.marks, facts.differs, facts.source
        self.shape = facts.shape
        self.key_partitioning = facts.key_partitioning or self.key_partitioning

    def take_plan(self, plan: DdlTable) -> None:
        """Have columns as planned: stored rows read as the default in those that are new."""
        fields = []
        for column in plan.fields:
            number = column.id
            if number is None:
                number, self.next_id = self.next_id, self.next_id + 1
                for row in self.rows.values():
                    row[number] = column.default
            fields.append(replace(column, id=number))
        if plan.emptied:
            self.rows.clear()
        self.plan = replace(plan, fields=tuple(fields), emptied=False)

    def merge(self, nets: list[Net]) -> None:
        """Apply a batch's net rows."""
        ids = {column.name.lower(): column.id or 0 for column in self.plan.fields}
        made: dict[Key, dict[int, Any] | None] = {}
        for net in nets:
            if net.position is not None and self.is_newer(net.key, net.position):
                continue
            if net.values is None:
                made[net.key] = None
                continue
            row = {} if net.base is None else dict(self.rows.get(net.base, {}))
            row.update((ids[name.lower()], value) for name, value in net.values.items())
            made[net.key] = row
            if net.position is not None:
                self.at[net.key] = net.position
        for key, row in made.items():
            if row is None:
                self.rows.pop(key, None)
                self.at.pop(key, None)
            else:
                self.rows[key] = row

    def is_newer(self, key: Key, position: str) -> bool:
        """Whether what the table holds of a key, or held when that went, is newer."""
        return max(self.at.get(key, ""), self.tombstones.get(key, "")) > position

    def bury(self, nets: list[Net]) -> None:
        """Remember deletions: they are true from now on, whether the write is published or not."""
        for net in nets:
            if net.values is None and net.position is not None:
                held = self.tombstones.get(net.key, "")
                self.tombstones[net.key] = max(held, net.position)

    def shown(self) -> dict[Key, dict[str, Any]]:
        """The rows as a reader sees them; what no row ever had is not there."""
        names = {column.id: column.name.lower() for column in self.plan.fields}
        return {
            key: {names[number]: value for number, value in row.items() if number in names}
            for key, row in self.rows.items()
        }


class MemoryStore:
    """``sparkwriter.kit.store.TableStore`` over the tables; ``rows`` are what a publish brings."""

    capabilities = Capabilities(history=False)

    def __init__(self, sink: FakeSink, rows: Content | None = None) -> None:
        self._sink = sink
        self._rows = rows

    def call(self, target: TargetName) -> AbstractContextManager[None]:
        return nullcontext()

    def look(self, target: TargetName) -> Existing[Table] | Absent:
        name = str(target)
        table = self._sink.tables.get(name)
        if table is None:
            return Absent(self._sink.buried.get(name, Marks()))
        columns = tuple(LakeColumn(column.name, column.type) for column in table.plan.fields)
        return Existing(
            target,
            table,
            StoredTable(columns, table.mode, table.plan.keys),
            table.marks,
            str(self._sink.versions[name]),
            dropped=table.dropped,
            positions=table.positions,
            differs=table.differs,
            source=table.source,
            shape=table.shape,
            key_partitioning=table.key_partitioning,
        )

    def open(self, target: TargetName, recorded: TargetMark | None) -> Existing[Table] | Absent:
        return self.look(target)

    def create(self, batch: StagedBatch, columns: Sequence[LakeColumn], facts: Facts) -> None:
        if batch.positions is not None:
            columns = (*columns, LakeColumn(POSITION, "string"))
        table = Table(DdlTable((), batch.schema.keys), batch.mode, batch.positions)
        fields = tuple(LakeField(None, column.name, column.type) for column in columns)
        table.take_plan(replace(table.plan, fields=fields))
        table.take_facts(facts)
        self._sink.tables[str(batch.target)] = table
        self._sink.changed(batch.target)

    def change_schema(
        self, seen: Existing[Table], steps: Sequence[SchemaStep], differs: str | None
    ) -> None:
        added = (step.column for step in steps if isinstance(step, AddLakeColumn))
        new = tuple(LakeField(None, column.name, column.type) for column in added)
        assert len(new) == len(steps), steps
        plan = seen.table.plan
        seen.table.take_plan(replace(plan, fields=(*plan.fields, *new)))
        seen.table.differs = differs
        self._sink.changed(seen.target)

    def publish(self, seen: Existing[Table], batch: StagedBatch, facts: Facts) -> str:
        table, rows = seen.table, self._rows
        if isinstance(rows, StagedNets) and batch.path in rows.decided:
            rows = rows.decided[batch.path]
        if rows is not None and table.mode is Mode.APPEND:
            table.entries += rows  # type: ignore[arg-type]
        elif rows is not None:
            assert batch.table is not None
            if table.positions is not None:
                table.bury(rows)  # type: ignore[arg-type]
            table.merge(rows)  # type: ignore[arg-type]
        table.take_facts(facts)
        return self._sink.changed(seen.target)

    def read_rows(self, seen: Existing[Table], keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        shown, types = seen.table.shown(), {f.name: f.type for f in seen.table.plan.fields}
        asked = [tuple(row.values()) for row in keys.to_pylist()]
        rows = [shown.get(key) for key in asked]
        found = {FOUND: pa.array([row is not None for row in rows], pa.bool_())}
        for name in columns:
            values = [None if row is None else row.get(name) for row in rows]
            found[name] = pa.array(values, arrow_type(types[name]))
        return pa.table(found)

    def reset(self, seen: Existing[Table], marks: Marks) -> str:
        seen.table.marks = marks
        return self._sink.changed(seen.target)

    def filled(self, seen: Existing[Table]) -> frozenset[str]:
        return frozenset()

    def columns(self, seen: Existing[Table]) -> DdlTable:
        return replace(seen.table.plan, dropped=False, empty=self.is_empty(seen))

    def change(self, seen: Existing[Table], change: TableChange) -> None:
        seen.table.dropped = change.dropped or seen.table.dropped
        dropped = seen.table.dropped is not None
        seen.table.take_plan(replace(change.after, dropped=dropped))
        seen.table.take_facts(change.facts)
        self._sink.changed(seen.target)

    def move(self, seen: Existing[Table], to: TargetName, change: TableChange, left: Marks) -> None:
        assert str(to) not in self._sink.tables
        self.change(seen, change)
        seen.table.marks = seen.marks.with_name(change.facts.marks)
        self._sink.tables[str(to)] = seen.table
        self._sink.changed(to)
        self.drop(seen, left)

    def set_aside(self, seen: Existing[Table], aside: TargetName) -> None:
        self._sink.tables[str(aside)] = seen.table
        self._sink.changed(aside)
        self.drop(seen, seen.marks)

    def drop(self, seen: Existing[Table], marks: Marks) -> None:
        del self._sink.tables[str(seen.target)]
        self.bury(seen.target, marks)

    def bury(self, target: TargetName, marks: Marks) -> None:
        self._sink.buried[str(target)] = marks
        self._sink.changed(target)

    def free(self, target: TargetName, renaming: str) -> None:
        self._sink.freed[str(target)] = renaming

    def freed(self, target: TargetName) -> str | None:
        return self._sink.freed.get(str(target))

    def is_empty(self, seen: Existing[Table]) -> bool:
        return not seen.table.rows

    def may_hold_null(self, seen: Existing[Table], column: str) -> bool:
        return True

    def added_otherwise(self, seen: Existing[Table], batch: StagedBatch) -> list[str]:
        return []


@dataclass
class FakeSink:
    """Tables by name, and the marks of names that no table has (any more)."""

    tables: dict[str, Table] = field(default_factory=dict)
    buried: dict[str, Marks] = field(default_factory=dict)
    freed: dict[str, str] = field(default_factory=dict)
    """Of a name, the renaming that may take it."""
    versions: dict[str, int] = field(default_factory=dict)
    """How often each name changed: what a write that was prepared before one can't land on."""

    def marks(self, name: str) -> Mapping[TopicPartition, int]:
        """A target's marks."""
        table = self.tables.get(name)
        return (self.buried.get(name, Marks()) if table is None else table.marks).offsets

    def open(self, target: TargetName) -> TargetState:
        """As a writer that opens the target hears it."""
        return TargetWriter(MemoryStore(self)).open(target)

    def publish(self, batch: StagedBatch, rows: Content | None) -> TargetState:
        """Apply a batch and its marks in one step. Raises as ``BatchWriter.write``."""
        files = rows if isinstance(rows, StagedNets) else None
        return TargetWriter(MemoryStore(self, rows), files).write(batch)

    def prepared(self, batch: StagedBatch, rows: Content | None) -> Callable[[], None]:
        """A write that is done but for its publish, which lands if main has not moved by then.

        Raises LostRace where it has.
        """
        name = str(batch.target)
        version, table = self.versions.get(name), self.tables.get(name)
        if table is not None and table.positions is not None and rows is not None:
            table.bury(rows)  # type: ignore[arg-type]

        def publish() -> None:
            if self.versions.get(name) != version:
                raise LostRace(f"{name}: main moved")
            self.publish(batch, rows)

        return publish

    def changed(self, target: TargetName) -> str:
        """A name shows something else: its new version."""
        number = self.versions[str(target)] = self.versions.get(str(target), 0) + 1
        return str(number)
