"""A sink of dicts: it publishes atomically and fences, as a real one does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from actors.ports import Fenced, StagedBatch, Straggler, TargetState
from changes.model import CHANGELOG_COLUMNS, HAS_PREFIX, OP, Mode
from offsets.position import NO_OFFSET, TopicPartition

Row = dict[str, Any]
"""A staged row, with the columns that say what it is."""


@dataclass
class FakeSink:
    """Targets as dicts, with marks; publishes atomically, fences like a real one."""

    tables: dict[str, dict[tuple[Any, ...], Row]] = field(default_factory=dict)
    logs: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    states: dict[str, TargetState] = field(default_factory=dict)
    groups: dict[tuple[str, TopicPartition], str] = field(default_factory=dict)
    """Who moved each lane's mark."""

    def state(self, target: str) -> TargetState:
        """As a reader of the target sees it."""
        return self.states.get(target, TargetState())

    def publish(self, batch: StagedBatch, rows: Sequence[Row] | None) -> TargetState:
        """Apply a batch and its marks in one step. Raises Fenced."""
        name = str(batch.target)
        held = self.state(name)
        marks = {source: held.hwms.get(source, NO_OFFSET) for source in batch.lanes}
        if held.hwms and all(marks[s] == span.through for s, span in batch.lanes.items()):
            return replace(held, covered=True)
        for source, span in batch.lanes.items():
            if marks[source] != span.after:
                own = self.groups.get((name, source)) == batch.group
                said = f"{name}: {source} is at {marks[source]}, not {span.after}"
                raise Straggler(said) if own else Fenced(said)
        if rows is not None and batch.mode is Mode.APPEND:
            marks_of = [column for column, _ in CHANGELOG_COLUMNS]
            entries = (tuple(row[column] for column in marks_of) for row in rows)
            self.logs.setdefault(name, []).extend(entries)
        elif rows is not None:
            self._apply(self.tables.setdefault(name, {}), rows, batch)
        hwms = {**held.hwms, **{s: span.through for s, span in batch.lanes.items()}}
        self.groups |= {(name, source): batch.group for source in batch.lanes}
        version = str(int(held.version or 0) + 1)
        state = self.states[name] = TargetState(batch.schema, batch.mode, hwms, version)
        return state

    def prepared(self, batch: StagedBatch, rows: Sequence[Row] | None) -> Callable[[], object]:
        """A write that is done but for its publish, which lands if main has not moved by then."""
        name = str(batch.target)
        version = self.state(name).version

        def publish() -> object:
            if self.state(name).version != version:
                return None
            with suppress(Fenced):
                return self.publish(batch, rows)

        return publish

    @staticmethod
    def _apply(stored: dict[tuple[Any, ...], Row], rows: Sequence[Row], batch: StagedBatch) -> None:
        for row in rows:
            key = tuple(row[name] for name in batch.schema.keys)
            if row[OP] == "D":
                stored.pop(key, None)
                continue
            given = {
                name: value
                for name, value in row.items()
                if not name.startswith("__binlogd") and row.get(HAS_PREFIX + name, True)
            }
            stored.setdefault(key, {}).update(given)
