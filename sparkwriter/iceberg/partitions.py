"""Which partition of a table each row of a file belongs to, as Iceberg's transforms say. Pure.

A wrong value would hide rows from every reader that prunes by it, so the tests compare each with
that of Iceberg itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from changes.routes.shaping.layout import Transform

# Iceberg's bucket of a value: a 32-bit Murmur3 hash (x86, seed 0), as the table format defines it.
# Pure.

_C1, _C2, _ADD = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_MIX1, _MIX2 = 0x85EBCA6B, 0xC2B2AE35
_MASK = 0xFFFFFFFF


def buckets(values: pa.Array, count: int) -> pa.Array:
    """The bucket of each value, of ``count``; null of null."""
    kind = values.type
    if pa.types.is_integer(kind):
        hashes = _of_longs(values.cast(pa.int64()))
    elif pa.types.is_date(kind):
        hashes = _of_longs(values.cast(pa.int32()).cast(pa.int64()))
    elif pa.types.is_timestamp(kind):
        hashes = _of_longs(values.cast(pa.int64()))
    else:
        hashes = _of_each(values)
    positive = pc.bit_wise_and(hashes, _u32(0x7FFFFFFF)).cast(pa.int64())
    whole = pc.multiply(pc.divide(positive, count), count)
    return pc.subtract(positive, whole).cast(pa.int32())


def _of_longs(values: pa.Array) -> pa.Array:
    """Whole numbers as eight bytes, the lowest first; by kernels, whose products wrap."""
    low = pc.bit_wise_and(values, 0xFFFFFFFF).cast(pa.uint32())
    high = pc.bit_wise_and(pc.shift_right(values, 32), 0xFFFFFFFF).cast(pa.uint32())
    hashed = _mixed(_u32(0), low)
    hashed = pc.bit_wise_xor(_mixed(hashed, high), _u32(8))
    for shift, factor in ((16, _MIX1), (13, _MIX2)):
        hashed = pc.bit_wise_xor(hashed, pc.shift_right(hashed, _u32(shift)))
        hashed = pc.multiply(hashed, _u32(factor))
    return pc.bit_wise_xor(hashed, pc.shift_right(hashed, _u32(16)))


def _mixed(hashed: Any, block: pa.Array) -> pa.Array:
    block = pc.multiply(_turned(pc.multiply(block, _u32(_C1)), 15), _u32(_C2))
    turned = _turned(pc.bit_wise_xor(block, hashed), 13)
    return pc.add(pc.multiply(turned, _u32(5)), _u32(_ADD))


def _turned(values: pa.Array, by: int) -> pa.Array:
    left = pc.shift_left(values, _u32(by))
    return pc.bit_wise_or(left, pc.shift_right(values, _u32(32 - by)))


def _u32(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint32())


def _of_each(values: pa.Array) -> pa.Array:
    """Texts, bytes and decimals: each different one once."""
    encoded = values.dictionary_encode()
    of = _bytes_of(values.type)
    hashes = [murmur3(of(value)) for value in encoded.dictionary.to_pylist()]
    return pa.array(hashes, pa.uint32()).take(encoded.indices)


def _bytes_of(kind: pa.DataType) -> Callable[[Any], bytes]:
    if pa.types.is_decimal(kind):
        return lambda value: _shortest(unscaled(value, kind.scale))
    if pa.types.is_string(kind):
        return lambda value: value.encode()
    return bytes


def unscaled(value: Decimal, scale: int) -> int:
    """A decimal's digits, with so many of them behind the point."""
    with localcontext(prec=80):
        return int(value.scaleb(scale))


