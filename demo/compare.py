"""Compares two tables row by row, and says in plain lines where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_SHOWN = 5
"""Differences told of one table; the first few tell the cause, more bury it."""


def compare_all(
    expected: Mapping[str, pa.Table], found: Mapping[str, pa.Table], keys: Mapping[str, list[str]]
) -> list[str]:
    """Give what differs between two sets of tables, a line each; none when all are equal."""
    lines = [f"{name}: the table is missing" for name in sorted(expected.keys() - found.keys())]
    lines += [
        f"{name}: nobody expected this table" for name in sorted(found.keys() - expected.keys())
    ]
    for name in sorted(expected.keys() & found.keys()):
        lines += [f"{name}: {line}" for line in compare(expected[name], found[name], keys[name])]
    return lines


def compare(expected: pa.Table, found: pa.Table, keys: Sequence[str]) -> list[str]:
    """Give what differs between two tables whose rows ``keys`` tell apart; order is no matter."""
    layout = _compare_columns(expected, found)
    if layout:
        return layout
    wanted, there = _places(expected, keys), _places(found, keys)
    lines = _shorten(
        [f"{count} rows for key {_show(keys, key)}, expected 1" for key, count in
         Counter(_key_rows(found, keys)).items() if count > 1],
        "keys with several rows",
    )  # fmt: skip
    missing = [_show(keys, key) for key in wanted if key not in there]
    extra = [_show(keys, key) for key in there if key not in wanted]
    lines += _shorten([f"the row {key} is missing" for key in missing], "missing rows")
    lines += _shorten([f"the row {key} should not be there" for key in extra], "extra rows")
    common = [key for key in wanted if key in there]
    ours = expected.take(pa.array([wanted[key] for key in common], pa.int64()))
    theirs = found.take(pa.array([there[key] for key in common], pa.int64()))
    values = []
    for name in expected.column_names:
        left, right = ours[name].combine_chunks(), theirs[name].combine_chunks()
        for place in _unequal(left, right):
            shown = _show(keys, common[place])
            values.append(
                f"row {shown}, column {name}: expected {left[place].as_py()!r},"
                f" found {right[place].as_py()!r}"
            )
    return lines + _shorten(values, "differing values")


def _compare_columns(expected: pa.Table, found: pa.Table) -> list[str]:
    """Differences in names and types; where there are any, the rows are not looked at."""
    ours = {field.name: field.type for field in expected.schema}
    theirs = {field.name: field.type for field in found.schema}
    lines = [f"column {name} is missing" for name in ours if name not in theirs]
    lines += [f"column {name} should not be there" for name in theirs if name not in ours]
    lines += [
        f"column {name} is {theirs[name]}, expected {kind}"
        for name, kind in ours.items()
        if name in theirs and theirs[name] != kind
    ]
    return lines


def _key_rows(table: pa.Table, keys: Sequence[str]) -> list[tuple[object, ...]]:
    return list(zip(*(table[key].to_pylist() for key in keys), strict=True))


def _places(table: pa.Table, keys: Sequence[str]) -> dict[tuple[object, ...], int]:
    return {key: place for place, key in enumerate(_key_rows(table, keys))}


def _unequal(left: pa.Array, right: pa.Array) -> list[int]:
    """Places where two arrays differ; two nulls are equal, a null and a value are not."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    same = pc.or_(both_null, pc.fill_null(pc.equal(left, right), False))
    places: list[int] = pc.indices_nonzero(pc.invert(same)).to_pylist()
    return places


def _show(keys: Sequence[str], key: tuple[object, ...]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(keys, key, strict=True))


def _shorten(lines: list[str], what: str) -> list[str]:
    if len(lines) <= _SHOWN:
        return lines
    return [*lines[:_SHOWN], f"{len(lines)} {what} in all"]
