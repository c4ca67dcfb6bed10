"""Damaged records of every format: what can't be read is refused, and nothing else happens.

Real records of other projects where they are at hand, and records built here. What is damaged is
looked at, explained, and decoded: alone, and in the midst of good ones, where all are read at once
at first and one by one when that fails.
"""

from __future__ import annotations

import re
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import Format, Packed, pack
from changes.model.model import BadMessage, BadRecord, FormatOptions, Kind, Mode
from tests.changes.formats.cases import NAMED
from tests.changes.formats.mutator import bad_place, mutants, read
from tests.changes.formats.own_records import OWN, known

pytestmark = pytest.mark.long

MUTANTS = 1_000
FEW = 6
AMONG = 300
LONGEST_S = 5.0
"""For one value: thousands of times what it takes, and far below a hang."""
MOST_BYTES = 32 << 20
"""Memory at most while reading them one after another: messages are below 10 kB."""

JSON = [name for name in FORMATS if not FORMATS[name].binary]


def made(name: str) -> Format:
    extra = NAMED
    if name == "maxwell-json":
        extra = {"encryption_key": "a" * 16}
    return FORMATS[name](FormatOptions(extra=extra))


def given(format_: Format, record: Packed) -> bytes:
    """As the format is given it."""
    if format_.keyed:
        return pack(*record)
    assert record.value is not None
    return record.value


def damaged(name: str, count: int, seed: int) -> list[Packed]:
    """Mutants, each with the key and headers of some record."""
    records = [record for record in known(name) if record.value]
    values = mutants([record.value or b"" for record in records], count, seed)
    turns = (records[n % len(records)] for n in range(count))
    return [Packed(r.key, value, r.headers) for r, value in zip(turns, values, strict=True)]


def rows_of_one_table(format_: Format, name: str) -> list[bytes]:
    """A few good records of rows, all of the table that comes first and good beside each other."""
    found = [given(format_, record) for record in known(name) if record.value is not None]
    heads = []
    for value in found:
        try:
            heads.append(format_.peek(value))
        except BadMessage:
            heads.append(None)
    first = next(head for head in heads if head is not None and head.kind is Kind.ROWS)
    good: list[bytes] = []
    for value, head in zip(found, heads, strict=True):
        if head == first and bad_place(format_, [*good, value], Mode.APPEND, None) is None:
            good.append(value)
        if len(good) == FEW:
            break
    return good


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_records(name: str) -> None:
    """Only BadMessage and BadRecord come out, in time, within a bound of memory."""
    format_ = made(name)
    seen: Counter[str] = Counter()
    tracemalloc.start()
    for record in damaged(name, MUTANTS, seed=6):
        begun = time.monotonic()
        seen[read(format_, given(format_, record))] += 1
        assert time.monotonic() - begun < LONGEST_S, record
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_BYTES
    assert {"rows", "refused"} <= seen.keys(), seen


def decoded(format_: Format, *calls: list[bytes]) -> tuple[int | None, list[dict[str, Any]]]:
    """What becomes of calls of one decoder: where the last one's bad record is, all its rows."""
    decoder = format_.table_decoder(Mode.APPEND, None)
    at, rows = 0, []
    for number, values in enumerate(calls, 1):
        try:
            changes = decoder.decode(0, range(at, at + len(values)), values)
        except BadRecord as bad:
            assert number == len(calls)
            return at + bad.index, []
        rows = [] if changes is None else changes.table.to_pylist()
        assert changes is None or changes.begins == rows[0]["_op"]
        at += len(values)
    return None, [{name: v for name, v in row.items() if v is not None} for row in rows]


@pytest.mark.parametrize("name", FORMATS)
def test_damage_among_good_ones(name: str) -> None:
    """It is found at its place, and read as it is when it comes by itself."""
    format_ = made(name)
    good = rows_of_one_table(format_, name)
    assert good
    seen: Counter[bool] = Counter()
    for record in damaged(name, AMONG, seed=7):
        value = given(format_, record)
        place, rows = decoded(format_, [*good, value, *good])
        alone, own = decoded(format_, good, [value])
        assert place in (None, len(good))
        assert place == alone
        assert [row for row in rows if row["_offset"] == len(good)] == own
        seen[place is None] += 1
    assert seen[True]
    assert seen[False]


@pytest.mark.parametrize("name", JSON)
def test_deep_nesting(name: str) -> None:
    """A document too deep to be read is a bad message, not a crash."""
    format_ = made(name)
    for deep in (b"[" * 100_000, b'{"a":' * 100_000, b'{"data":' * 100_000):
        with pytest.raises(BadMessage):
            format_.peek(given(format_, Packed(None, deep)))


def with_value(name: str, text: bytes) -> Packed:
    """A record of rows with a value in place of the first column's."""
    _, record = OWN[name][0]
    value = (record.value or b"").replace(b" ", b"")
    return Packed(None, value.replace(b'"id":"1"', b'"id":1').replace(b'"id":1', b'"id":' + text))


@pytest.mark.parametrize("name", JSON)
def test_deep_nesting_of_a_value(name: str) -> None:
    """Likewise inside of a row: refused when it is looked at, or when it is decoded."""
    format_ = made(name)
    value = given(format_, with_value(name, b"[" * 100_000 + b"]" * 100_000))
    assert len(value) > 200_000
    assert read(format_, value) == "refused"


@pytest.mark.parametrize("name", JSON)
def test_number_of_many_digits(name: str) -> None:
    """An integer longer than Python turns into one: refused, or digit by digit as it stands."""
    format_, digits = made(name), b"9" * 5_000
    value = given(format_, with_value(name, digits))
    assert digits in value
    place, rows = decoded(format_, [value])
    kept = [row["id"] for row in rows]
    assert (place, kept) in [(0, []), (None, [digits.decode()])]


_NINES = b"9" * 5_000
"""More digits than Python, or any library for JSON, makes a number of."""


def overlong(text: bytes | None) -> Iterator[bytes]:
    """The text with a number of thousands of digits in the place of each, and in its types."""
    types = [kind % _NINES for kind in (b"decimal(%b)", b"bit(%b)", b"float(%b)", b"time(%b)")]
    for found in re.finditer(rb"\d+", text or b""):
        yield found.string[: found.start()] + _NINES + found.string[found.end() :]
    for found in re.finditer(rb'(?<=")(int|int32|int64|bigint|string)(?=")', text or b""):
        for kind in types:
            yield found.string[: found.start()] + kind + found.string[found.end() :]


@pytest.mark.parametrize("name", JSON)
def test_overlong_numbers(name: str) -> None:
    """In values, types and places: nothing else comes out than of any bad record."""
    format_ = made(name)
    for _, record in OWN[name]:
        for key in overlong(record.key):
            read(format_, given(format_, record._replace(key=key)))
        for value in overlong(record.value):
            read(format_, given(format_, record._replace(value=value)))
