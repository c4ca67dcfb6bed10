"""Reads the rows of many protobuf messages by a few calls of the parser.

Concatenated messages parse as one message: a repeated field has the values of all of them, and the
messages inside are merged, too. So a view in which only the innermost fields are repeated returns
them for a thousand messages as one list, without an object for each message around them. A mark
between two messages shows where one ends and the next begins. Where marks are missing a message is
damaged, and all are read one by one.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from changes.formats.engine.format import VALUE_AT

MARK = b"\xff" * 16
"""The end of a message in a list of bytes. It can't be parsed as a message itself."""
MARK_NUMBER = 1_000_003
"""The same in a list of numbers: no enumeration has it."""

MOST_MESSAGES = 4_000
"""Read at once. Fewer: the calls for each column cost more than the cells; more: the rows have left
the processor's cache when their columns are made."""
MOST_BYTES = 1 << 20
FEWEST = 12
FEWEST_BYTES = 1 << 13
"""Below this many messages of so many bytes one by one is quicker."""
_SOME = 250
"""Messages in a second attempt, where one of many is different. Fewer: fewer neighbours of the
different one are read singly, but the calls cost more than that."""
_GIVEN_UP = 16
"""Blocks without an attempt after one of which no part could be read at once."""


@dataclass(frozen=True, slots=True)
class Images:
    """Rows of one width, cell behind cell, with a mark behind each row.

    Columns are cut when they are used: of old images that is the key alone, and a list of
    protobuf's makes an object of each cell that is read.
    """

    cells: Sequence[bytes]
    width: int

    @classmethod
    def of(cls, cells: Sequence[bytes], count: int) -> Images | None:
        """None where these are no ``count`` rows of one width, or have no columns."""
        step, rest = divmod(len(cells), count)
        if rest or step < 2 or cells[step - 1 :: step] != [MARK] * count:
            return None
        return cls(cells, step - 1)

    def column(self, place: int) -> Sequence[bytes]:
        """All rows' cells of a column."""
        return self.cells[place :: self.width + 1]

    def first(self) -> Sequence[bytes]:
        """The first row's cells."""
        return self.cells[: self.width]


@dataclass(frozen=True, slots=True)
class FlatRows:
    """Rows that have the same number of columns, each cell still bytes.

    ``olds`` has, in the same places, the cells of updated rows' old images; all other rows and
    those without an old image have their own there. None: no row has one.
    """

    columns: Sequence[Sequence[bytes]]
    olds: Images | None
    ops: bytes
    records: Sequence[int]


