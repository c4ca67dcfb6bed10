"""Which types of an expression go together, and how a value becomes one of another type.

Nothing is converted where a value could change: numbers of a double and of a decimal don't compare
without a CAST, text and numbers don't either. Literals adapt to the column that they stand beside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.types import MAX_PRECISION, shortest
from changes.routes.expressions.syntax import ExpressionError

# The rows over which an expression is computed.

Value = Any
"""An array or a scalar: what a part of an expression gives: a value of each row, or one for all."""


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """Columns by their names in small letters, each as one array."""

    columns: Mapping[str, pa.Array]
    count: int

    def where(self, mask: pa.Array) -> NamedColumns:
        """The rows at which the mask, without nulls, is true."""
        columns = {name: column.filter(mask) for name, column in self.columns.items()}
        return NamedColumns(columns, pc.sum(mask).as_py() or 0)

    def part(self, start: int, count: int) -> NamedColumns:
        """Some rows, without a copy."""
        columns = {name: column.slice(start, count) for name, column in self.columns.items()}
        return NamedColumns(columns, count)


def spread(value: Value, count: int) -> pa.Array:
    """The value as an array."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, count)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


def placed(into: pa.Array, mask: pa.Array, values: pa.Array) -> pa.Array:
    """The array with these values where the mask is true."""
    return pc.replace_with_mask(into, mask, values)


