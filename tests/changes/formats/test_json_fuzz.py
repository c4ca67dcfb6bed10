"""Damaged messages: what can't be read is refused, whatever it is, and nothing else happens."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from changes.formats.base import pack
from tests.changes import conformance
from tests.changes.formats import samples
from tests.changes.formats.json_messages import made
from tests.changes.formats.mutator import bad_place, mutants, read

MUTANTS = 2_000
MOST_BYTES = 32 << 20
"""Memory at most while reading them one after another: messages are below 1 kB."""

FILES = {
    "maxwell-json": ("flink/maxwell-data.txt", "maxwell/json/*.json"),
    "ogg-json": ("flink/ogg-data.txt",),
}


def sample_lines(name: str) -> list[bytes]:
    paths: list[Path] = [
        path for pattern in FILES[name] for path in sorted(conformance.folder().glob(pattern))
    ]
    return [line for path in paths for line in samples.lines(path)]


@pytest.mark.parametrize("name", FILES)
def test_damaged_messages(name: str) -> None:
    """Only BadMessage and BadRecord come out, within a bound of memory."""
    format_ = made(name, encryption_key="a" * 16) if name == "maxwell-json" else made(name)
    tracemalloc.start()
    for value in mutants(sample_lines(name), MUTANTS, seed=6):
        read(format_, pack(None, value) if format_.keyed else value)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_BYTES


@pytest.mark.parametrize("name", FILES)
def test_damage_among_good_ones(name: str) -> None:
    """In a call of many the damaged one is found at its place, or was none."""
    format_ = made(name)
    good = sample_lines(name)[:8]
    for value in mutants(good, MUTANTS // 10, seed=7):
        values = [*good, value, *good]
        if format_.keyed:
            values = [pack(None, each) for each in values]
        assert bad_place(format_, values) in (None, len(good))


@pytest.mark.parametrize("name", FILES)
def test_deep_nesting(name: str) -> None:
    """A document too deep to be read is a bad message, not a crash."""
    line = sample_lines(name)[0]
    deep = line.replace(b'"scooter"', b"[" * 100_000)
    assert deep != line
    read(made(name), pack(None, deep) if made(name).keyed else deep)


@pytest.mark.parametrize("name", FILES)
def test_number_of_many_digits(name: str) -> None:
    """An integer longer than Python turns into one is refused, not cut off."""
    line = sample_lines(name)[0]
    long = line.replace(b"101", b"9" * 5_000)
    read(made(name), pack(None, long) if made(name).keyed else long)
