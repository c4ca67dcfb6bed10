"""Deletion vectors: what is written is what others read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap64

from sparkwriter.iceberg.stored_keys import blob_of, vector_of, write_vectors

POSITIONS = st.frozensets(st.integers(0, 200_000) | st.integers(2**31, 2**33), min_size=1)


@given(positions=POSITIONS, run=st.integers(0, 70_000))
def test_a_vector_comes_back(positions: frozenset[int], run: int) -> None:
    """Single places, whole runs, and places beyond 32 bits."""
    wanted = BitMap64(positions | frozenset(range(run)))
    assert vector_of(blob_of(wanted)) == wanted


@pytest.mark.parametrize("at", [0, 4, 9, -1])
def test_a_damaged_vector_is_refused(at: int) -> None:
    """A length, a magic number, a position or a checksum that is another one."""
    blob = bytearray(blob_of(BitMap64([1, 5])))
    blob[at] ^= 1
    with pytest.raises(ValueError, match="deletion vector"):
        vector_of(bytes(blob))


@pytest.mark.parametrize("length", [0, 7, 20])
def test_a_vector_that_is_cut_is_refused(length: int) -> None:
    """However little is left of it."""
    with pytest.raises(ValueError, match="cut short"):
        vector_of(blob_of(BitMap64([1, 5]))[:length])


def test_others_read_the_file(tmp_path: Path) -> None:
    """pyiceberg finds the vector of each data file, and we each at its place."""
    path = tmp_path / "some.puffin"
    vectors = {"a.parquet": BitMap64([0, 7, 70_000]), "b ü.parquet": BitMap64(range(100))}
    placed = write_vectors(path, {name: one.copy() for name, one in vectors.items()})
    content = path.read_bytes()
    read = deletion_vectors_from_puffin_file(PuffinFile(content))
    assert {one.referenced_data_file: one.to_vector().to_pylist() for one in read} == {
        name: list(positions) for name, positions in vectors.items()
    }
    assert [(one.data_file, one.rows) for one in placed] == [("a.parquet", 3), ("b ü.parquet", 100)]
    for one in placed:
        blob = content[one.offset : one.offset + one.length]
        assert vector_of(blob) == vectors[one.data_file]
