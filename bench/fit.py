"""Least squares for a few unknowns: costs of parts from costs of the whole."""

from __future__ import annotations

from collections.abc import Sequence


def least_squares(facts: Sequence[Sequence[float]], results: Sequence[float]) -> list[float]:
    """The factors by which facts give the results best. Raises ZeroDivisionError where the facts
    don't tell the factors apart."""
    unknown = range(len(facts[0]))
    # Each column between 0 and 1: a count of rows squared beside a 1 would drown it.
    scales = [max(abs(fact[at]) for fact in facts) for at in unknown]
    scaled = [[fact[at] / scales[at] for at in unknown] for fact in facts]
    left = [[sum(row[a] * row[b] for row in scaled) for b in unknown] for a in unknown]
    right = [sum(row[a] * r for row, r in zip(scaled, results, strict=True)) for a in unknown]
    found = _solved(left, right)
    return [value / scale for value, scale in zip(found, scales, strict=True)]


def _solved(left: list[list[float]], right: list[float]) -> list[float]:
    """Gauss's elimination."""
    rows = [[*row, value] for row, value in zip(left, right, strict=True)]
    size = len(rows)
    for at in range(size):
        best = max(range(at, size), key=lambda number: abs(rows[number][at]))
        rows[at], rows[best] = rows[best], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for number in range(size):
            if number != at:
                factor = rows[number][at]
                pairs = zip(rows[number], rows[at], strict=True)
                rows[number] = [value - factor * one for value, one in pairs]
    return [row[-1] for row in rows]
