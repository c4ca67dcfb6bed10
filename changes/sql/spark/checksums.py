"""Checksums over canonical texts, in Spark's SQL. Pure. ``databases.base.checksums`` has the same
in the words of databases; both must give the same numbers for the same values.

A row's text joins a field for each column. A field is a text with its length before it, or, where
the column's type allows but few signs, with a comma behind it; null is ``n,``. So two rows have one
text only if they are equal: nulls, empty texts, blanks at the end and swapped columns all differ.
Its hash is SHA-256; of that the first 64 bits are added up, which needs no order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from changes.sql.spark.words import string_literal

HASH_DIGITS = 16
"""Hexadecimal digits of a row's hash that count: 64 bits."""

CELLS = 2048
"""Cells of a grid. A row's cell takes one division, and its interval one look into an array of so
many numbers, which is in the query's text. A search among bounds took three times as long as all
the rest (measured)."""

_LARGEST = (1 << 63) - 1


class TextColumn(NamedTuple):
    """A column's canonical text as SQL. ``free``: its text may hold any sign."""

    text: str
    free: bool


class Interval(NamedTuple):
    """Rows with low < key <= high, the key being one whole number; None is open."""

    low: int | None = None
    high: int | None = None


class Grid(NamedTuple):
    """Cells of one width between two numbers: the bounds that intervals may have. Numbers up to
    ``low`` are in the cell 0, those above the last edge in the cell behind the others."""

    low: int
    width: int

    def edge(self, cell: int) -> int:
        """Where a cell ends; it includes that."""
        return self.low + cell * self.width

    def cell(self, number: int) -> int:
        """The cell of a number."""
        if number <= self.low:
            return 0
        return min(CELLS + 1, (number - self.low - 1) // self.width + 1)

    @classmethod
    def between(cls, low: int, high: int) -> Grid:
        """From the first number to the last. Numbers too far below are left to the cell 0: 64 bits
        hold each distance."""
        low = max(low, high - _LARGEST + CELLS)
        width = max(1, -(-(high - low) // CELLS))
        return cls(min(low, _LARGEST - CELLS * width), width)


def row_text(columns: Sequence[TextColumn]) -> str:
    """The SQL of a row's text."""
    return f"concat({', '.join(map(_field, columns))})"


def row_hash(columns: Sequence[TextColumn]) -> str:
    """The SQL of a row's hash, 64 hexadecimal digits."""
    return f"sha2(CAST({row_text(columns)} AS BINARY), 256)"


class Lake(NamedTuple):
    """A stored table as its checksums see it. ``source`` is what stands behind FROM, ``number`` the
    key as BIGINT where rows are told apart by that, in intervals."""

    source: str
    columns: tuple[TextColumn, ...]
    keys: tuple[TextColumn, ...]
    number: str | None = None
    grid: Grid | None = None


def sums(lake: Lake, intervals: Sequence[Interval], digits: int) -> str:
    """Rows and sums by interval and by the first ``digits`` of the key's hash.

    The columns: the interval's place, the digits, rows, and two sums: of the low and of the high 32
    bits of each hash. None overflows below 2^31 rows.
    """
    number = f"CAST(conv(substr(h, 1, {HASH_DIGITS}), 16, -10) AS BIGINT)"
    placed = _placed(lake, intervals, f"{row_hash(lake.columns)} AS h, {_prefix(lake, digits)}")
    return (
        "SELECT slot, p, count(*), sum(v & 4294967295), sum(shiftrightunsigned(v, 32))"
        f" FROM (SELECT slot, p, {number} AS v FROM ({placed})) GROUP BY slot, p"
    )


def hashes(
    lake: Lake, intervals: Sequence[Interval], digits: int, groups: Collection[tuple[int, str]]
) -> str:
    """The keys' texts and the hash of each row in some groups of ``sums``."""
    keys = [f"{column.text} AS k{place}" for place, column in enumerate(lake.keys)]
    names = ", ".join(f"k{place}" for place in range(len(keys)))
    row = f"{row_hash(lake.columns)} AS h, {_prefix(lake, digits)}"
    placed = _placed(lake, intervals, ", ".join([*keys, row]))
    wanted = ", ".join(string_literal(f"{slot}:{prefix}") for slot, prefix in sorted(groups))
    return (
        f"SELECT {names}, substr(h, 1, {HASH_DIGITS}) FROM ({placed})"
        f" WHERE concat(CAST(slot AS STRING), ':', p) IN ({wanted})"
    )


def look_up(lake: Lake, keys: Sequence[tuple[str, ...]], shown: Sequence[str] | None = None) -> str:
    """The texts of all columns of the rows with these keys, behind the key's own texts; or what is
    to be shown instead, in SQL."""
    texts = shown or [column.text for column in (*lake.keys, *lake.columns)]
    named = ", ".join(f"{text} AS c{place}" for place, text in enumerate(texts))
    frees = [column.free for column in lake.keys]
    wanted = ", ".join(string_literal(key_text(key, frees)) for key in keys)
    within = ""
    if lake.number is not None and len(lake.keys) == 1:
        numbers = [int(key[0]) for key in keys]
        within = f"{lake.number} BETWEEN {_long(min(numbers))} AND {_long(max(numbers))} AND "
    return f"SELECT {named} FROM {lake.source} WHERE {within}{row_text(lake.keys)} IN ({wanted})"


def key_text(key: Sequence[str], frees: Sequence[bool]) -> str:
    """A key's text, as ``row_text`` makes it in SQL."""
    pairs = zip(key, frees, strict=True)
    return "".join(f"{len(text)}:{text}" if free else f"{text}," for text, free in pairs)


def _field(column: TextColumn) -> str:
    text, free = column
    parts = f"CAST(length({text}) AS STRING), ':', {text}" if free else f"{text}, ','"
    return f"coalesce(concat({parts}), 'n,')"


def _prefix(lake: Lake, digits: int) -> str:
    if digits == 0:
        return "'' AS p"
    return f"substr({row_hash(lake.keys)}, 1, {digits}) AS p"


def _placed(lake: Lake, intervals: Sequence[Interval], columns: str) -> str:
    """A SELECT of columns beside ``slot``, the place of the row's interval; of no other rows."""
    if lake.grid is None or list(intervals) == [Interval()]:
        return f"SELECT 0 AS slot, {columns} FROM {lake.source}"
    number, grid = lake.number, lake.grid
    slots = [-1] * (CELLS + 2)
    for place, (low, high) in enumerate(intervals):
        first = 0 if low is None else grid.cell(low) + 1
        last = CELLS + 1 if high is None else grid.cell(high)
        slots[first : last + 1] = [place] * (last + 1 - first)
    first_low, last_high = intervals[0].low, intervals[-1].high
    within = [] if first_low is None else [f"{number} > {_long(first_low)}"]
    within += [] if last_high is None else [f"{number} <= {_long(last_high)}"]
    cell = (
        f"CASE WHEN {number} <= {_long(grid.low)} THEN 0"
        f" WHEN {number} > {_long(grid.edge(CELLS))} THEN {CELLS + 1}"
        f" ELSE CAST(({number} - {_long(grid.low + 1)}) DIV {_long(grid.width)} AS INT) + 1 END"
    )
    slot = f"array({', '.join(map(str, slots))})[{cell}]"
    placed = f"SELECT *, {slot} AS slot FROM {lake.source} WHERE {' AND '.join(within) or 'true'}"
    return f"SELECT slot, {columns} FROM ({placed}) WHERE slot >= 0"


def _long(number: int) -> str:
    return f"{number}L" if number != -_LARGEST - 1 else f"({-_LARGEST}L - 1L)"
