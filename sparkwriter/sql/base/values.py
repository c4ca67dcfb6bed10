"""Arrow's columns as the texts that the databases read, each exactly. No code runs a row, but for
bytes.

What a database can't hold is refused by name, or null where the sink says so; in a key it is
always refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from changes.model import types as decimals
from changes.model.errors import TargetRefused
from changes.sql.spark.schema import arrow_type
from sparkwriter.sql.base.tables import DbColumn

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970: what both databases and their tools read."""

_SIGN = {width: pa.scalar(-(2 ** (width - 1)), f"int{width}") for width in (32, 64)}
"""The bits of -0.0, as a whole number."""

_DAY_US = 86_400_000_000


class Holds(Protocol):
    """What a database can hold."""

    name: str
    holds_nul: bool
    holds_nan: bool
    holds_minus_zero: bool


@dataclass
class Texts:
    """Turns one batch's columns into text. ``nulled`` counts what became null, by column."""

    database: Holds
    or_null: bool = False
    nulled: dict[str, int] = field(default_factory=dict)

    def of(self, name: str, column: pa.Array, into: DbColumn | None, key: bool) -> pa.Array:
        """A column's texts, null where it is; bytes are hex digits. Raises TargetRefused."""
        column, type_ = plain(column), column.type
        if pa.types.is_string(column.type):
            return self._text(name, column, into, key)
        if pa.types.is_binary(column.type):
            return pa.array([None if v is None else v.hex() for v in column.to_pylist()], "string")
        if pa.types.is_boolean(type_):
            return pc.cast(pc.cast(column, pa.int8()), pa.string())
        if pa.types.is_floating(type_):
            column = self._floating(name, column, key)
        if pa.types.is_float32(column.type):
            # Its own shortest digits may be above the largest that MySQL takes.
            column = pc.cast(column, pa.float64())
        if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
            column = self._date(name, column, key)
        if pa.types.is_decimal(type_):
            return decimals.texts(column)
        return pc.cast(column, pa.string())

    def _floating(self, name: str, column: pa.Array, key: bool) -> pa.Array:
        if not self.database.holds_nan:
            finite = pc.fill_null(pc.is_finite(column), True)
            column = self._without(name, column, finite, "NaN or an infinite number", key)
        if not self.database.holds_minus_zero:
            bits = column.view(pa.int32() if pa.types.is_float32(column.type) else pa.int64())
            fine = pc.fill_null(pc.not_equal(bits, _SIGN[bits.type.bit_width]), True)
            column = self._without(name, column, fine, "the number -0.0, below zero", key)
        return column

    def _text(self, name: str, column: pa.Array, into: DbColumn | None, key: bool) -> pa.Array:
        if not self.database.holds_nul:
            nul = pc.match_substring(column, "\0")
            fine = pc.invert(pc.fill_null(nul, False))
            column = self._without(name, column, fine, "the character NUL", key)
        if into is not None:
            _check_length(name, column, into)
            _check_members(name, column, into)
        return column

    def _date(self, name: str, column: pa.Array, key: bool) -> pa.Array:
        if pa.types.is_date(column.type):
            number, first, end = pc.cast(column, pa.int32()), FIRST_DAY, LAST_DAY + 1
        else:
            number = pc.cast(column, pa.int64())
            first, end = FIRST_DAY * _DAY_US, (LAST_DAY + 1) * _DAY_US
        inside = pc.and_(pc.greater_equal(number, first), pc.less(number, end))
        fine = pc.fill_null(inside, True)
        return self._without(name, column, fine, "a year outside 1 to 9999", key)

    def _without(
        self, name: str, column: pa.Array, fine: pa.Array, what: str, key: bool
    ) -> pa.Array:
        wrong = len(column) - (pc.sum(fine).as_py() or 0)
        if not wrong:
            return column
        if key or not self.or_null:
            way = "" if key else ' (unstorable = "null" in the sink\'s section stores null instead)'
            raise TargetRefused(
                f"column {name}: {what}, which {self.database.name} does not hold{way}"
            )
        self.nulled[name] = self.nulled.get(name, 0) + wrong
        return pc.if_else(fine, column, pa.scalar(None, column.type))


def plain(column: pa.Array) -> pa.Array:
    """The column in one of the types that the lake knows; timestamps in UTC, without their zone."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return plain(column.dictionary_decode())
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pc.cast(column, pa.string())
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pc.cast(column, pa.binary())
    if pa.types.is_timestamp(type_):
        return pc.cast(column, pa.timestamp("us"))
    return column


def default_text(name: str, value: object, type_: str, database: Holds) -> str | None:
    """A statement's default as a stored row shows it. Raises TargetRefused where it doesn't fit."""
    if value is None:
        return None
    given = pa.array([value if isinstance(value, bytes) else str(value)])
    try:
        made = pc.cast(given, arrow_type(type_))
    except pa.ArrowInvalid:
        raise TargetRefused(f"column {name}: the default {value!r} does not fit {type_}") from None
    text: str = Texts(database).of(name, made, None, key=True)[0].as_py()
    return text


def _check_length(name: str, column: pa.Array, into: DbColumn) -> None:
    """Refuse what is too long: the database itself would cut spaces at the end without a word."""
    for limit, length, unit in (
        (into.max_chars, pc.utf8_length, "characters"),
        (into.max_bytes, pc.binary_length, "bytes"),
    ):
        if limit is None:
            continue
        longest = pc.max(length(column)).as_py()
        if longest is not None and longest > limit:
            raise TargetRefused(
                f"column {name}: a text of {longest} {unit}, and {into.type} holds {limit}"
            )


def _check_members(name: str, column: pa.Array, into: DbColumn) -> None:
    """Refuse what is no member: MySQL takes a text in another case, or a number, for one of them,
    and sorts those of a set."""
    members = into.members
    if members is None:
        return
    for text in pc.unique(column).drop_null().to_pylist():
        if into.several:
            parts = text.split(",")
            held = not text or parts == [one for one in members if one in parts]
        else:
            held = text in members
        if not held:
            raise TargetRefused(f"column {name}: a text that {into.type} does not hold as it is")