def _shortest(digits: int) -> bytes:
    """A whole number in as few bytes as hold it and its sign, the highest first."""
    bits = (digits if digits >= 0 else ~digits).bit_length()
    return digits.to_bytes(bits // 8 + 1, "big", signed=True)


def murmur3(data: bytes) -> int:
    """The hash of some bytes."""
    hashed, whole = 0, len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        hashed ^= _scrambled(block)
        hashed = (((hashed << 13 | hashed >> 19) & _MASK) * 5 + _ADD) & _MASK
    if rest := data[whole:]:
        hashed ^= _scrambled(int.from_bytes(rest, "little"))
    hashed ^= len(data)
    hashed = ((hashed ^ hashed >> 16) * _MIX1) & _MASK
    hashed = ((hashed ^ hashed >> 13) * _MIX2) & _MASK
    return hashed ^ hashed >> 16


def _scrambled(block: int) -> int:
    block = (block * _C1) & _MASK
    return (((block << 15 | block >> 17) & _MASK) * _C2) & _MASK


MOST_PARTITIONS = 100
"""Rows of one batch that belong to more of them are added by a job: each is a file that is copied,
read for its metrics and described, one after the other."""

_EPOCH_YEAR = 1970


class Scattered(Exception):
    """The batch's rows belong to more partitions than we write files for."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How a table is partitioned. ``spec``: as Iceberg's JSON, ``spec_id`` its number there.

    ``parts``: each transform, of the column as the table has it.
    """

    spec_id: int
    spec: dict[str, Any]
    parts: tuple[Transform, ...]


Partition = tuple[Any, ...]
"""The values of one partition, as Iceberg's JSON writes them."""


def split(rows: pa.RecordBatch, parts: Sequence[Transform]) -> Iterator[tuple[Partition, Any]]:
    """The rows of each partition. ``rows`` have the table's types and names."""
    if not rows.num_rows:
        return
    columns = [transformed(part, rows.column(part.column)) for part in parts]
    codes = _codes(columns)
    order = pc.sort_indices(codes)
    counts = pc.value_counts(codes.take(order))
    at = 0
    for count in counts.field("counts").to_pylist():
        mine = order.slice(at, count)
        first = mine[0].as_py()
        values = tuple(said(column[first]) for column in columns)
        yield values, rows if count == rows.num_rows else rows.take(mine)
        at += count


def _codes(columns: Sequence[pa.Array]) -> pa.Array:
    """A number for each different row of the columns."""
    codes = _numbered(columns[0])
    for column in columns[1:]:
        others = _numbered(column)
        most = pc.max(others).as_py() + 1
        codes = _numbered(pc.add(pc.multiply(codes, most), others))
    return codes


def _numbered(column: pa.Array) -> pa.Array:
    return column.dictionary_encode(null_encoding="encode").indices.cast(pa.int64())


def transformed(part: Transform, values: pa.Array) -> pa.Array:
    """The partition's value of each value; null of null."""
    if part.kind == "identity":
        return values
    if part.kind == "bucket":
        return buckets(values, part.width)
    if part.kind == "truncate":
        return _truncated(values, part.width)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us"))  # of UTC, without its name
    if part.kind == "hour":
        return _whole_hours(values)
    if part.kind == "day":
        return _floored(values, "day").cast(pa.date32())
    years = pc.subtract(pc.year(values), _EPOCH_YEAR)
    if part.kind == "year":
        return years.cast(pa.int32())
    months = pc.add(pc.multiply(years, 12), pc.subtract(pc.month(values), 1))
    return months.cast(pa.int32())


def _floored(values: pa.Array, unit: str) -> pa.Array:
    return values if pa.types.is_date(values.type) else pc.floor_temporal(values, unit=unit)


def _whole_hours(values: pa.Array) -> pa.Array:
    micros = _floored(values, "hour").cast(pa.int64())
    return pc.divide(micros, timedelta(hours=1) // timedelta(microseconds=1)).cast(pa.int32())


def _truncated(values: pa.Array, width: int) -> pa.Array:
    kind = values.type
    if pa.types.is_string(kind):
        return pc.utf8_slice_codeunits(values, 0, width)
    if pa.types.is_binary(kind):
        return pc.binary_slice(values, 0, width)
    if pa.types.is_decimal(kind):
        encoded = values.dictionary_encode()
        cut = [_cut(value, width, kind) for value in encoded.dictionary.to_pylist()]
        return pa.array(cut, kind).take(encoded.indices)
    by = pa.scalar(width, kind)
    rest = pc.subtract(values, pc.multiply(pc.divide(values, by), by))
    rest = pc.if_else(pc.less(rest, pa.scalar(0, kind)), pc.add(rest, by), rest)
    return pc.subtract(values, rest)  # wraps below the least number, as Iceberg's does


def _cut(value: Decimal, width: int, kind: pa.DataType) -> Decimal:
    digits = unscaled(value, kind.scale)
    with localcontext(prec=80):
        return Decimal(digits - digits % width).scaleb(-kind.scale)


def said(value: pa.Scalar) -> Any:
    """A value as Iceberg's JSON writes it."""
    plain, kind = value.as_py(), value.type
    if plain is None or isinstance(plain, bool | int | str):
        return plain
    if isinstance(plain, bytes):
        return plain.hex().upper()
    if isinstance(plain, Decimal):
        return f"{plain:f}" if kind.scale >= 0 else str(plain)
    if pa.types.is_timestamp(kind):
        text = plain.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text if kind.tz is None else f"{text}+00:00"
    return plain.isoformat()
