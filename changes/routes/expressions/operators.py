"""What each operator of an expression does, by the types of its arguments."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from changes.routes.expressions.syntax import ExpressionError
from changes.routes.expressions.types import (
    LARGEST_BYTES,
    NamedColumns,
    ResultTooLarge,
    Typed,
    Value,
    alike,
    as_decimal,
    as_number,
    constant,
    derived,
    exact_literal,
    is_number,
    of_kernel,
    placed,
    spread,
    wanted,
)

COMPARE = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
RECKON = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


def logic(name: str, args: list[Typed]) -> Typed:
    """AND, OR and NOT of three values. The right side of AND is not computed for rows in which the
    left side is false, nor that of OR where it is true: there it may have no result."""
    values = [arg if arg.constant is None else _as_bool(arg) for arg in args]
    for value in values:
        wanted(name.upper(), value, pa.types.is_boolean, "conditions")
    if name == "not":
        return of_kernel(pa.bool_(), pc.invert, *values)
    left, right = values
    kernel = pc.and_kleene if name == "and" else pc.or_kleene
    if not right.fails:
        return of_kernel(pa.bool_(), kernel, left, right)

    def run(rows: NamedColumns) -> Value:
        known = spread(left.run(rows), rows.count)
        decided = pc.fill_null(known if name == "or" else pc.invert(known), False)
        left_over = pc.invert(decided)
        part = rows.where(left_over)
        found = spread(right.run(part), part.count)
        return kernel(known, placed(pa.nulls(rows.count, pa.bool_()), left_over, found))

    return Typed(pa.bool_(), run, fails=True)


def _as_bool(arg: Typed) -> Typed:
    return constant(None, pa.bool_()) if pa.types.is_null(arg.type) else arg


def compared(name: str, args: list[Typed]) -> Typed:
    (left, right), _ = alike(args, f"comparing with {name}")
    return of_kernel(pa.bool_(), COMPARE[name], left, right)


def reckoned(name: str, args: list[Typed]) -> Typed:
    """Checked: an overflow is an error, and decimals keep all their digits."""
    for arg in args:
        wanted(name, arg, is_number, "numbers")
    if any(pa.types.is_decimal(arg.type) for arg in args):
        args = [as_decimal(exact_literal(arg)) for arg in args]
        if any(not pa.types.is_decimal(arg.type) for arg in args):
            args, _ = alike(args, name)
    else:
        args, type_ = alike(args, name)
        if not pa.types.is_floating(type_):
            args = [as_number(arg, pa.int64()) for arg in args]
    return derived(name, RECKON[name], args)


def divided(name: str, args: list[Typed]) -> Typed:
    """A quotient of decimals is cut off behind its last digit; by zero it is an error."""
    for arg in args:
        wanted(name, arg, is_number, "numbers")
    if all(pa.types.is_integer(arg.type) for arg in args):
        raise ExpressionError(
            "a / of whole numbers is ambiguous: DIV cuts off, CAST(… AS decimal(p,s)) keeps digits"
        )
    if any(pa.types.is_decimal(arg.type) for arg in args):
        args = [as_decimal(exact_literal(arg)) for arg in args]
    if any(not pa.types.is_decimal(arg.type) for arg in args):
        args, _ = alike(args, name)
    return derived(name, pc.divide_checked, args)


def whole(name: str, args: list[Typed]) -> Typed:
    """DIV and %, of whole numbers: cut off towards zero."""
    for arg in args:
        wanted(name, arg, pa.types.is_integer, "whole numbers")
    wide = [as_number(arg, pa.int64()) for arg in args]

    def rest(left: Value, right: Value) -> Value:
        return pc.subtract(left, pc.multiply(pc.divide_checked(left, right), right))

    return of_kernel(pa.int64(), pc.divide_checked if name == "div" else rest, *wide, fails=True)


def joined(name: str, args: list[Typed]) -> Typed:
    given = [constant(None, pa.string()) if pa.types.is_null(arg.type) else arg for arg in args]
    texts = [wanted("||", arg, pa.types.is_string, "texts (CAST makes one)") for arg in given]

    def run(rows: NamedColumns) -> Value:
        values = [text.run(rows) for text in texts]
        sizes = [
            v.nbytes if isinstance(v, pa.Array) else rows.count * len(v.as_py() or "")
            for v in values
        ]
        if sum(sizes) > LARGEST_BYTES:
            raise ResultTooLarge
        return pc.binary_join_element_wise(*values, "")

    return Typed(pa.string(), run, fails=True)


def is_in(name: str, args: list[Typed]) -> Typed:
    parts, _ = alike(args, "IN")
    value, *items = parts
    if any(item.constant is None for item in items):
        raise ExpressionError("IN takes literals")
    scalars = [item.constant for item in items if item.constant is not None]
    known = [scalar.as_py() for scalar in scalars if scalar.is_valid]
    wanted, unknown = pa.array(known, value.type), len(known) < len(scalars)

    def run(given: Value) -> Value:
        found = pc.is_in(given, wanted)
        # What is not among them is unknown where one of them is.
        sure = pc.is_valid(given) if not unknown else pc.and_(pc.is_valid(given), found)
        return pc.if_else(sure, found, pa.scalar(None, pa.bool_()))

    return of_kernel(pa.bool_(), run, value)


def like(name: str, args: list[Typed]) -> Typed:
    text, pattern = args
    wanted("LIKE", text, pa.types.is_string, "text")
    if pattern.constant is None or not pa.types.is_string(pattern.type):
        raise ExpressionError("LIKE takes a pattern in quotes")
    like = pattern.constant.as_py()
    return of_kernel(pa.bool_(), lambda given: pc.match_like(given, like), text)
