"""How a target's files are laid out: its partitions, in the words of Iceberg, and their order."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

_TIMES = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_WIDE = ("bucket", "truncate")
_LARGEST = 2**31 - 1
_WORDS = "column, years(c), months(c), days(c), hours(c), bucket(n, c) or truncate(n, c)"
_CALL = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^(),]+?)\s*\)\s*", re.ASCII)
_SORT = re.compile(r"\s*(.+?)(?:\s+(asc|desc))?\s*", re.IGNORECASE)


class Transform(NamedTuple):
    """What makes the value of a partition out of a column. ``kind`` as in Iceberg's metadata;
    ``width`` of ``bucket`` and ``truncate``, 0 of others."""

    kind: str
    column: str
    width: int = 0

    @property
    def text(self) -> str:
        """As the configuration says it."""
        if self.kind == "identity":
            return self.column
        if self.width:
            return f"{self.kind}({self.width}, {self.column})"
        return f"{self.kind}s({self.column})"

    @property
    def iceberg(self) -> str:
        """As Iceberg's metadata says it."""
        return f"{self.kind}[{self.width}]" if self.width else self.kind

    @property
    def name(self) -> str:
        """The name of the partition's field, as engines choose it."""
        ends = {"identity": "", "truncate": "_trunc"}
        return self.column + ends.get(self.kind, f"_{self.kind}")

    def problem(self, type_: pa.DataType) -> str | None:
        """Why a column of that type can't be partitioned so, None where it can."""
        import pyarrow as pa  # late: a configuration is read without it

        if pa.types.is_floating(type_) or (self.kind == "bucket" and pa.types.is_boolean(type_)):
            return f"a column of type {type_} has no partition {self.text}"
        if self.kind == "truncate":
            whole = pa.types.is_integer(type_) or pa.types.is_decimal(type_)
            fits = whole or type_ in (pa.string(), pa.binary())
        elif self.kind in ("year", "month", "day"):
            fits = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
        elif self.kind == "hour":
            fits = pa.types.is_timestamp(type_)
        else:
            fits = True
        return None if fits else f"{self.text} does not fit a column of type {type_}"


class Sort(NamedTuple):
    """A part of the order of a target's rows."""

    column: str
    descending: bool = False

    @property
    def text(self) -> str:
        """As the configuration says it."""
        return f"{self.column} desc" if self.descending else self.column


def transform_of(text: str) -> Transform:
    """One entry of ``partition_by``. Raises ValueError."""
    if "(" not in text:
        if not (name := text.strip()):
            raise ValueError(f"an entry is empty; expected: {_WORDS}")
        return Transform("identity", name)
    found = _CALL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no transform; expected: {_WORDS}")
    kind, width, column = found[1].lower(), found[2], found[3]
    if kind == "identity" and width is None:
        return Transform(kind, column)
    if kind in _TIMES and width is None:
        return Transform(_TIMES[kind], column)
    if kind in _WIDE and width is not None and 0 < int(width) <= _LARGEST:
        return Transform(kind, column, int(width))
    raise ValueError(f"{text!r} is no transform; expected: {_WORDS}")


def transforms_of(texts: Iterable[str]) -> tuple[Transform, ...]:
    """The entries of ``partition_by``. Raises ValueError for one that can't be, or is twice."""
    made = tuple(map(transform_of, texts))
    seen: dict[tuple[str, str], str] = {}
    for each in made:
        # Iceberg takes each column's years, months, days and hours for one.
        kind = "time" if each.kind in _TIMES.values() else each.kind
        key = (kind, each.column.lower())
        if key in seen:
            raise ValueError(f"{seen[key]} and {each.text} contradict each other")
        seen[key] = each.text
    return made


def sort_of(text: str) -> Sort:
    """One entry of ``sort_by``. Raises ValueError."""
    found = _SORT.fullmatch(text)
    if found is None or not text.strip():
        raise ValueError("an entry is empty; expected: column, column asc or column desc")
    return Sort(found[1], (found[2] or "").lower() == "desc")


def sorts_of(texts: Iterable[str]) -> tuple[Sort, ...]:
    """The entries of ``sort_by``. Raises ValueError for one that can't be, or is twice."""
    made = tuple(map(sort_of, texts))
    names = [each.column.lower() for each in made]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"column {name} is there twice")
    return made


def unfit_layout(partition_by: Iterable[str], sort_by: Iterable[str]) -> Iterator[str]:
    """Why no files can be laid out so."""
    try:
        transforms_of(partition_by)
    except ValueError as error:
        yield f"partition_by: {error}"
    try:
        sorts_of(sort_by)
    except ValueError as error:
        yield f"sort_by: {error}"


# The fingerprint of a shape, by which a target knows whether its rows have the present shape.

_NOTHING: tuple[Any, ...] = (None, "", [], {}, False)


def fingerprint(said: Mapping[str, Any]) -> str:
    """What a shape says by its keys, without those that say nothing; empty where none does."""
    told = {key: value for key, value in said.items() if value not in _NOTHING}
    return json.dumps(told, ensure_ascii=False, sort_keys=True) if told else ""


def salt_digest(salt: str) -> str:
    """What shows that a salt is another one, and not what it is."""
    return hashlib.sha256(f"binlogd mask_salt {salt}".encode()).hexdigest()[:16] if salt else ""


def differing(held: str, wanted: str) -> list[str]:
    """The keys in which two fingerprints differ."""
    before, after = _read(held), _read(wanted)
    keys = sorted({*before, *after})
    return [key for key in keys if before.get(key) != after.get(key)]


def only_adds(held: str, wanted: str) -> bool:
    """Whether the second shape differs from the first by columns alone that it shows, too."""
    before, after = _read(held), _read(wanted)
    for key in differing(held, wanted):
        was, now = before.get(key), after.get(key)
        if key == "columns":
            grows = was is not None and (now is None or set(was) <= set(now))
        elif key == "drop_columns":
            grows = set(was or ()) >= set(now or ())
        else:
            grows = False
        if not grows:
            return False
    return True


def keeps_history(held: str) -> bool:
    """Whether a target of that fingerprint keeps each version of a row."""
    return bool(_read(held).get("history"))


def _read(text: str) -> dict[str, Any]:
    return dict(json.loads(text)) if text else {}
