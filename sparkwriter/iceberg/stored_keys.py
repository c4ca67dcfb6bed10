"""Where in a data file the rows with a batch's keys are: its key columns are read, nothing else.

Pure: Arrow and Parquet, no Spark, no catalog.
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from changes.sql.spark.ddl_plan import LakeField
from changes.sql.spark.schema import arrow_type
from sparkwriter.iceberg.equality_files import FIELD_ID

ROWS_AT_ONCE = 1 << 20
"""So many rows are looked up at once: fewer, and the table of the batch's keys is built so often
that it costs as much as the lookups."""

BYTES_AT_ONCE = 32 << 20
"""Nor more than so many bytes of keys, where they are wide: each writer holds as much beside the
memory budget. A million whole numbers take 8 MB."""

_STEP = 1 << 14
"""Rows of text or bytes that are read together: by so many may the bytes be more, 50 MB with the
3 KB that a database's keys have at most. To look through four million keys of 18 characters takes
0.37 s so, 0.28 s with ROWS_AT_ONCE (CPU), and 0.43 s with half as many."""


class Unseekable(Exception):
    """The file's keys can't be read as the table has them: why, in a line."""


class KeySet:
    """The keys of a batch. ``columns`` are the table's key columns, in its types; each key once."""

    def __init__(self, columns: Sequence[pa.ChunkedArray]) -> None:
        self._values = [pc.unique(column) for column in columns]
        self._ranges = [_range(values) for values in self._values]
        # With several parts each pair (key so far, next part) that the batch has gets a number.
        self._pairs: list[pa.Array] = []
        codes = pc.index_in(columns[0], value_set=self._values[0])
        for part, column in enumerate(columns[1:], start=1):
            pairs = self._paired(codes, part, column)
            self._pairs.append(pc.unique(pairs))
            codes = pc.index_in(pairs, value_set=self._pairs[-1])

    def has(self, columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
        """For each row whether its key is one of the batch's; a null part equals null."""
        if not self._pairs:
            return pc.is_in(columns[0], value_set=self._values[0])
        codes = pc.index_in(columns[0], value_set=self._values[0])
        for part, column in enumerate(columns[1:], start=1):
            pairs = self._paired(codes, part, column)
            codes = pc.index_in(pairs, value_set=self._pairs[part - 1])
        return pc.is_valid(codes)

    def may_be_in(self, part: int, statistics: pq.Statistics | None) -> bool:
        """Whether a row group may hold a key, by the least and the most of one part of it.

        Asked of whole numbers alone: others are not kept whole, or ordered otherwise.
        """
        known = self._ranges[part]
        if known is None or statistics is None or not statistics.has_min_max:
            return True
        least, most = statistics.min, statistics.max
        if not isinstance(least, int) or not isinstance(most, int):
            return True
        return bool(least <= known[1] and known[0] <= most)

    def _paired(
        self, codes: pa.ChunkedArray, part: int, column: pa.ChunkedArray
    ) -> pa.ChunkedArray:
        """A number for each pair, null where the batch has no such key so far, or no such part."""
        values = self._values[part]
        others = pc.index_in(column, value_set=values)
        return pc.add(pc.multiply(codes.cast(pa.int64()), len(values)), others.cast(pa.int64()))


def positions_of(keys: KeySet, fields: Sequence[LakeField], file: pq.ParquetFile) -> BitMap64:
    """The places of the file's rows that have one of the keys; ``fields`` as the key set's columns.

    Raises Unseekable, and what Arrow raises.
    """
    found = BitMap64()
    names = _names(fields, file.schema_arrow)
    places = [file.schema_arrow.names.index(name) for name in names]
    first = 0
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        if all(
            keys.may_be_in(part, group.column(place).statistics)
            for part, place in enumerate(places)
        ):
            at = first
            for chunks in _enough(file, number, names):
                columns = [
                    _typed(pa.chunked_array([chunk.column(name) for chunk in chunks]), field)
                    for name, field in zip(names, fields, strict=True)
                ]
                found |= _numbers(pc.indices_nonzero(keys.has(columns)), at)
                at += len(columns[0])
        first += group.num_rows
    return found


def _enough(
    file: pq.ParquetFile, group: int, names: Sequence[str]
) -> Iterator[list[pa.RecordBatch]]:
    """A row group's columns, as many rows at a time as are worth a look and are not too large."""
    chunks: list[pa.RecordBatch] = []
    kinds = (file.schema_arrow.field(name).type for name in names)
    step = ROWS_AT_ONCE if all(map(_is_narrow, kinds)) else min(_STEP, ROWS_AT_ONCE)
    # Not on Arrow's threads: those are not known to the JVM that a file may be read by.
    for chunk in file.iter_batches(step, [group], names, use_threads=False):
        chunks.append(chunk)
        rows, size = sum(c.num_rows for c in chunks), sum(c.nbytes for c in chunks)
        if rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield chunks
            chunks = []
    if chunks:
        yield chunks


def _is_narrow(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def _names(fields: Sequence[LakeField], schema: pa.Schema) -> list[str]:
    """The file's names of the table's columns, which may have been renamed since: found by ids."""
    if any(pa.types.is_nested(field.type) for field in schema):
        raise Unseekable("a file has columns of nested types")
    names = {int((field.metadata or {}).get(FIELD_ID, -1)): field.name for field in schema}
    for field in fields:
        if field.id not in names:
            raise Unseekable(f"a file has no column of the id of {field.name}")
    return [names[field.id] for field in fields if field.id is not None]


def _typed(column: pa.ChunkedArray, field: LakeField) -> pa.ChunkedArray:
    """The column as the table has it: it may have been widened since the file was written."""
    try:
        return column.cast(arrow_type(field.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Unseekable(f"a file's {field.name} is no {field.type}: {error}") from error


def _numbers(places: pa.Array, after: int) -> BitMap64:
    if not len(places):
        return BitMap64()
    numbers = array("Q")
    whole = pc.add(places, pa.scalar(after, pa.uint64()))
    numbers.frombytes(whole.buffers()[1][: 8 * len(whole)])
    return BitMap64(numbers)


def _range(values: pa.Array) -> tuple[int, int] | None:
    if not pa.types.is_integer(values.type) or values.null_count:
        return None
    ends = pc.min_max(values).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])


# Deletion vectors: which rows of a data file are deleted, as Iceberg's format v3 keeps it. Pure.

_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"
_PUFFIN_MAGIC = b"PFA1"
_ROW_POSITION = 2147483645
"""The id of the column that a vector is about: Iceberg's for a row's place in its file."""
_OVERHEAD = 12


class PlacedVector(NamedTuple):
    """Where in a Puffin file the vector of a data file is, in bytes, and how many rows it deletes.

    ``data_file``: its location, as the table names it.
    """

    data_file: str
    offset: int
    length: int
    rows: int


def vector_of(blob: bytes) -> BitMap64:
    """The positions that a blob deletes. Raises ValueError where it is not a whole vector."""
    body = blob[4:-4]
    if len(blob) < _OVERHEAD or blob[:4] != struct.pack(">I", len(body)):
        raise ValueError("a deletion vector is cut short")
    if body[:4] != _VECTOR_MAGIC or blob[-4:] != struct.pack(">I", zlib.crc32(body)):
        raise ValueError("a deletion vector is damaged")
    return BitMap64.deserialize(body[4:])


def blob_of(positions: BitMap64) -> bytes:
    """The blob that deletes these positions."""
    positions.run_optimize()
    body = _VECTOR_MAGIC + positions.serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def write_vectors(path: Path, vectors: Mapping[str, BitMap64]) -> list[PlacedVector]:
    """Write a Puffin file with a vector for each data file. Raises OSError."""
    placed: list[PlacedVector] = []
    parts, at = [_PUFFIN_MAGIC], len(_PUFFIN_MAGIC)
    for data_file, positions in vectors.items():
        blob = blob_of(positions)
        placed.append(PlacedVector(data_file, at, len(blob), len(positions)))
        parts.append(blob)
        at += len(blob)
    said = json.dumps({"blobs": [_described(one) for one in placed]}).encode()
    tail = struct.pack("<II", len(said), 0)  # its length, and no flags: it is not compressed
    parts += [_PUFFIN_MAGIC, said, tail, _PUFFIN_MAGIC]
    path.write_bytes(b"".join(parts))
    return placed


def _described(placed: PlacedVector) -> dict[str, object]:
    return {
        "type": "deletion-vector-v1",
        "fields": [_ROW_POSITION],
        # Both are those of the commit that adds it.
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": placed.offset,
        "length": placed.length,
        "properties": {
            "referenced-data-file": placed.data_file,
            "cardinality": str(placed.rows),
        },
    }
