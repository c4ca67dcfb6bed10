"""Writing by deletion vector: the stored rows of a batch's keys are found by us, without a job.

A job that looks them up costs a second of planning and compiling before it reads the first key.
Here the key columns of the files that may hold one are read and compared, and the places that were
found go into one file of deletion vectors; that, the batch's rows and the marks are one commit.
Files of which no row is left are taken out of the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from actors.contract.writes import StagedBatch
from actors.runtime.files import make_private_file
from sparkwriter.iceberg.direct import Update
from sparkwriter.iceberg.equality import laid_files
from sparkwriter.iceberg.equality_files import EqualityPlan, keys_of
from sparkwriter.iceberg.files import TableFiles
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import Seen
from sparkwriter.iceberg.partitions import Partition
from sparkwriter.iceberg.stored_keys import (
    KeySet,
    Unseekable,
    positions_of,
    vector_of,
    write_vectors,
)
from sparkwriter.session.java_api import Java, JavaNames, reason

_ORDERED = frozenset({"int", "long", "string"})
"""Types whose values Python and Iceberg order and write alike."""

MOST_FILES = 200
"""More files than that are opened sooner by the tasks of a job than one after the other."""


@dataclass(frozen=True, slots=True)
class CandidateFile:
    """A data file that may hold rows of the batch's keys."""

    task: Java
    location: str
    bytes: int
    rows: int
    deletes: tuple[dict[str, Any], ...]
    """What a reader applies to it, as Iceberg's JSON."""
    partition: Partition = ()


class _Found(NamedTuple):
    """What becomes of a data file: all rows that are deleted of it, by a vector or with it."""

    file: CandidateFile
    gone: BitMap64
    former: dict[str, Any] | None
    """The vector that it had, as Iceberg's JSON."""


class VectorWrites:
    """The writes of one writer by deletion vectors; called on its thread.

    Raises one of JavaFailure, TargetRefused, OSError, ArrowException.
    """

    def __init__(self, jvm: Java, files: TableFiles) -> None:
        self._jvm: Java = JavaNames(jvm)
        self._files = files

    def candidates(self, seen: Seen, batch: StagedBatch) -> list[CandidateFile] | None:
        """The files that may hold rows of the batch's keys, None where they are not ours to read:
        too many, of a format without vectors, or of a partitioning that is gone."""
        if int(seen.table.metadata.formatVersion()) < 3:
            return None
        types = {column.name.lower(): column.type for column in seen.stored.columns}
        bounds = [b for b in batch.bounds if types.get(b.column.lower()) in _ORDERED]
        tasks = seen.table.tasks(seen.main, bounds, MOST_FILES)
        if tasks is None:
            return None
        found = [self._candidate(seen.table, task) for task in tasks]
        return None if None in found else [file for file in found if file is not None]

    def _candidate(self, table: LakeTable, task: Java) -> CandidateFile | None:
        """What a task reads, None where that is of a partitioning which the table had once: what
        deletes rows of it would have to be of the same."""
        said = table.said(task)
        file = said["data-file"]
        if file["spec-id"] != table.layout.spec_id:
            return None
        return CandidateFile(
            task,
            file["file-path"],
            file["file-size-in-bytes"],
            file["record-count"],
            tuple(said.get("delete-files", ())),
            tuple(file.get("partition", ())),
        )

    def update(
        self, seen: Seen, plan: EqualityPlan, path: str, stamp: str, files: Iterable[CandidateFile]
    ) -> Update:
        """The batch's files in the table's storage, as an update that is yet to be published.

        Raises Unseekable where a file's keys can't be read, Scattered where its rows are of too
        many partitions: nothing was written then.
        """
        table = seen.table.table
        laid = laid_files(plan, path, with_keys=False)
        with laid as (rows, _), self._files.together(seen.table) as places:
            keys = KeySet(keys_of(plan, path))
            found = [one for file in files if (one := self._found(seen.table, plan, keys, file))]
            if not rows and not found:
                return Update(table.newFastAppend().set(HWM, stamp))
            delta = table.newRowDelta().validateFromSnapshot(seen.main).set(HWM, stamp)
            self._delete(seen.table, delta, found, Path(f"{path}.puffin"))
            for file in self._files.rows(seen.table, rows):
                delta.addRows(file)
            return Update(delta, tuple(places))

    def _found(
        self, table: LakeTable, plan: EqualityPlan, keys: KeySet, file: CandidateFile
    ) -> _Found | None:
        try:
            with self._files.open(table, file.location, file.bytes) as source:
                # Nor on Arrow's threads: those are not known to the JVM.
                parquet = pq.ParquetFile(source, pre_buffer=False)
                here = positions_of(keys, plan.keys, parquet)
            if not here:
                return None
            before, former = self._before(table, file)
        except (OSError, ValueError, pa.ArrowException) as error:
            # What it is, the engine whose files they are will tell.
            raise Unseekable(f"{file.location}: {reason(error)}") from error
        gone = before | here
        return None if gone == before else _Found(file, gone, former)

    def _before(
        self, table: LakeTable, file: CandidateFile
    ) -> tuple[BitMap64, dict[str, Any] | None]:
        """The rows that the file's vector deletes, and the vector."""
        for delete in file.deletes:
            if delete["content"] == "equality-deletes":
                continue
            if delete["file-format"] != "puffin":
                raise Unseekable("a file has deletions from before the table's format was 3")
            place, size = delete["file-path"], delete["file-size-in-bytes"]
            with self._files.open(table, place, size) as source:
                source.seek(delete["content-offset"])
                blob = source.read(delete["content-size-in-bytes"])
            return vector_of(blob), delete
        return BitMap64(), None

    def _delete(self, table: LakeTable, delta: Java, found: list[_Found], local: Path) -> None:
        """Have the update delete what was found."""
        former = [one.former for one in found if one.former is not None]
        for vector in self._files.deletes(table, former) if former else ():
            delta.removeDeletes(vector)
        for one in found:
            if len(one.gone) == one.file.rows:
                delta.removeRows(one.file.task.file())
        left = {one.file.location: one.gone for one in found if len(one.gone) < one.file.rows}
        if not left:
            return
        try:
            make_private_file(local)
            placed = write_vectors(local, left)
            partitions = {one.file.location: one.file.partition for one in found}
            vectors = self._files.vectors(table, local, placed, partitions)
        finally:
            local.unlink(missing_ok=True)
        for vector in vectors:
            delta.addDeletes(vector)
