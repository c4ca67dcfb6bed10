"""Deletion vectors: which rows of a data file are deleted, as Iceberg's format v3 keeps it. Pure.

A vector is a blob of type ``deletion-vector-v1`` in a Puffin file (both in Iceberg's Puffin spec):
a length, a magic number, the rows' positions as a 64-bit Roaring bitmap in its portable form, and
a checksum. A data file has one at most; a new one holds what the one before it held.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pyroaring import BitMap64

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
