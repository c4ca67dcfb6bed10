"""A sequence of records in one piece of memory.

An object for each would cost more than its bytes to hold, to pass to another process and to free.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from mmap import mmap
from typing import overload


class Values(Sequence[bytes]):
    """A sequence of bytes like any other; a slice of it is a list. Never changed once made."""

    def __init__(self, data: bytes | mmap, sizes: array[int], begin: int = 0) -> None:
        """``data`` holds the records from ``begin`` on, without anything between them."""
        self.sizes = sizes
        self._data = data
        self._begin = begin

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Values:
        """Join records, unless they are joined already."""
        if isinstance(values, Values):
            return values
        return cls(b"".join(values), array("q", map(len, values)))

    @classmethod
    def joined(cls, parts: Iterable[Sequence[bytes]]) -> Values:
        """Join the records of several sequences, in this order."""
        each = [cls.of(part) for part in parts]
        if len(each) == 1:
            return each[0]
        sizes = array("q")
        for part in each:
            sizes += part.sizes
        return cls(b"".join(part.whole for part in each), sizes)

    @property
    def whole(self) -> memoryview:
        """All records, without a copy."""
        return memoryview(self._data)[self._begin : self._begin + sum(self.sizes)]

    @cached_property
    def _bounds(self) -> array[int]:
        """Where each record begins, and where the last ends; computed when first needed."""
        return array("q", accumulate(self.sizes, initial=self._begin))

    def stretch(self, start: int, end: int) -> memoryview:
        """Neighbouring records, without a copy; ``end`` is exclusive."""
        bounds = self._bounds
        return memoryview(self._data)[bounds[start] : bounds[end]]

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        places = range(len(self.sizes))[place]
        bounds, data = self._bounds, self._data
        if isinstance(places, int):
            return data[bounds[places] : bounds[places + 1]]
        return [data[bounds[at] : bounds[at + 1]] for at in places]

    def __iter__(self) -> Iterator[bytes]:
        data = self._data
        return (data[begin:end] for begin, end in pairwise(self._bounds))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"Values({list(self)})"
