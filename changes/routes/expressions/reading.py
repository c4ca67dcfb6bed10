"""Reads expressions for a configuration: one that has none is read without Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from changes.routes.expressions.expression import Expression


def read(text: str) -> Expression:
    """Raises ExpressionError where it is not understood."""
    from changes.routes.expressions.expression import Expression  # late

    return Expression(text)


def why_not_read(text: str) -> str | None:
    """Why it is not understood, in one line; None where it is."""
    from changes.routes.expressions.syntax import ExpressionError  # late

    try:
        read(text)
    except ExpressionError as error:
        return str(error)
    return None
