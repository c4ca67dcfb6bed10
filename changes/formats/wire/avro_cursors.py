"""Cursors into many Avro values, which lie behind each other in one buffer: one for each value.

What comes next is read of all of them at once, by Arrow's kernels. Cursors only move on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

_PADDING = 4096
"""Zero bytes behind the values. A cursor goes there where there is nothing to be read: nothing
but zeros is a value of almost any type, and what is not ends the block."""
_MOST_BITS = 63
BITS_OF_INT = 32

_AT, BYTE, _NUMBER = pa.int64(), pa.uint8(), pa.uint64()
_ONE = pa.scalar(1, _AT)
_MORE = 128
"""From this on a byte of a number is not its last."""
_LOW, _HIGH, _NEUTRAL = (pa.scalar(number, BYTE) for number in (127, _MORE, 1))
_SHIFTS = {bits: pa.scalar(bits, _NUMBER) for bits in range(7, 64, 7)}
_SIGN, _NO_SIGN = pa.scalar(1, _NUMBER), pa.scalar(0, _NUMBER)


class Uncertain(Exception):
    """Some value is damaged, or not known to be whole."""


class Cursors:
    """The values of a block, and where each of them is read on."""

    def __init__(self, values: Sequence[bytes], begin: int) -> None:
        self.data = b"".join([*values, bytes(_PADDING)])
        self._bytes = pa.Array.from_buffers(BYTE, len(self.data), [None, pa.py_buffer(self.data)])
        sizes = pa.array(list(map(len, values)), _AT)
        self.ends = pc.cumulative_sum(sizes)
        self.at = pc.add(pc.subtract(self.ends, sizes), pa.scalar(begin, _AT))
        self._nowhere = pa.scalar(len(self.data) - _PADDING, _AT)
        self._gone: list[tuple[pa.Array, pa.Array]] = []

    @contextmanager
    def without(self, gone: pa.Array) -> Iterator[None]:
        """Read something of the other values alone: meanwhile these cursors are where there are
        only zeros."""
        self._gone.append((gone, self.at))
        self.at = pc.if_else(gone, self._nowhere, self.at)
        yield
        _, behind = self._gone.pop()
        self.at = pc.if_else(gone, behind, self.at)

    def byte(self) -> pa.Array:
        """The next byte of each."""
        found = pc.take(self._bytes, self.at)
        self.at = pc.add(self.at, _ONE)
        return found

    def number(self, bits: int = 64) -> pa.Array:
        """The next number of each, before its sign is taken out of the last bit."""
        byte = self.byte()
        least, most = range_of(byte)
        if most < _MORE:
            return byte.cast(_NUMBER)
        found, shift = pc.bit_wise_and(byte, _LOW).cast(_NUMBER), 7
        more = None if least >= _MORE else pc.greater_equal(byte, _HIGH)
        while most >= _MORE:  # ``more`` is None while all numbers go on
            certain(shift <= _MOST_BITS)
            byte = pc.take(self._bytes, self.at)
            if more is None:
                self.at = pc.add(self.at, _ONE)
            else:
                self.at = pc.add(self.at, more.cast(BYTE).cast(_AT))
                byte = pc.if_else(more, byte, _NEUTRAL)
            least, most = range_of(byte)
            # The last byte of a number is not zero, and has no more bits than it may.
            certain(least > 0 and (shift < _MOST_BITS or most == 1))
            part = pc.shift_left(pc.bit_wise_and(byte, _LOW).cast(_NUMBER), _SHIFTS[shift])
            if more is not None:
                part = pc.if_else(more, part, _NO_SIGN)
            found = pc.bit_wise_or(found, part)
            if least < _MORE <= most:
                more = pc.greater_equal(byte, _HIGH)
            shift += 7
        if bits == BITS_OF_INT:
            certain(not any_of(pc.greater(found, pa.scalar(2**BITS_OF_INT - 1, _NUMBER))))
        return found

    def signed(self, bits: int = 64) -> pa.Array:
        """The next number of each, with its sign."""
        found = self.number(bits)
        half = pc.shift_right(found, _SIGN).cast(_AT)
        return pc.bit_wise_xor(half, pc.negate(pc.bit_wise_and(found, _SIGN).cast(_AT)))

    def not_negative(self) -> pa.Array:
        """The next number of each, which is a length or a label."""
        found = self.number()
        certain(not any_of(pc.not_equal(pc.bit_wise_and(found, _SIGN), _NO_SIGN)))
        return pc.shift_right(found, _SIGN).cast(_AT)

    def octets(self) -> pa.Array:
        """The next bytes of each, behind their length; of what is not read, none."""
        size = self.not_negative()
        begin = self.at
        self.at = end = pc.add_checked(begin, size)
        for gone, behind in reversed(self._gone):
            begin, end = pc.if_else(gone, behind, begin), pc.if_else(gone, behind, end)
        # Begins and ends are in the order of the buffer, so they divide it into these bytes and
        # what is between them.
        count = len(begin)
        turns, evens = _turns(count)
        divided = pc.take(pa.concat_arrays([begin, end]), turns)
        certain(not any_of(pc.less(divided[1:], divided[:-1])))
        certain(divided[-1].as_py() <= len(self.data))
        parts = pa.Array.from_buffers(
            pa.large_binary(), 2 * count - 1,
            [None, divided.buffers()[1], pa.py_buffer(self.data)],
        )  # fmt: skip
        return pc.take(parts, evens).cast(pa.binary())


@lru_cache(maxsize=64)
def _turns(count: int) -> tuple[pa.Array, pa.Array]:
    """The places of two columns' values in turns, and every second number."""
    turns = [at for pair in zip(range(count), range(count, 2 * count), strict=True) for at in pair]
    return pa.array(turns, _AT), pa.array(range(0, 2 * count, 2), _AT)


def range_of(numbers: pa.Array) -> tuple[int, int]:
    """The least and the most of some numbers."""
    found = pc.min_max(numbers)
    return found["min"].as_py(), found["max"].as_py()


def any_of(flags: pa.Array) -> bool:
    """Whether one of the flags is set."""
    return bool(pc.any(flags).as_py())


def all_of(flags: pa.Array) -> bool:
    """Whether each is."""
    return bool(pc.all(flags).as_py())


def certain(holds: bool) -> None:
    """Raise Uncertain where it does not hold."""
    if not holds:
        raise Uncertain
