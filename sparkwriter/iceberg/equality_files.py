"""A batch as the two files of an equality write: its rows, and the keys that they replace. Pure:
Arrow and Parquet on local disk, no Spark, no catalog.

Readers drop stored rows of earlier writes whose key is in the file of keys. What a batch may hold
besides whole rows, or a target besides plain columns, is written by MERGE instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.contract.writes import StagedBatch
from actors.runtime.files import make_private_file
from changes.model.errors import TargetRefused
from changes.model.model import FROM, OP, Mode
from changes.routes.shaping.layout import Sort, Transform
from changes.sql.spark.ddl_plan import LakeField
from changes.sql.spark.schema import arrow_type
from sparkwriter.iceberg.partitions import MOST_PARTITIONS, Partition, Scattered, split

FIELD_ID = b"PARQUET:field_id"
"""Where Arrow keeps the id by which Iceberg finds a column in a file."""

ROWS_AT_ONCE = 65536
"""So many rows are in memory. Fewer: small row groups, which are slow to read. More: a batch that
grew while its target was away takes as much memory as it has rows."""


@dataclass(frozen=True, slots=True)
class EqualityPlan:
    """The target's columns in its order; ``keys``: those by which rows are replaced.

    Without keys nothing is replaced: the target is a changelog, or holds no row. ``parts``: what
    its partitions are made of; ``order``: that of its rows.
    """

    fields: tuple[LakeField, ...]
    keys: tuple[LakeField, ...]
    parts: tuple[Transform, ...] = ()
    order: tuple[Sort, ...] = ()


class Laid(NamedTuple):
    """A file that was written: how many rows it has. No file is written for none."""

    path: Path
    rows: int
    partition: Partition = ()


def merge_instead(
    batch: StagedBatch, fields: Sequence[LakeField], staged: Sequence[str], *, empty: bool
) -> str | None:
    """Why the batch must be merged, None where it need not. ``staged``: the file's columns."""
    if batch.mode is Mode.APPEND:
        return None
    if batch.partial or FROM in staged:
        return "rows lack columns that the stored ones have"
    given = {name.lower() for name in staged}
    lacking = [field.name for field in fields if field.name.lower() not in given]
    if lacking and not empty:
        return f"the changes do not carry {', '.join(lacking)}"
    keys = {key.lower() for key in batch.schema.keys}
    for field in fields:
        if field.name.lower() in keys and field.type in {"float", "double"}:
            return f"the key's part {field.name} is of type {field.type}"
    return None


def plan_equality(
    batch: StagedBatch,
    fields: Sequence[LakeField],
    parts: tuple[Transform, ...] = (),
    order: tuple[Sort, ...] = (),
    *,
    empty: bool,
) -> EqualityPlan:
    """What goes into the files. ``empty``: the target holds no row."""
    keys = {key.lower() for key in batch.schema.keys}
    replaces = batch.mode is Mode.UPSERT and not empty
    found = tuple(field for field in fields if replaces and field.name.lower() in keys)
    return EqualityPlan(tuple(fields), found, parts, order)


def keys_of(plan: EqualityPlan, staged: str) -> list[pa.ChunkedArray]:
    """The batch's keys, deletes included: a column for each part, as the table has it.

    Raises TargetRefused where one does not fit, and what Arrow and the disk raise.
    """
    with pq.ParquetFile(staged) as file:
        names = {name.lower(): name for name in file.schema_arrow.names}
        keys = file.read([names[key.name.lower()] for key in plan.keys])
    return [
        _cast(keys, names[key.name.lower()], pa.field(key.name, arrow_type(key.type)))
        for key in plan.keys
    ]


def lay_files(
    plan: EqualityPlan, staged: str, rows: Path, keys: Path, *, with_keys: bool = True
) -> tuple[list[Laid], Laid]:
    """Write the batch's rows to one file, or one for each partition, and its keys to the other, in
    bounded memory.

    Not ``with_keys``: no file of keys; the keys are checked nevertheless.

    Raises TargetRefused where a value does not fit its column or a key comes twice, Scattered
    where the rows are of too many partitions, and what Arrow and the disk raise.
    """
    with pq.ParquetFile(staged) as file:
        names = {name.lower(): name for name in file.schema_arrow.names}
        _check_once(file, [names[key.name.lower()] for key in plan.keys], plan)
        into_rows = _Partitions(rows, plan, names)
        into_keys = _Out(keys, plan.keys if with_keys else (), names)
        try:
            for chunk in file.iter_batches(ROWS_AT_ONCE):
                into_keys.add(chunk)
                into_rows.add(_living(chunk))
        finally:
            into_rows.close()
            into_keys.close()
    return into_rows.laid(), Laid(keys, into_keys.rows)


