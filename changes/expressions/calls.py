"""What operators and functions of expressions are made with."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from changes.expressions.rows import Value
from changes.expressions.syntax import ExpressionError
from changes.expressions.types import Typed, as_type, decimal_of, words_of

LARGEST_BYTES = 64 << 20
"""Of the texts that one || makes at once. More rows are then computed in parts; one row alone is
in error."""


class TooLarge(Exception):
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
