"""Iceberg's bucket of a value: a 32-bit Murmur3 hash (x86, seed 0), as the table format defines it.
Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
