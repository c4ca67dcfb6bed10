"""A partition that is compared by itself: the rows whose date or time is in a range. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from changes.model.model import Column, TableSchema
from changes.routes.shaping.columns import source_view
from changes.sql.spark.schema import arrow_type
from changes.sql.spark.words import quote
from daemon.operations.load.columns import FittedTable
from daemon.operations.verify.columns import ComparedShape, NotComparable, Pair
from databases.base.port import SourceColumn

PARTITION = "partition"
"""The parameter of a job that compares one; ``Partition.text`` is what it holds."""

_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}(?P<time>[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?(Z|[+-]\d{2}:\d{2})?",
    re.ASCII,
)
_FORM = "COLUMN=DAY or COLUMN=FROM..TO, such as created=2026-11-25 (with TO itself left out)"
_SPARK = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}


@dataclass(frozen=True, slots=True)
class Partition:
    """The rows whose ``column``, of the target, is ``first`` at least and below ``end``. Both have
    a zone, or none has. ``of_days``: no time of a day was given. ``text``: as it was given.
    ``is_last``: it is of the last day that there is, and has ``end``, too."""

    text: str
    column: str
    first: datetime
    end: datetime
    of_days: bool
    is_last: bool = False

    @classmethod
    def parse(cls, text: str) -> Partition:
        """Read a condition. Raises ValueError: one line."""
        column, equals, given = text.rpartition("=")
        if not column or not equals:
            raise ValueError(f"{text!r} is not {_FORM}")
        low, dots, high = given.partition("..")
        first, is_day = _moment(low)
        if not dots and not is_day:
            raise ValueError(f"{low} is one moment: write the range as FROM..TO")
        try:
            end, of_days = _moment(high) if dots else (_day_after(first), True)
            in_utc = [each.astimezone(UTC) for each in (first, end) if each.tzinfo is not None]
        except OverflowError:
            raise ValueError(f"{given}: not in the years 1 to 9999") from None
        if len(in_utc) == 1:
            raise ValueError(f"{given}: one end has a zone, the other has none")
        if first >= end:
            raise ValueError(f"{given}: its end is not behind its beginning")
        is_last = end.replace(tzinfo=None) == datetime.max and not dots
        return cls(text, column, first, end, is_day and of_days, is_last)

    def bounds(self, type_: str) -> tuple[str, str]:
        """Both ends as canonical texts of a lake's type. Raises NotComparable."""
        column, zoned = self.column, self.first.tzinfo is not None
        if type_ not in _SPARK:
            raise NotComparable(
                f"--partition: column {column} is stored as {type_}: a partition is a range of a"
                " date or of a timestamp"
            )
        if type_ == "timestamptz" and not zoned:
            day = self.first.date().isoformat()
            raise NotComparable(
                f"--partition: column {column} holds instants, and a day begins at another one in"
                f" each zone: give the zone, such as {day}Z or {day}+08:00"
            )
        if type_ != "timestamptz" and zoned:
            raise NotComparable(
                f"--partition: column {column} holds times of no zone: leave the zone out"
            )
        if type_ == "date" and not self.of_days:
            raise NotComparable(f"--partition: column {column} is a date: give days alone")
        return _text(type_, self.first), _text(type_, self.end)


class PartitionBounds(NamedTuple):
    """A partition of two tables. ``pair``: its column on both sides; ``column``: the source's own.
    ``first`` and ``end`` are canonical texts; ``below``: whether it ends before ``end`` or with it,
    as an operator."""

    pair: Pair
    column: SourceColumn
    first: str
    end: str
    below: Literal["<", "<="] = "<"

    @property
    def lake(self) -> str:
        """The condition of its rows in Spark's SQL."""
        name, type_ = quote(self.pair.name), self.pair.type
        word, zone = _SPARK[type_], "Z" if type_ == "timestamptz" else ""
        return (
            f"{name} >= {word}'{self.first}{zone}' AND {name} {self.below} {word}'{self.end}{zone}'"
        )


def bounds_of(partition: Partition, shape: ComparedShape, wanted: FittedTable) -> PartitionBounds:
    """The partition of a target and its source. Raises NotComparable where the source has no
    column by which the same rows are selected."""
    name = partition.column
    pairs = {pair.name.lower(): pair for pair in shape.pairs}
    pair = pairs.get(name.lower())
    if pair is None:
        other = wanted.route.shape.name_of(name)
        renamed = f": the route renames it to {other}" if other.lower() in pairs else ""
        raise NotComparable(f"--partition: no column {name} of the target is compared{renamed}")
    of = Column(pair.name, arrow_type(pair.type))
    for own in source_view(wanted.route.shape, TableSchema((of,), ())).columns:
        for one in wanted.columns:
            if one.column.name.lower() == own.name.lower():
                below: Literal["<", "<="] = "<=" if partition.is_last else "<"
                return PartitionBounds(pair, one.column, *partition.bounds(pair.type), below)
    raise NotComparable(
        f"--partition: the route computes or masks column {pair.name}: name a column that it shows"
        " as the source has it"
    )


def _moment(text: str) -> tuple[datetime, bool]:
    """A day (its beginning) or a moment, and whether it is a day. Raises ValueError."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is neither a day such as 2026-11-25 nor a moment such as"
            " 2026-11-25T08:00:00.000000; a zone follows as Z or +08:00"
        )
    is_day = found["time"] is None
    try:
        # Python reads a zone behind a time alone.
        whole = f"{text[:10]}T00:00{text[10:]}" if is_day else text
        return datetime.fromisoformat(whole), is_day
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from None


def _day_after(first: datetime) -> datetime:
    """Where the next day begins; behind the last day that there is, its last moment."""
    try:
        return first + timedelta(days=1)
    except OverflowError:
        if first.tzinfo is None:
            return datetime.max
        last = datetime.max.replace(tzinfo=UTC)
        begin = first.astimezone(UTC)
        return last if last - begin < timedelta(days=1) else begin + timedelta(days=1)


def _text(type_: str, moment: datetime) -> str:
    if type_ == "date":
        return moment.date().isoformat()
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(" ", "microseconds")
