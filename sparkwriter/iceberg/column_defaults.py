"""What a row shows in a column that its table did not have yet, where several are in one target.

A statement that adds a column gives it a default, which rows stored before show. A table that
comes to that statement later (another shard, another partition that lags behind) still brings rows
without the column: at the source they show the default, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from actors.contract.writes import StagedBatch
from changes.model.errors import TargetRefused
from changes.model.model import AddColumn, Mode
from changes.sql.spark.schema import LakeColumn, lake_column, spark_type
from changes.sql.spark.words import string_literal
from sparkwriter.iceberg.ddl import default_json
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.look import Seen


def fillings(seen: Seen, batch: StagedBatch) -> Mapping[str, str]:
    """The defaults of the target's columns as SQL, by their names in small letters; empty where
    the target is of one table that comes in order: its rows of later have all of its columns."""
    if not _shared(seen, batch):
        return {}
    return {
        name: f"CAST({_literal(value, type_)} AS {spark_type(type_)})"
        for name, (type_, value) in seen.table.defaults().items()
    }


def added_otherwise(seen: Seen, batch: StagedBatch) -> list[str]:
    """What the batch's statements add with another default than the target shows it with."""
    if not batch.ddl or not _shared(seen, batch) or seen.stored.mode is Mode.APPEND:
        return []
    types = {column.name.lower(): column.type for column in seen.stored.columns}
    shown = seen.table.defaults()
    found = []
    for step in (step for steps in batch.ddl for step in steps if isinstance(step, AddColumn)):
        name = step.column.name.lower()
        if name in types and _json(seen.table, step, types[name]) != _default(shown, name):
            found.append(
                f"ADD COLUMN {step.column.name} with another default than stored rows show "
                f"at offset {max(span.through for span in batch.lanes.values())}"
            )
    return found


def _shared(seen: Seen, batch: StagedBatch) -> bool:
    return batch.table is None or seen.positions is not None


def _default(shown: Mapping[str, tuple[str, object]], name: str) -> object:
    return shown[name][1] if name in shown else None


def _json(table: LakeTable, step: AddColumn, type_: str) -> object:
    """The statement's default as the table's metadata would have it; one that does not fit the
    stored type is none of its values."""
    if step.default is None:
        return None
    try:
        return default_json(table.jvm, step.default, LakeColumn(step.column.name, type_))
    except TargetRefused:
        return lake_column(step.column)


def _literal(value: object, type_: str) -> str:
    if type_ == "binary":
        return f"X'{value}'"
    return string_literal(value if isinstance(value, str) else json.dumps(value))