def text_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column's values as text, of one form for each value whatever the width of its type.

    A number's text has no zeros behind its last digit, so that a column whose type is widened
    keeps its texts.
    """
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_decimal(column.type):
        return _each_value(column, shortest, as_is=True)
    return pc.cast(column, pa.string())


def _each_value(column: pa.ChunkedArray, of: object, *, as_is: bool = False) -> pa.ChunkedArray:
    """Another value for each one, computed once for those that are equal."""
    assert callable(of)
    if not (as_is or pa.types.is_binary(column.type)):
        column = text_of(column)
    encoded = column.combine_chunks().dictionary_encode()
    values = pa.array([of(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return pa.chunked_array([values.take(encoded.indices)])


Run = Callable[[NamedColumns], Value]


@dataclass(frozen=True, slots=True)
class Typed:
    """A part of an expression whose columns are known. ``constant``: its value, where it has none
    of the row. ``fails``: whether a value may have no result."""

    type: pa.DataType
    run: Run
    constant: pa.Scalar | None = None
    fails: bool = False


def constant(value: object, type_: pa.DataType) -> Typed:
    """A value that is the same in each row."""
    scalar = pa.scalar(value, type_)
    return Typed(type_, lambda rows: scalar, scalar)


def words_of(type_: pa.DataType) -> str:
    """A type for people."""
    if pa.types.is_null(type_):
        return "NULL"
    if pa.types.is_string(type_):
        return "text"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamptz"
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    names = {pa.int32(): "int", pa.int64(): "bigint", pa.date32(): "date", pa.bool_(): "boolean"}
    return names.get(type_, str(type_))


def is_number(type_: pa.DataType) -> bool:
    """Whether one can reckon with it."""
    exact = pa.types.is_integer(type_) or pa.types.is_decimal(type_)
    return exact or bool(pa.types.is_floating(type_))


def alike(parts: list[Typed], what: str) -> tuple[list[Typed], pa.DataType]:
    """The parts as values of one type. Raises ExpressionError; ``what`` says for what."""
    wanted = pa.null()
    for part in parts:
        if part.constant is None:
            wanted = _common(wanted, part.type, what)
    for part in parts:
        if part.constant is not None and not _adapts(part, wanted):
            wanted = _common(wanted, part.type, what)
    return [as_type(part, wanted, what) for part in parts], wanted


def _adapts(literal: Typed, wanted: pa.DataType) -> bool:
    """Whether a literal is one of the type that it stands beside."""
    if pa.types.is_string(literal.type):
        return bool(pa.types.is_temporal(wanted))
    exact = pa.types.is_integer(literal.type) or pa.types.is_decimal(literal.type)
    return bool(pa.types.is_floating(wanted)) and exact


def _common(one: pa.DataType, two: pa.DataType, what: str) -> pa.DataType:
    if one.equals(two) or pa.types.is_null(two):
        return one
    if pa.types.is_null(one):
        return two
    if pa.types.is_integer(one) and pa.types.is_integer(two):
        return pa.int64()
    if pa.types.is_floating(one) and pa.types.is_floating(two):
        return pa.float64()
    if not any(map(pa.types.is_floating, (one, two))) and is_number(one) and is_number(two):
        a, b = decimal_of(one), decimal_of(two)
        scale = max(a.scale, b.scale)
        digits = max(a.precision - a.scale, b.precision - b.scale) + scale
        if digits > MAX_PRECISION:
            raise ExpressionError(f"{what}: {words_of(one)} with {words_of(two)} needs a CAST")
        return pa.decimal128(digits, scale)
    raise ExpressionError(f"{what}: {words_of(one)} with {words_of(two)}")


def decimal_of(type_: pa.DataType) -> pa.DataType:
    """The decimal that holds all values of an exact type."""
    if pa.types.is_decimal(type_):
        return type_
    return pa.decimal128(19 if type_.bit_width == 64 else 10, 0)


def exact_literal(part: Typed) -> Typed:
    """A whole number of the text as a decimal of just its digits: products stay narrow."""
    if part.constant is None or not pa.types.is_integer(part.type):
        return part
    value = part.constant.as_py()
    return part if value is None else constant(value, pa.decimal128(len(str(abs(value))), 0))


def as_type(part: Typed, type_: pa.DataType, what: str) -> Typed:
    """The same value as one of a type that holds it, or of a literal's text."""
    if part.type.equals(type_):
        return part
    if part.constant is not None:
        try:
            return constant(_converted(part.constant, type_).as_py(), type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ExpressionError(f"{what}: {error}") from error
    return Typed(type_, lambda rows: _converted(part.run(rows), type_), fails=part.fails)


def cast(part: Typed, type_: pa.DataType) -> Typed:
    """CAST: an error where the value is not one of the type. Raises ExpressionError."""
    if part.type.equals(type_):
        return part
    what = f"CAST of {words_of(part.type)} as {words_of(type_)}"
    if part.constant is not None:
        return as_type(part, type_, what)
    try:
        _converted(pa.array([], part.type), type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ExpressionError(f"{what} is not possible") from error
    return Typed(type_, lambda rows: _converted(part.run(rows), type_), fails=True)


def _converted(value: Value, type_: pa.DataType) -> Value:
    """Checked: raises ArrowInvalid where a value is not one of the type."""
    number = is_number(value.type) or pa.types.is_boolean(value.type)
    if pa.types.is_string(type_) and pa.types.is_decimal(value.type):
        if isinstance(value, pa.Scalar):
            return text_of(pa.chunked_array([pa.array([value.as_py()], value.type)]))[0]
        return text_of(pa.chunked_array([value])).combine_chunks()
    if pa.types.is_temporal(type_) and number:
        raise pa.ArrowNotImplementedError("a number is no date")
    if pa.types.is_string(value.type) and not pa.types.is_binary(type_):
        value = pc.utf8_trim_whitespace(value)
    return pc.cast(value, type_)


# What operators and functions of expressions are made with.

LARGEST_BYTES = 64 << 20
"""Of the texts that one || makes at once. More rows are then computed in parts; one row alone is
in error."""


class ResultTooLarge(Exception):
    """The result would be larger than ``LARGEST_BYTES``."""


Make = Callable[[str, list[Typed]], Typed]
"""Makes a call of its name and arguments. Raises ExpressionError."""


def of_kernel(
    type_: pa.DataType, kernel: Callable[..., Value], *args: Typed, fails: bool = False
) -> Typed:
    """A kernel over the values of the arguments."""
    inner = any(arg.fails for arg in args)
    return Typed(type_, lambda rows: kernel(*(arg.run(rows) for arg in args)), fails=fails or inner)


def wanted(name: str, arg: Typed, fits: Callable[[pa.DataType], bool], what: str) -> Typed:
    if pa.types.is_null(arg.type) or not fits(arg.type):
        raise ExpressionError(f"{name} wants {what}, not {words_of(arg.type)}")
    return arg


def as_decimal(arg: Typed) -> Typed:
    return as_number(arg, decimal_of(arg.type)) if pa.types.is_integer(arg.type) else arg


def as_number(arg: Typed, type_: pa.DataType) -> Typed:
    return as_type(arg, type_, "a number")


def derived(name: str, kernel: Callable[..., Value], args: list[Typed]) -> Typed:
    """The type is the kernel's own. Raises ExpressionError where there is none."""
    try:
        type_ = kernel(*(pa.array([], arg.type) for arg in args)).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        what = " with ".join(words_of(arg.type) for arg in args)
        raise ExpressionError(f"{name} of {what} needs a CAST: {error}") from error
    return of_kernel(type_, kernel, *args, fails=not pa.types.is_floating(type_) or name == "/")
