"""Column types from the configuration, for formats whose messages declare none.

The words are the lake's, with SQL's other names for the same. ``timestamp`` is thus a reading
without a zone, as in Iceberg and PostgreSQL, and not MySQL's TIMESTAMP, which is ``timestamptz``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from changes.model.model import ColumnTypes
from changes.model.types import MAX_PRECISION, TIMESTAMP, TIMESTAMP_UTC, SourceType, TextForm

ALLOWED = (
    "boolean, int, bigint, bigint unsigned, float, double, decimal(p,s), string, binary, date, "
    "time, timestamp, timestamptz"
)
"""What an error offers; ``_WORDS`` has the other names."""

_INT = SourceType(pa.int32(), TextForm.WHOLE)
_LONG = SourceType(pa.int64(), TextForm.WHOLE)
_TEXT = SourceType(pa.string())
_BYTES = SourceType(pa.binary(), TextForm.BASE64)
_WALL = SourceType(TIMESTAMP)
_INSTANT = SourceType(TIMESTAMP_UTC)

_WORDS = {
    "boolean": SourceType(pa.bool_()),
    "bool": SourceType(pa.bool_()),
    **dict.fromkeys(("int", "integer", "tinyint", "smallint", "mediumint", "year"), _INT),
    **dict.fromkeys(("bigint", "long", "int unsigned"), _LONG),
    "bigint unsigned": SourceType(pa.decimal128(20, 0), TextForm.UNSIGNED),
    **dict.fromkeys(("float", "real"), SourceType(pa.float32())),
    **dict.fromkeys(("double", "double precision"), SourceType(pa.float64())),
    **dict.fromkeys(("string", "text", "varchar", "char", "json", "enum", "set"), _TEXT),
    **dict.fromkeys(("binary", "varbinary", "blob", "bytea", "bytes"), _BYTES),
    "date": SourceType(pa.date32()),
    "time": SourceType(pa.string(), TextForm.TIME),
    **dict.fromkeys(("timestamp", "datetime", "timestamp without time zone"), _WALL),
    **dict.fromkeys(("timestamptz", "timestamp with time zone", "timestamp_ltz"), _INSTANT),
}
_SIZED = frozenset(("varchar", "char", "binary", "varbinary", "time", "timestamp", "datetime"))
"""Types that may carry a length, or digits of a second, in brackets; the lake keeps any length."""

_DECIMAL = re.compile(r"(?:decimal|numeric) ?\( ?([0-9]{1,3}) ?(?:, ?([0-9]{1,3}) ?)?\)")
_SIZE = re.compile(r"(.*?) ?\( ?[0-9]{1,9} ?\)")


def configured_type(words: str) -> SourceType:
    """Parse a configured type. Raises ValueError, which lists what is allowed."""
    plain = " ".join(words.lower().split())
    if found := _DECIMAL.fullmatch(plain):
        precision, scale = int(found[1]), int(found[2] or 0)
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise ValueError(f"{words!r}: a decimal has 1 to {MAX_PRECISION} digits")
        return SourceType(pa.decimal128(precision, scale))
    sized = _SIZE.fullmatch(plain)
    kind = _WORDS.get(sized[1] if sized and sized[1] in _SIZED else plain)
    if kind is None:
        raise ValueError(f"unknown type {words!r}; allowed: {ALLOWED}")
    return kind


@dataclass(frozen=True, slots=True)
class ConfiguredTypes:
    """The configured types of a target's columns, by name without regard to case."""

    types: Mapping[str, SourceType] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, types: ColumnTypes) -> ConfiguredTypes:
        """Read a route's types. Raises ValueError, which names the column."""
        found: dict[str, SourceType] = {}
        for name, words in types:
            if name.lower() in found:
                raise ValueError(f"{name}: declared twice (case aside)")
            try:
                found[name.lower()] = configured_type(words)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return cls(found, {name.lower(): words for name, words in types})

    def type_of(self, name: str) -> SourceType | None:
        """The column's configured type, None where there is none."""
        return self.types.get(name.lower())

    def words_of(self, name: str) -> str | None:
        """That type as it is written in the configuration, for errors."""
        return self.words.get(name.lower())


NOTHING_CONFIGURED = ConfiguredTypes()
