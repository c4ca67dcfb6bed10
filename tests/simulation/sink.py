"""A sink of dicts: it publishes atomically, fences and follows DDL, as a real one does.

What a statement makes of columns is planned by the real plan (``sparkwriter.sql.ddl_plan``);
what becomes of tables and their names follows ``sparkwriter.kit.statements`` step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from actors.contract.ports import (
    LostRace,
    SinkUnavailable,
    StagedBatch,
    TargetRefused,
    TargetState,
    WaitsForName,
)
from actors.processor.one_lane import check_one_lane
from changes.model import Column, DropTable, Mode, TableName, TableSchema, TargetName
from offsets.doubts import noted
from offsets.fence import Marks, place_of, place_text
from offsets.position import Step, TopicPartition, still_open
from sparkwriter.sql.ddl_plan import DdlTable, LakeField, apply_ddl
from tests.simulation.rows import Key, Net
from tests.simulation.staging import Content, Entry

Offsets = Mapping[TopicPartition, int]


@dataclass
class Table:
    """One table. ``rows`` hold their values by the columns' ids, which no renaming changes."""

    plan: DdlTable
    mode: Mode
    positions: str | None = None
    marks: Offsets = field(default_factory=dict)
    rows: dict[Key, dict[int, Any]] = field(default_factory=dict)
    at: dict[Key, str] = field(default_factory=dict)
    tombstones: dict[Key, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    next_id: int = 0
    source: TableName | None = None
    differs: str | None = None
    """What may have changed its rows at the source alone."""

    def take_source(self, batch: StagedBatch) -> None:
        """Be of the batch's table. The source's names lead to one target each, so whatever was
        renamed: a write of another table is a fault."""
        if not self.plan.dropped:
            assert batch.table is None or self.source in (None, batch.table), batch
        self.source = batch.becomes or batch.table or self.source

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
            self.differs = None
        self.plan = replace(plan, fields=tuple(fields), emptied=False)

    def write(self, rows: Content, schema: TableSchema) -> None:
        """Apply a batch's rows; the columns that they bring are added."""
        known = {column.name for column in self.plan.fields}
        new = [LakeField(None, c.name, "string") for c in schema.columns if c.name not in known]
        if new:
            self.take_plan(replace(self.plan, fields=(*self.plan.fields, *new)))
        if self.mode is Mode.APPEND:
            self.entries += rows  # type: ignore[arg-type]
        else:
            self._merge(rows)  # type: ignore[arg-type]

    def _merge(self, nets: list[Net]) -> None:
        ids = {column.name: column.id or 0 for column in self.plan.fields}
        made: dict[Key, dict[int, Any] | None] = {}
        for net in nets:
            if net.position is not None and self.is_newer(net.key, net.position):
                continue
            if net.values is None:
                made[net.key] = None
                continue
            row = {} if net.base is None else dict(self.rows.get(net.base, {}))
            row.update((ids[name], value) for name, value in net.values.items())
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
        names = {column.id: column.name for column in self.plan.fields}
        return {
            key: {names[number]: value for number, value in row.items() if number in names}
            for key, row in self.rows.items()
        }

    def state(self, version: int) -> TargetState:
        """What the processor hears."""
        columns = tuple(Column(column.name, pa.string()) for column in self.plan.fields)
        schema = TableSchema(columns, self.plan.keys)
        state = TargetState(schema, self.mode, self.marks, str(version), self.positions)
        return replace(state, rows_may_differ=self.differs)

    def doubt(self, batch: StagedBatch) -> None:
        """Take in what a write says of the rows that are there before it, or come with it."""
        doubts = (doubt.what for doubt in batch.doubts if doubt.amid or self.rows)
        self.differs = noted(self.differs, doubts)


@dataclass
class FakeSink:
    """Tables by name, and the marks of names that no table has (any more)."""

    tables: dict[str, Table] = field(default_factory=dict)
    buried: dict[str, Offsets] = field(default_factory=dict)
    groups: dict[tuple[str, TopicPartition], str] = field(default_factory=dict)
    """Who moved each lane's mark."""
    held: dict[str, dict[TopicPartition, Step]] = field(default_factory=dict)
    """How far each name's lanes came into messages of several entries."""
    freed: dict[str, str] = field(default_factory=dict)
    """Of a name, the renaming that may take it."""
    versions: dict[str, int] = field(default_factory=dict)
    """How often each name changed: what a write that was prepared before one can't land on."""

    def marks(self, name: str) -> Offsets:
        """A target's marks."""
        table = self.tables.get(name)
        return self.buried.get(name, {}) if table is None else table.marks

    def steps(self, name: str) -> Mapping[TopicPartition, Step]:
        """How far a target's lanes are above their marks."""
        return still_open(self.held.get(name, {}), self.marks(name))

    def whole(self, name: str) -> Marks:
        """All that a target shows of its lanes."""
        groups = {lane: by for (of, lane), by in self.groups.items() if of == name}
        return Marks(self.marks(name), groups, self.steps(name))

    def state(self, name: str) -> TargetState:
        """As a reader of the target sees it."""
        table = self.tables.get(name)
        if table is None:
            return TargetState(hwms=self.marks(name), steps=self.steps(name))
        return replace(table.state(self.versions[name]), steps=self.steps(name))

    def publish(self, batch: StagedBatch, rows: Content | None) -> TargetState:
        """Apply a batch and its marks in one step. Raises as ``BatchWriter.write``."""
        name = str(batch.target)
        if batch.changes_name:
            return self._names(batch)
        if self.whole(name).cover(batch):
            return replace(self.state(name), covered=True)
        self._check_expected(batch)
        if batch.is_barrier:
            return self._inside(batch)
        table = self.tables.get(name)
        if table is not None and table.plan.dropped and rows is not None:
            self._move_aside(name)
            table = None
        kept = batch.positions if table is None else table.positions
        check_one_lane(batch, self.marks(name), kept)
        if table is None:
            fields = (LakeField(None, column.name, "string") for column in batch.schema.columns)
            table = Table(DdlTable((), batch.schema.keys), batch.mode, batch.positions)
            table.take_plan(replace(table.plan, fields=tuple(fields)))
            table.marks = self.marks(name)
            self.tables[name] = table
        if table.positions is not None and rows is not None:
            assert batch.positions == table.positions
            table.bury(rows)  # type: ignore[arg-type]
        table.doubt(batch)
        if rows is not None:
            assert batch.table is not None or batch.mode is Mode.APPEND
            table.take_source(batch)
            table.write(rows, batch.schema)
        table.marks = self._after(batch)
        self._changed(name)
        return self.state(name)

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

    def _check_expected(self, batch: StagedBatch) -> None:
        self.whole(str(batch.target)).check(batch)

    def _changed(self, *names: str) -> None:
        for name in names:
            self.versions[name] = self.versions.get(name, 0) + 1

    def _after(self, batch: StagedBatch, waits: bool = False) -> dict[TopicPartition, int]:
        """The marks after a batch. A name that is taken again is done when that has come."""
        name = str(batch.target)
        self.groups |= {(name, lane): batch.group for lane in batch.lanes}
        done = {lane: span.through for lane, span in batch.lanes.items()}
        if waits:
            done = {lane: place_of(batch) - 1 for lane in done}
        elif batch.amid and batch.step is not None:
            self.held.setdefault(name, {}).update(dict.fromkeys(batch.lanes, batch.step))
        return {**self.marks(name), **done}

    # --- statements

    def _inside(self, batch: StagedBatch) -> TargetState:
        name = str(batch.target)
        self._made_anew(batch)
        table = self.tables.get(name)
        if table is None:
            self.buried[name] = self._after(batch)
        else:
            table.take_source(batch)
            plan = _planned(batch, table)
            marks = self._after(batch)
            if plan.dropped is None:
                del self.tables[name]
                self.buried[name] = marks
            else:
                table.doubt(batch)
                table.take_plan(plan)
                table.marks = marks
        self._changed(name)
        return self.state(name)

    def _made_anew(self, batch: StagedBatch) -> None:
        """A statement about a table that was dropped before is about its successor."""
        name = str(batch.target)
        table = self.tables.get(name)
        if table is None or not table.plan.dropped:
            return
        drops = all(isinstance(step, DropTable) for steps in batch.ddl for step in steps)
        if batch.changes_name or not drops:
            self._check_expected(batch)
            self._move_aside(name)

    def _move_aside(self, name: str) -> None:
        """A kept table gets another name: the source has made its own anew."""
        self.buried[name] = self.tables[name].marks
        self._changed(name)
        self.tables[f"{name}__dropped_{self.versions[name]}"] = self.tables.pop(name)

    def _names(self, batch: StagedBatch) -> TargetState:
        name = str(batch.target)
        ((lane, _),) = batch.lanes.items()
        if self.whole(name).show_renaming(batch):
            return replace(self._settled(batch), covered=True)
        self._made_anew(batch)
        if batch.moves_to is not None and name in self.tables:
            self._move(batch, batch.moves_to)
        if batch.takes_from is None:
            if name in self.tables:
                raise SinkUnavailable("the table came back meanwhile")
            self._bury(batch)
            return self.state(name)
        if self.whole(name).of(lane) != place_of(batch) - 1:
            self._check_expected(batch)
        if name in self.tables:
            raise TargetRefused(f"{batch.takes_from} is renamed to it, and it is there already")
        self.freed[name] = place_text(batch)
        of = str(batch.takes_from)
        if not self.whole(of).are_past(batch):
            raise WaitsForName(f"waits until {of} has its name", batch.takes_from)
        self.buried[name] = self._after(batch)
        self._changed(name)
        return self.state(name)

    def _settled(self, batch: StagedBatch) -> TargetState:
        """The marks that came with a table's new name end before the message does."""
        name = str(batch.target)
        if not self.whole(name).cover(batch):
            self.tables[name].marks = self._after(batch)
            self._changed(name)
        return self.state(name)

    def _move(self, batch: StagedBatch, target: TargetName) -> None:
        name, to = str(batch.target), str(target)
        table = self.tables[name]
        self._check_expected(batch)
        ((lane, _),) = batch.lanes.items()
        if to in self.tables:
            if self.whole(to).are_past(batch):
                raise TargetRefused(f"it is renamed to {to}, which is there already")
            raise WaitsForName(f"waits until {to}, which is to be its name, is free", target)
        if self.freed.get(to) != place_text(batch):
            raise WaitsForName(f"waits until what {to} was before is written", target)
        table.take_source(batch)
        table.take_plan(_planned(batch, table))
        self.buried[name] = self._after(batch, waits=batch.takes_from is not None)
        self.tables[to] = self.tables.pop(name)
        table.marks = {**table.marks, lane: place_of(batch) - (batch.step is not None)}
        if batch.step is not None:
            self.held.setdefault(to, {})[lane] = batch.step
        self.groups[to, lane] = batch.group
        self._changed(name, to)

    def _bury(self, batch: StagedBatch) -> None:
        """There was no table to rename: who waits for it must be told all the same."""
        name = str(batch.target)
        if not self.whole(name).cover(batch):
            self._check_expected(batch)
            self.buried[name] = self._after(batch)
            self._changed(name)


def _planned(batch: StagedBatch, table: Table) -> DdlTable:
    plan = replace(table.plan, empty=not table.rows)
    return apply_ddl(plan, batch.ddl, table.mode, f"__dropped_{place_text(batch)}")
