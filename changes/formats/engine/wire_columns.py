"""Cuts columns out of cells that are still protobuf's bytes, many cells in one call.

Most cells of a column differ only by their value: the same bytes before it, its length, the value,
the same bytes after it. One parsed cell defines such a likeness, and all cells that have it are cut
at once, after a comparison of all their other bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, UnsetType

from changes.formats.engine.assemble import Text

_MOST_LIKENESSES = 8
"""Likenesses in one column: null, empty, updated or not, and variants of a type. Each costs as much
as the column; with more of them the cells are parsed one by one."""

_ONE_BYTE = 128
"""Values below this many bytes have a length of one byte on the wire; behind it stand two."""
_LONGEST = (1 << 14) - 1
"""Bytes of a value whose length takes two bytes."""
_TO_THE_END = (1 << 31) - 1
"""Arrow's own default overflows where it reckons the room that it needs."""
_NEVER = b"\x00\x00\x00"
"""No length has three bytes here."""


_starts_with = pc.get_function("starts_with")
_ends_with = pc.get_function("ends_with")


class Odd(Exception):
    """A cell of none of the plain kinds: its column has to be read cell by cell."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The bytes before the length of a value, and after the value."""

    head: bytes
    tail: bytes

    def cut_all(self, cells: pa.Array) -> pa.Array | None:
        """The values, None where not every cell has this frame, or one's value is long.

        It is called once for every column of every block, so each step is the cheapest of its
        kind: of few rows a call into Arrow costs as much as a hundred cells.
        """
        start, end = len(self.head), len(self.tail)
        if _starts_with.call([cells], pc.MatchSubstringOptions(self.head)).false_count:
            return None
        if end and _ends_with.call([cells], pc.MatchSubstringOptions(self.tail)).false_count:
            return None
        beside = pa.scalar(start + end + 1, pa.int32())
        try:
            sizes = pc.subtract(pc.binary_length(cells), beside).cast(pa.uint8())
        except pa.ArrowInvalid:
            return None
        declared = pc.binary_slice(cells, start, start + 1).buffers()[2][: len(cells)].to_pybytes()
        # Lengths of more than one byte are no ASCII.
        if declared != sizes.buffers()[1][: len(cells)].to_pybytes() or not declared.isascii():
            return None
        return _between(cells, start + 1, end)

    def cut(self, cells: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The values, valid only for the cells that the second array marks."""
        start, end = len(self.head), len(self.tail)
        bare = pc.binary_replace_slice(cells, start, -end or _TO_THE_END, b"")
        rest = pc.subtract(pc.binary_length(cells), start + end)
        rest = pc.min_element_wise(pc.max_element_wise(rest, 0), _LONGEST + 3)
        long = pc.greater(rest, _ONE_BYTE)
        one, two = (pc.binary_slice(cells, start, start + length) for length in (1, 2))
        sizes = pc.if_else(long, two, one)
        values = pc.if_else(long, _between(cells, start + 2, end), _between(cells, start + 1, end))
        alike = pc.equal(bare, self.head + self.tail)
        return values, pc.and_(alike, pc.equal(sizes, _lengths().take(rest)))


def _between(cells: pa.Array, start: int, end: int) -> pa.Array:
    return pc.binary_slice(cells, start, -end or _TO_THE_END)


@functools.cache
def _lengths() -> pa.Array:
    """By the bytes of length and value together: the length's bytes."""
    one = [bytes((size,)) for size in range(_ONE_BYTE)]
    two = [bytes((size & 0x7F | 0x80, size >> 7)) for size in range(_ONE_BYTE, _LONGEST + 1)]
    # No value takes 129 bytes with its length: 127 have one byte, 128 have two.
    return pa.array([_NEVER, *one, _NEVER, *two, _NEVER], pa.binary())


Likeness = Frame | str | UnsetType | None
"""What a cell shows of others like it: a frame around their value, or, of cells that are equal to
the last byte, the text itself; None is null, UNSET is one that the row does not hold."""


def cut_column(cells: Sequence[bytes], look: Callable[[bytes], Likeness]) -> Text | None:
    """A column's values, in UTF-8; None where the cells are too little alike, or no such text.

    ``look`` may raise Odd, which is passed on. At least one cell.
    """
    raws = pa.array(cells, pa.binary())
    likeness = look(cells[0])
    values = likeness.cut_all(raws) if isinstance(likeness, Frame) else None
    if values is not None:
        return _text(values, None)
    values, done, absent = pa.nulls(len(raws), pa.binary()), pa.array([False] * len(raws)), None
    place = 0
    for _ in range(_MOST_LIKENESSES):
        likeness = look(cells[place])
        if isinstance(likeness, Frame):
            some, fits = likeness.cut(raws)
        else:
            text = likeness.encode() if isinstance(likeness, str) else None
            some, fits = pa.scalar(text, pa.binary()), pc.equal(raws, cells[place])
        if likeness is UNSET:
            absent = fits
        values, done = pc.if_else(fits, some, values), pc.or_(done, fits)
        left = pc.index(done, False).as_py()
        if left < 0:
            return _text(values, absent)
        if left == place:
            return None
        place = left
    return None


def _text(values: pa.Array, absent: pa.Array | None) -> Text | None:
    try:
        # Casting would check each value again, which takes longer.
        text = pa.Array.from_buffers(pa.string(), len(values), values.buffers())
        text.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return Text(text, None if absent is None else pc.invert(absent))


def frame_around(cell: bytes, number: int) -> Frame:
    """What stands around the one field of that number, of bytes or text, in a message.

    Raises Odd where it is not there, or twice, or the message is damaged.
    """
    found: Frame | None = None
    at, end = 0, len(cell)
    while at < end:
        tag, at = _varint(cell, at)
        begin = at
        kind = tag & 7
        if kind == 0:
            _, at = _varint(cell, at)
        elif kind == 2:
            size, at = _varint(cell, at)
            at += size
        else:
            raise Odd
        if tag == (number << 3 | 2):
            if found is not None:
                raise Odd
            found = Frame(cell[:begin], cell[at:])
    if found is None or at != end:
        raise Odd
    return found


def _varint(cell: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in cell[at : at + 10]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Odd
