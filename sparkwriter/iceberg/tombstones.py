"""The table beside a target that remembers which keys were deleted, and where in the source."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import structlog
from pyspark.sql import SparkSession

from actors.contract.ports import TargetRefused
from changes.model import Column, Mode, TableSchema, TargetName
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.upkeep import UpkeepSettings
from sparkwriter.session.java_failures import JavaFailure, reason
from sparkwriter.sql.guard import AT, OF, SUFFIX, TOMBSTONE_COLUMNS, Guard
from sparkwriter.sql.plan import dotted
from sparkwriter.sql.schema import CreateTable, StoredTable, arrow_type, plan_schema

MARK = "binlogd.tombstones"
"""Table property and snapshot summary entry by which a table of tombstones is known."""

_SMALL_FILES = 16
"""So many small files are put into one: each write with a delete leaves one more. Fewer: they are
written again and again. More: each write reads them all."""

log: Any = structlog.get_logger(__name__)


def tombstones_of(target: TargetName) -> TargetName:
    """The name of a target's table of tombstones."""
    return TargetName(target.sink, target.namespace, target.table + SUFFIX)


class Tombstones:
    """The tombstones of one writer's targets; called on its thread. Raises one of JavaFailure."""

    def __init__(self, spark: SparkSession, catalog: LakeCatalog) -> None:
        self._spark = spark
        self._catalog = catalog

    def guard(self, target: TargetName, of: LakeTable) -> Guard:
        """How a write is guarded. Ask after its branch was made: then main is what was read."""
        name = tombstones_of(target)
        found = None if self._load(name) is None else dotted(*name)
        return Guard(of.uuid(), found)

    def prepare(self, target: TargetName, stored: StoredTable, properties: dict[str, str]) -> None:
        """Make the table, or widen its key as the target's was widened."""
        keys = {key.lower() for key in stored.keys}
        columns = [column for column in stored.columns if column.name.lower() in keys]
        name = tombstones_of(target)
        table = self._load(name)
        if table is None:
            marked = {**properties, MARK: "true"}
            self._catalog.create(name, (*columns, *TOMBSTONE_COLUMNS), marked, (MARK, "true"))
            return
        wanted = TableSchema(
            tuple(Column(column.name, arrow_type(column.type)) for column in columns), stored.keys
        )
        held = StoredTable(table.columns(), Mode.UPSERT, stored.keys)
        steps = plan_schema(wanted, Mode.UPSERT, held)
        assert not any(isinstance(step, CreateTable) for step in steps)
        if steps:
            table.change_schema(steps)

    def tidy(self, target: TargetName, of: LakeTable, settings: UpkeepSettings, now: float) -> None:
        """Remove what is older than any lane lags, and put small files together.

        Nothing here may fail a write: what goes wrong is logged and tried again later.
        """
        name = tombstones_of(target)
        try:
            table = self._load(name)
            if table is None:
                return
            oldest = datetime.fromtimestamp(now - settings.expire_tombstones_older_than_s, UTC)
            self._spark.sql(
                f"DELETE FROM {dotted(*name)} WHERE {OF} <> '{of.uuid()}'"
                f" OR {AT} < TIMESTAMP '{oldest:%Y-%m-%d %H:%M:%S}+00:00'"
            )
            jvm: Any = self._spark.sparkContext._jvm
            actions = jvm.org.apache.iceberg.spark.actions.SparkActions
            table.refresh()
            rewrite = actions.get(self._spark._jsparkSession).rewriteDataFiles(table.table)
            rewrite.option("min-input-files", str(_SMALL_FILES)).execute()
            table.refresh()
            cutoff_ms = int((now - settings.expire_snapshots_older_than_s) * 1000)
            table.expire(cutoff_ms, settings.retain_last)
        except JavaFailure as error:
            log.warning("tombstones_not_tidied", target=str(target), reason=reason(error))

    def _load(self, name: TargetName) -> LakeTable | None:
        table = self._catalog.load(name)
        if table is not None and table.property(MARK) is None:
            raise TargetRefused(f"{name} exists and is no table of tombstones")
        return table