def _living(chunk: pa.RecordBatch) -> pa.RecordBatch:
    if OP not in chunk.schema.names:
        return chunk
    return chunk.filter(pc.equal(chunk.column(OP), "U"))


def _check_once(file: pq.ParquetFile, names: list[str], plan: EqualityPlan) -> None:
    """A key that came twice would be two rows: a MERGE refuses that, too."""
    if not names or file.metadata.num_rows < 2:
        return
    keys = file.read(names)
    if keys.group_by(names).aggregate([]).num_rows < keys.num_rows:
        said = ", ".join(key.name for key in plan.keys)
        raise TargetRefused(f"two rows of one batch have the same key ({said})")


class _Out:
    """A Parquet file with the columns of a table, made when its first row comes."""

    def __init__(self, path: Path, fields: Sequence[LakeField], names: dict[str, str]) -> None:
        self.rows = 0
        self.path = path
        self._fields = fields
        self._from = [names.get(field.name.lower()) for field in fields]
        self._schema = pa.schema(
            pa.field(f.name, arrow_type(f.type), metadata={FIELD_ID: str(f.id)}) for f in fields
        )
        self._file: pq.ParquetWriter | None = None

    def add(self, chunk: pa.RecordBatch) -> None:
        """Write the chunk's columns, each as the table has it."""
        if self._fields and chunk.num_rows:
            self.write(self.typed(chunk))

    def typed(self, chunk: pa.RecordBatch) -> pa.RecordBatch:
        """The chunk's columns, each as the table has it."""
        columns = [
            pa.nulls(chunk.num_rows, field.type) if name is None else _cast(chunk, name, field)
            for field, name in zip(self._schema, self._from, strict=True)
        ]
        return pa.record_batch(columns, schema=self._schema)

    def write(self, typed: pa.RecordBatch) -> None:
        """Write rows that are as the table has them."""
        if self._file is None:
            make_private_file(self.path)
            self._file = pq.ParquetWriter(
                self.path, self._schema, compression="zstd", store_decimal_as_integer=True
            )
        self._file.write_batch(typed)
        self.rows += typed.num_rows

    def close(self) -> None:
        """Write the footer."""
        if self._file is not None:
            self._file.close()


class _Partitions:
    """The files of a batch's rows: one, or one for each partition."""

    def __init__(self, path: Path, plan: EqualityPlan, names: dict[str, str]) -> None:
        self._path, self._plan, self._names = path, plan, names
        self._form = _Out(path, plan.fields, names)
        spelled = {field.name.lower(): field.name for field in plan.fields}
        self._parts = [p._replace(column=spelled[p.column.lower()]) for p in plan.parts]
        self._order = [
            (
                spelled[sort.column.lower()],
                "descending" if sort.descending else "ascending",
                "at_start",
            )
            for sort in plan.order
        ]
        self._files: dict[Partition, _Out] = {}

    def add(self, chunk: pa.RecordBatch) -> None:
        """Write each row of the chunk into the file of its partition."""
        if not chunk.num_rows:
            return
        typed = self._form.typed(chunk)
        if not self._parts:
            self._write((), typed)
            return
        for partition, rows in split(typed, self._parts):
            self._write(partition, rows)

    def _write(self, partition: Partition, rows: pa.RecordBatch) -> None:
        if partition not in self._files:
            if len(self._files) == MOST_PARTITIONS:
                raise Scattered(f"its rows are of more than {MOST_PARTITIONS} partitions")
            ending = f"-{len(self._files)}" if self._files else ""
            path = self._path.with_name(self._path.name + ending)
            self._files[partition] = _Out(path, self._plan.fields, self._names)
        if self._order:
            rows = rows.take(pc.sort_indices(rows, self._order))
        self._files[partition].write(rows)

    def laid(self) -> list[Laid]:
        """The files that were written."""
        return [Laid(out.path, out.rows, partition) for partition, out in self._files.items()]

    def close(self) -> None:
        """Write the footers."""
        for out in self._files.values():
            out.close()


def _cast(chunk: Any, name: str, field: pa.Field) -> Any:
    """A column of a table or a part of one, in the field's type."""
    try:
        return chunk.column(name).cast(field.type)
    except pa.ArrowInvalid as error:
        raise TargetRefused(f"column {field.name}: {error}") from error
