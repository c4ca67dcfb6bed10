"""What a ledger keeps of a target's table: columns, key, mode, and what is known of its source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from actors.contract.writes import StagedBatch
from changes.model.model import Mode, TableName, TargetName
from changes.sql.spark.ddl_plan import LakeField
from changes.sql.spark.schema import AddLakeColumn, LakeColumn, SchemaStep, StoredTable, WidenColumn
from offsets.fence import Marks
from sparkwriter.kit.store import Absent, Existing, Facts, TableChange


@dataclass(frozen=True, slots=True)
class Made:
    """A table as the ledger describes it. The fields' ids only tell old ones from new."""

    fields: tuple[LakeField, ...]
    mode: Mode
    keys: tuple[str, ...]
    kept: tuple[str, ...] = ()
    differs: str | None = None
    source: TableName | None = None
    dropped: str | None = None
    rebuilt: str | None = None
    """The name under which it was filled, before it took its present one."""
    shape: str = ""
    labels: str = ""
    key_partitioning: str = ""
    """See ``Existing.key_partitioning``."""
    identity: str = ""
    """Which table of the name it is, where the database tells (``sparkwriter.sql.identity``)."""

    def text(self) -> str:
        """As the ledger keeps it."""
        return json.dumps(
            {
                "fields": [[field.name, field.type] for field in self.fields],
                "mode": self.mode.value,
                "keys": self.keys,
                "kept": self.kept,
                "differs": self.differs,
                "shape": self.shape,
                "labels": self.labels,
                "source": self.source,
                "dropped": self.dropped,
                "rebuilt": self.rebuilt,
                "identity": self.identity,
                "key_partitioning": self.key_partitioning,
            },
            ensure_ascii=False,
        )

    @classmethod
    def parse(cls, text: str) -> Made:
        """Read back what ``text`` wrote."""
        said: dict[str, Any] = json.loads(text)
        source = said["source"]
        return cls(
            tuple(LakeField(at, name, type_) for at, (name, type_) in enumerate(said["fields"])),
            Mode(said["mode"]),
            tuple(said["keys"]),
            tuple(said["kept"]),
            said["differs"],
            None if source is None else TableName(*source),
            said["dropped"],
            said["rebuilt"],
            said.get("shape", ""),
            said.get("labels", ""),
            said.get("key_partitioning", ""),
            said.get("identity", ""),
        )


Row = Existing[Made]
"""One look at a target whose table is there."""


def row_of(target: TargetName, made: Made, marks: Marks, version: str) -> Row:
    """A target with a table, as the kit's loop takes it."""
    columns = tuple(LakeColumn(field.name, field.type) for field in made.fields)
    return Existing(
        target,
        made,
        StoredTable(columns, made.mode, made.keys),
        marks,
        version,
        dropped=made.dropped,
        differs=made.differs,
        shape=made.shape,
        labels=made.labels,
        key_partitioning=made.key_partitioning,
        source=made.source,
    )


def entry_of(target: TargetName, version: object, marks: str, made: str | None) -> Row | Absent:
    """A ledger's row, its texts as they are stored."""
    if made is None:
        return Absent(Marks.parse(marks))
    return row_of(target, Made.parse(made), Marks.parse(marks), str(version))


def new_table(batch: StagedBatch, columns: Sequence[LakeColumn], facts: Facts) -> Made:
    """The table that a batch needs."""
    fields = tuple(LakeField(None, column.name, column.type) for column in columns)
    keys = batch.schema.keys if batch.mode is Mode.UPSERT else ()
    return with_facts(Made(fields, batch.mode, keys), facts)


def with_columns(made: Made, steps: Sequence[SchemaStep], differs: str | None) -> Made:
    """The table once columns are added and widened."""
    fields = list(made.fields)
    for step in steps:
        match step:
            case AddLakeColumn(column):
                fields.append(LakeField(None, column.name, column.type))
            case WidenColumn(column):
                fields = [
                    replace(field, type=column.type) if field.name == column.name else field
                    for field in fields
                ]
    return replace(made, fields=tuple(fields), differs=differs)


def with_facts(made: Made, facts: Facts) -> Made:
    """The table once a step's facts are published."""
    labels = facts.labels or made.labels
    source, shape = facts.source, facts.shape
    spread = facts.key_partitioning or made.key_partitioning
    return replace(
        made, differs=facts.differs, source=source, shape=shape, labels=labels,
        key_partitioning=spread,
    )  # fmt: skip


def changed(made: Made, change: TableChange) -> Made:
    """The table after statements."""
    after = change.after
    after_it = replace(
        made,
        fields=after.fields,
        keys=after.keys,
        kept=tuple(sorted(after.kept)),
        dropped=change.dropped or made.dropped,
    )
    return with_facts(after_it, change.facts)


# What one step does to tables and to the ledger, as values.


@dataclass(frozen=True, slots=True)
class Make:
    """A new table, empty."""

    target: TargetName
    made: Made


@dataclass(frozen=True, slots=True)
class Remake:
    """A table gets other columns. A field's id is its place in ``before``, None is a new one's."""

    target: TargetName
    before: Made
    after: Made
    emptied: bool = False

    @property
    def is_same(self) -> bool:
        """Whether no column changes."""
        old = [(at, field.name, field.type) for at, field in enumerate(self.before.fields)]
        return [(field.id, field.name, field.type) for field in self.after.fields] == old


@dataclass(frozen=True, slots=True)
class Rename:
    """A table gets another name. ``made`` is the table."""

    old: TargetName
    new: TargetName
    made: Made

    @property
    def is_exchange(self) -> bool:
        """Whether a table that was filled under another name takes the one of the table before."""
        return self.made.rebuilt == str(self.old)


@dataclass(frozen=True, slots=True)
class Drop:
    """A table goes away."""

    target: TargetName


@dataclass(frozen=True, slots=True)
class WriteRows:
    """A batch's rows. Its file is there."""

    seen: Row
    batch: StagedBatch


@dataclass(frozen=True, slots=True)
class TakeAbove:
    """Of a changelog, the rows above lowered marks go."""

    target: TargetName
    before: Marks
    after: Marks


@dataclass(frozen=True, slots=True)
class TakeOver:
    """A recreated table gets rights and comments of the table whose name it takes."""

    new: TargetName
    old: TargetName


Operation = Make | Remake | Rename | Drop | WriteRows | TakeAbove | TakeOver


def is_statement(operation: Operation) -> bool:
    """Whether a statement about a table is needed. Not for rows."""
    return not (isinstance(operation, Remake) and operation.is_same)


@dataclass(frozen=True, slots=True)
class Shows:
    """The target shows these marks, and a table or none."""

    target: TargetName
    marks: Marks
    made: Made | None


@dataclass(frozen=True, slots=True)
class Forgets:
    """The target shows nothing any more."""

    target: TargetName


@dataclass(frozen=True, slots=True)
class Frees:
    """Which renaming may take the target's name."""

    target: TargetName
    renaming: str


Entry = Shows | Forgets | Frees