def blocks_of(
    values: Sequence[bytes], most: int = MOST_MESSAGES
) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Messages to be read at once, with the place of the first."""
    ends = list(itertools.accumulate(map(len, values)))
    start = before = 0
    while start < len(values):
        last = min(len(ends), start + most)
        end = min(last, bisect.bisect_left(ends, before + MOST_BYTES, start, last) + 1)
        yield start, values[start:end]
        start, before = end, ends[end - 1]


def worth_it(values: Sequence[bytes]) -> bool:
    """Whether reading messages at once is quicker than one by one."""
    return len(values) >= FEWEST or sum(map(len, values)) >= FEWEST_BYTES + len(values) * VALUE_AT


_FEW_MOVES = 20
"""One row in so many may change its key: each cuts a block in two."""

Leftover = tuple[int, Sequence[bytes]]
"""Messages to be read singly, and the place of the first."""


class BulkBackoff:
    """Decides whether to try reading messages at once: not just after a block that was all unlike.

    One for each target, kept from call to call.
    """

    def __init__(self) -> None:
        self._rest = 0

    def left_over(
        self,
        values: Sequence[bytes],
        take: Callable[[Sequence[bytes], int], Iterator[Leftover] | None],
    ) -> Iterator[Leftover]:
        """Pass blocks to ``take``, with their places; yields, in order, what it could not read.

        ``take`` returns None where it read nothing, else the messages to be read in between.
        """
        for start, block in blocks_of(values):
            if self._rest or not worth_it(block):
                self._rest = max(self._rest - 1, 0)
                yield start, block
            elif (rest := take(block, start)) is not None:
                yield from rest
            else:
                yield from self._parts(block, start, take)

    def _parts(
        self,
        block: Sequence[bytes],
        start: int,
        take: Callable[[Sequence[bytes], int], Iterator[Leftover] | None],
    ) -> Iterator[Leftover]:
        self._rest = _GIVEN_UP
        for at in range(0, len(block), _SOME):
            part = block[at : at + _SOME]
            tried = len(part) < len(block) and worth_it(part)
            rest = take(part, start + at) if tried else None
            if rest is None:
                yield start + at, part
            else:
                self._rest = 0
                yield from rest


def joined(parse: Any, messages: Sequence[bytes], mark: bytes) -> Any:
    """All messages as one, a mark behind each; raises DecodeError."""
    return parse(mark.join(messages) + mark)


def single(flat: Sequence[Any], mark: object, count: int) -> list[Any] | None:
    """The values of ``count`` marked stretches where each has exactly one; else None."""
    if len(flat) != 2 * count or flat[1::2] != [mark] * count:
        return None
    found = list(flat[::2])
    return None if mark in found else found


def split_by_mark(flat: Sequence[bytes], count: int) -> tuple[list[bytes], Sequence[int]] | None:
    """All values without the marks, and the number of each one's marked stretch.

    None where marks are missing.
    """
    alone = single(flat, MARK, count)
    if alone is not None:
        return alone, range(count)
    found: list[bytes] = []
    numbers: list[int] = []
    number = 0
    for value in flat:
        if value == MARK:
            number += 1
        else:
            found.append(value)
            numbers.append(number)
    return (found, numbers) if number == count and flat[-1] == MARK else None


def least_of(times: Sequence[int], numbers: Sequence[int], count: int) -> list[int]:
    """Of each of ``count`` messages the least of its times, 0 where it has none. ``numbers``: the
    message of each time."""
    found: dict[int, int] = {}
    for number, time in zip(numbers, times, strict=True):
        found[number] = min(time, found.get(number, time))
    return [found.get(number, 0) for number in range(count)]


def flat_rows(
    before: Sequence[bytes], after: Sequence[bytes], ops: bytes, records: Sequence[int]
) -> FlatRows | None:
    """The rows of two lists of images, one of each for each row.

    None where the lists are uneven or empty. An inserted row is its image after, a deleted one its
    image before.
    """
    if not ops:
        return None
    count = len(ops)
    olds: Images | None = None
    if not ops.strip(b"I"):
        news = Images.of(list(after), count)
    elif not ops.strip(b"D"):
        news = Images.of(list(before), count)
    elif not ops.strip(b"U") and len(before) == len(after):
        news, olds = Images.of(list(after), count), Images.of(before, count)
    else:
        news, olds = _mixed(list(before), list(after), ops)
    if news is None or (olds is not None and olds.width != news.width):
        return None
    return FlatRows([news.column(place) for place in range(news.width)], olds, ops, records)


def _mixed(
    before: list[bytes], after: list[bytes], ops: bytes
) -> tuple[Images | None, Images | None]:
    """The rows' images, and their old ones. Raises ValueError where marks are missing."""
    news: list[bytes] = []
    olds: list[bytes] = []
    was_at = now_at = 0
    for op in ops:
        was_end = before.index(MARK, was_at) + 1
        now_end = after.index(MARK, now_at) + 1
        was, now = before[was_at:was_end], after[now_at:now_end]
        was_at, now_at = was_end, now_end
        if op == _DELETE:
            now = was
        news += now
        olds += was if op == _UPDATE and len(was) > 1 else now
    if (was_at, now_at) != (len(before), len(after)):
        return None, None
    return Images.of(news, len(ops)), Images.of(olds, len(ops))


_UPDATE, _DELETE = b"UD"


def moved_records(
    flat: FlatRows, names: Sequence[str], keys: Sequence[str]
) -> Sequence[int] | None:
    """The messages, in order, with an update that changes the key.

    None: the rows do not hold the whole key, or so many move that all are to be read singly.
    """
    if not set(keys).issubset(names):
        return None
    if flat.olds is None:
        return ()
    moved: set[int] = set()
    for key in keys:
        place = names.index(key)
        news, olds = flat.columns[place], flat.olds.column(place)
        if news != olds:
            pairs = zip(news, olds, flat.records, strict=True)
            moved.update(record for new, old, record in pairs if new != old)
    return sorted(moved) if len(moved) * _FEW_MOVES <= len(flat.ops) else None


def spans(records: Sequence[int], alone: Sequence[int]) -> Iterator[tuple[int, int, int | None]]:
    """Stretches of rows between messages that are read singly: begin, end, the message behind."""
    start = 0
    for record in alone:
        end = bisect.bisect_left(records, record, start)
        yield start, end, record
        start = bisect.bisect_right(records, record, end)
    yield start, len(records), None
