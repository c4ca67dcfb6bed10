"""Writing by equality delete: two files and one commit through the session's Iceberg API, no job.

Spark SQL has no statement for it. The cost does not depend on the table's size; readers pay, until
the deletes are compacted away (``iceberg_compact``).
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import structlog

from actors.contract.writes import StagedBatch
from changes.model.model import TargetName
from sparkwriter.iceberg.direct import Update
from sparkwriter.iceberg.equality_files import (
    EqualityPlan,
    Laid,
    lay_files,
    merge_instead,
    plan_equality,
)
from sparkwriter.iceberg.files import TableFiles
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.layout import UNPARTITIONED
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import Seen
from sparkwriter.iceberg.section import Write, write_of

log: Any = structlog.get_logger(__name__)


class EqualityWrites:
    """The equality writes of one writer; called on its thread.

    Raises one of JavaFailure, TargetRefused, OSError, ArrowException.
    """

    def __init__(self, files: TableFiles) -> None:
        self._files = files
        self._told: set[tuple[TargetName, str]] = set()

    def plan(self, seen: Seen, batch: StagedBatch, path: str) -> EqualityPlan | None:
        """How the batch is to be written so; None where it is not configured, or impossible.

        Where it can't, the log says why, once for each reason and target.
        """
        if write_of(dict(batch.options)) is not Write.EQUALITY:
            return None
        fields, empty = seen.table.fields(), is_empty(seen)
        why = special(seen) or _without_first(seen.table)
        why = why or merge_instead(batch, fields, pq.read_schema(path).names, empty=empty)
        if why is None:
            return plan_files(seen, batch, empty=empty)
        if (batch.target, why) not in self._told:
            self._told.add((batch.target, why))
            log.info("merged_instead", target=str(batch.target), reason=why)
        return None

    def update(
        self, table: LakeTable, plan: EqualityPlan, path: str, stamp: str, *, deletes: bool = True
    ) -> Update:
        """The batch's files in the table's storage, as an update that is yet to be published.

        Without ``deletes`` its rows alone: the stored rows of its keys are gone already.
        """
        laid = laid_files(plan, path, with_keys=deletes)
        with laid as (rows, keys), self._files.together(table) as places:
            if not rows and not keys.rows:
                return Update(table.table.newFastAppend().set(HWM, stamp))
            delta = table.table.newRowDelta().set(HWM, stamp)
            if keys.rows:
                ids = [key.id for key in plan.keys if key.id is not None]
                delta.addDeletes(self._files.keys(table, keys, ids))
            for file in self._files.rows(table, rows):
                delta.addRows(file)
            return Update(delta, tuple(places))


@contextmanager
def laid_files(
    plan: EqualityPlan, path: str, *, with_keys: bool
) -> Iterator[tuple[list[Laid], Laid]]:
    """``lay_files`` beside the staged file, gone afterwards."""
    rows, keys = (Path(f"{path}.{what}") for what in ("rows", "keys"))
    try:
        yield lay_files(plan, path, rows, keys, with_keys=with_keys)
    finally:
        of_partitions = rows.parent.glob(f"{glob.escape(rows.name)}-*") if plan.parts else ()
        for file in (rows, keys, *of_partitions):
            file.unlink(missing_ok=True)


def plan_files(seen: Seen, batch: StagedBatch, *, empty: bool) -> EqualityPlan:
    """``plan_equality`` for the table as it is laid out."""
    layout = seen.table.layout
    return plan_equality(
        batch, seen.table.fields(), layout.parts or (), layout.order or (), empty=empty
    )


def _without_first(table: LakeTable) -> str | None:
    """Why keys can't be deleted in all partitions: the partitioning that is none is gone."""
    if table.layout.spec_id == UNPARTITIONED or table.metadata.spec(UNPARTITIONED) is not None:
        return None
    return "somebody removed the table's first partitioning"


def special(seen: Seen) -> str | None:
    """Why the target can't take a file that Iceberg's own writer did not make."""
    if seen.positions is not None:
        return "the target keeps source positions"
    if (unfit := seen.table.layout.unfit) is not None:
        return unfit
    if seen.table.property("encryption.key-id") is not None:
        return "the table is encrypted"
    if (seen.table.property("write.format.default") or "parquet").lower() != "parquet":
        return "the table's files are not Parquet"
    return None


def is_empty(seen: Seen) -> bool:
    """Whether the target holds no row: by its manifests, which are what readers go by.

    The summary alone says for sure that it is not so: other tools may write what they like there.
    """
    table = seen.table
    if table.summary(seen.main, "total-data-files") != "0":
        return False
    manifests = table.metadata.snapshot(seen.main).dataManifests(table.operations.io())
    each = (manifests.get(at) for at in range(manifests.size()))
    return not any(one.hasAddedFiles() or one.hasExistingFiles() for one in each)
