"""A table that was read again from its log takes the name of the old one.

The catalog renames one table at a time, so this is two renamings; what the names show tells which
step is next, so that it may break off and be repeated anywhere. Only between the two is there no
table of that name, for some milliseconds. The new table carries its former name as a property:
that tells a swap that is over from one that never began.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import structlog
from pyspark.sql import SparkSession

from actors.contract.ports import SwapTooEarly
from actors.contract.writes import Swap, TargetState
from changes.model.errors import TargetRefused
from changes.model.model import Column, Mode, TableSchema, TargetName
from changes.sql.spark.guards import AT, OF, SUFFIX, TOMBSTONE_COLUMNS, Guard
from changes.sql.spark.schema import CreateTable, StoredTable, arrow_type, plan_schema
from changes.sql.spark.words import dotted
from offsets.fence import Marks, of_streams
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import MODE, NOT_OURS, Seen, look
from sparkwriter.iceberg.marks import nearest_mark
from sparkwriter.iceberg.publish import MAIN, change_table, restamp
from sparkwriter.iceberg.section import MaintenanceSection
from sparkwriter.kit.store import DROP_BY_HAND, nothing_rebuilt
from sparkwriter.session.java_api import JavaFailure, java_class, reason

# The table beside a target that remembers which keys were deleted, and where in the source.

MARK = "binlogd.tombstones"
"""Table property and snapshot summary entry by which a table of tombstones is known."""

_SMALL_FILES = 16
"""So many small files are put into one: each write with a delete leaves one more. Fewer: they are
written again and again. More: each write reads them all."""

log: Any = structlog.get_logger(__name__)


def tombstones_of(target: TargetName) -> TargetName:
    """The name of a target's table of tombstones."""
    return TargetName(target.sink, target.namespace, target.table + SUFFIX)


class NameTombstones:
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

    def tidy(
        self, target: TargetName, of: LakeTable, settings: MaintenanceSection, now: float
    ) -> None:
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


REBUILT = "binlogd.rebuilt"
"""Table property: the name under which the table was filled, before it took its present one."""


def swap_tables(catalog: LakeCatalog, swap: Swap, new_branch: Callable[[], str]) -> TargetState:
    """Do what is left of a swap. See ``actors.contract.ports.Swaps``."""
    old, new = catalog.load(swap.old), look(catalog, swap.new)
    if isinstance(new, Seen):
        if old is not None:
            new = _with_marks(catalog, new, swap, _checked(catalog, swap, old), new_branch)
        _remember(new, swap.new)
        _move_tombstones(catalog, swap)
        _exchange(catalog, swap, had_old=old is not None)
    elif old is None or old.property(REBUILT) != str(swap.new):
        raise TargetRefused(nothing_rebuilt(swap))
    if not swap.keep_old:
        _remove_aside(catalog, swap.aside)
    return look(catalog, swap.old).state


def _exchange(catalog: LakeCatalog, swap: Swap, *, had_old: bool) -> None:
    """Two renamings. Where the second one fails the old table gets its name back, if it can."""
    if had_old:
        _rename(catalog, swap.old, swap.aside)
    try:
        _rename(catalog, swap.new, swap.old)
    except (TargetRefused, *JavaFailure):
        # The reply alone may be lost: then the new table has the name, and nothing is taken back.
        if had_old and catalog.load(swap.new) is not None and catalog.load(swap.old) is None:
            _rename(catalog, swap.aside, swap.old)
        raise


def _remove_aside(catalog: LakeCatalog, aside: TargetName) -> None:
    """The exchange is made, and can't be taken back: what stays of the old table is named."""
    try:
        remove_table(catalog, aside)
    except JavaFailure as error:
        log.error("table_left", table=str(aside), reason=str(error), command=DROP_BY_HAND)


def remove_table(catalog: LakeCatalog, target: TargetName) -> None:
    """Remove a table of ours and its files, with its tombstones; what is gone is gone."""
    for name in (tombstones_of(target), target):
        catalog.remove(name)


def _checked(catalog: LakeCatalog, swap: Swap, old: LakeTable) -> Marks:
    """The old table's marks, none of which may be beyond what the new one holds."""
    if old.property(MODE) is None:
        raise TargetRefused(NOT_OURS)
    if catalog.load(swap.aside) is not None:
        raise TargetRefused(f"{swap.aside} is in the way: somebody made {swap.old} meanwhile")
    main = old.head(MAIN)
    mark = None if main is None else nearest_mark(old, main)
    marks = Marks() if mark is None else Marks.parse(mark.text)
    held = of_streams(marks.offsets)
    if any(at >= swap.frontiers.get(lane, 0) for lane, at in held.items()):
        raise SwapTooEarly(held)
    return marks


def _with_marks(
    catalog: LakeCatalog,
    new: Seen,
    swap: Swap,
    old: Marks,
    new_branch: Callable[[], str],
) -> Seen:
    """Have the new table's marks nowhere below the old one's.

    They are, where the last messages of a lane had no row: what a target shows must never go back,
    or a daemon that remembers more takes it for rolled back.
    """
    marks = new.marks.lifted(old)
    if marks.offsets == new.marks.offsets:
        return new
    restamp(new.table, new_branch(), new.main, (HWM, marks.text()))
    again = look(catalog, swap.new)
    assert isinstance(again, Seen)
    return again


def _remember(new: Seen, name: TargetName) -> None:
    """Before the names change: afterwards it is unknown."""

    def done() -> bool:
        return new.table.property(REBUILT) == str(name)

    change_table(
        new.table, new.main, lambda builder: builder.setProperties({REBUILT: str(name)}), done
    )


def _move_tombstones(catalog: LakeCatalog, swap: Swap) -> None:
    """They say which table they are of, so it does no harm that they come before it."""
    old, new = tombstones_of(swap.old), tombstones_of(swap.new)
    if catalog.load(new) is None:
        return
    if catalog.load(old) is not None:
        _rename(catalog, old, tombstones_of(swap.aside))
    _rename(catalog, new, old)


def _rename(catalog: LakeCatalog, old: TargetName, new: TargetName) -> None:
    try:
        catalog.rename(old, new)
    except JavaFailure as error:
        if java_class(error).endswith("UnsupportedOperationException"):
            raise TargetRefused("the catalog can't rename tables") from error
        raise
