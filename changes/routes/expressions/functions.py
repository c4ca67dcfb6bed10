"""The functions of expressions, and all that can be called."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from changes.routes.expressions.operators import (
    COMPARE,
    RECKON,
    compared,
    divided,
    is_in,
    joined,
    like,
    logic,
    reckoned,
    whole,
)
from changes.routes.expressions.syntax import ExpressionError
from changes.routes.expressions.types import (
    Make,
    NamedColumns,
    Typed,
    Value,
    alike,
    as_number,
    is_number,
    of_kernel,
    placed,
    spread,
    wanted,
)
from settings.counted import counted


def check_call(name: str, count: int) -> None:
    """Raise ExpressionError where no operator or function of that name takes so many values."""
    found = _FUNCTIONS.get(name)
    if found is None:
        known = ", ".join(sorted(each for each in _FUNCTIONS if each.isidentifier()))
        raise ExpressionError(f"{name} is no function; there are {known}")
    least, most, _ = found
    if not least <= count <= most:
        raise ExpressionError(f"{name} does not take {counted(count, 'value')}")


def function(name: str, args: Sequence[Typed]) -> Typed:
    """A call of an operator or a function that there is. Raises ExpressionError."""
    return _FUNCTIONS[name][2](name, list(args))


def _text(kernel: Callable[[Value], Value], type_: pa.DataType | None = None) -> Make:
    def make(name: str, args: list[Typed]) -> Typed:
        wanted(name, args[0], pa.types.is_string, "text")
        return of_kernel(type_ or pa.string(), kernel, args[0])

    return make


def _substr(name: str, args: list[Typed]) -> Typed:
    """substr(text, start, count): start counts from 1."""
    wanted(name, args[0], pa.types.is_string, "text")
    numbers = [None if arg.constant is None else arg.constant.as_py() for arg in args[1:]]
    if any(not isinstance(number, int) or number < 0 for number in numbers) or numbers[0] == 0:
        raise ExpressionError(f"{name} wants a start from 1 and a count, as literals")
    start = int(numbers[0] or 1) - 1
    end = start + int(numbers[1] or 0) if len(numbers) > 1 else None
    return of_kernel(pa.string(), lambda given: pc.utf8_slice_codeunits(given, start, end), args[0])


def _coalesced(name: str, args: list[Typed]) -> Typed:
    """The first value that is not null. What follows it is not computed."""
    parts, type_ = alike(args, name)
    first, *others = parts
    if not any(other.fails for other in others):
        return of_kernel(type_, pc.coalesce, *parts)

    def run(rows: NamedColumns) -> Value:
        found = spread(first.run(rows), rows.count)
        for other in others:
            empty = pc.is_null(found)
            part = rows.where(empty)
            found = placed(found, empty, spread(other.run(part), part.count))
        return found

    return Typed(type_, run, fails=True)


def _nullif(name: str, args: list[Typed]) -> Typed:
    (one, two), type_ = alike(args, name)

    def run(a: Value, b: Value) -> Value:
        return pc.if_else(pc.fill_null(pc.equal(a, b), False), pa.scalar(None, type_), a)

    return of_kernel(type_, run, one, two)


def _number(kernel: Callable[[Value], Value], *, fails: bool) -> Make:
    def make(name: str, args: list[Typed]) -> Typed:
        arg = wanted(name, args[0], is_number, "a number")
        arg = as_number(arg, pa.int64()) if pa.types.is_integer(arg.type) else arg
        return of_kernel(arg.type, kernel, arg, fails=fails)

    return make


def _rounded(name: str, args: list[Typed]) -> Typed:
    """round(number, digits): half away from zero, as MySQL rounds what is exact."""
    arg = wanted(name, args[0], is_number, "a number")
    digits = 0 if len(args) == 1 or args[1].constant is None else args[1].constant.as_py()
    if not isinstance(digits, int) or (len(args) > 1 and args[1].constant is None):
        raise ExpressionError("round wants its digits as a whole literal")
    if pa.types.is_integer(arg.type):
        arg = as_number(arg, pa.int64())

    def run(given: Value) -> Value:
        return pc.round(given, digits, "half_towards_infinity")

    return of_kernel(arg.type, run, arg, fails=True)


def _field(kernel: Callable[[Value], Value]) -> Make:
    def make(name: str, args: list[Typed]) -> Typed:
        wanted(name, args[0], pa.types.is_temporal, "a date or timestamp")
        return of_kernel(pa.int64(), kernel, args[0])

    return make


def _hour(name: str, args: list[Typed]) -> Typed:
    wanted(name, args[0], pa.types.is_timestamp, "a timestamp")
    return of_kernel(pa.int64(), pc.hour, args[0])


def _date(name: str, args: list[Typed]) -> Typed:
    wanted(name, args[0], pa.types.is_temporal, "a timestamp")
    return of_kernel(pa.date32(), lambda given: pc.cast(given, pa.date32()), args[0])


_MANY = 1000
_FUNCTIONS: dict[str, tuple[int, int, Make]] = {
    **dict.fromkeys(COMPARE, (2, 2, compared)),
    **dict.fromkeys(RECKON, (2, 2, reckoned)),
    "/": (2, 2, divided),
    "div": (2, 2, whole),
    "%": (2, 2, whole),
    "negate": (1, 1, _number(pc.negate_checked, fails=True)),
    "and": (2, 2, logic),
    "or": (2, 2, logic),
    "not": (1, 1, logic),
    "is null": (1, 1, lambda name, args: of_kernel(pa.bool_(), pc.is_null, args[0])),
    "in": (2, _MANY, is_in),
    "like": (2, 2, like),
    "||": (2, 2, joined),
    "coalesce": (1, _MANY, _coalesced),
    "nullif": (2, 2, _nullif),
    "lower": (1, 1, _text(pc.utf8_lower)),
    "upper": (1, 1, _text(pc.utf8_upper)),
    "trim": (1, 1, _text(lambda given: pc.utf8_trim(given, " "))),
    "length": (1, 1, _text(lambda given: pc.cast(pc.utf8_length(given), pa.int64()), pa.int64())),
    "substr": (2, 3, _substr),
    "abs": (1, 1, _number(pc.abs_checked, fails=True)),
    "round": (1, 2, _rounded),
    "floor": (1, 1, _number(pc.floor, fails=False)),
    "ceil": (1, 1, _number(pc.ceil, fails=False)),
    "year": (1, 1, _field(pc.year)),
    "month": (1, 1, _field(pc.month)),
    "day": (1, 1, _field(pc.day)),
    "hour": (1, 1, _hour),
    "date": (1, 1, _date),
}
"""By name: how many arguments at least and at most, and what makes the call."""
