"""What a route shows of a table, by a few lines of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from changes.routes.shaping.shape import Shape
from tests.shaping.rig import Row, Rows


def shown(shape: Shape, rows: Rows) -> list[Row]:
    """The rows as the target is to show them, in the order of their keys at the source."""
    return [dict(_shown(shape, {"id": key, **row})) for key, row in sorted(rows.items())]


def _shown(shape: Shape, row: Row) -> Iterator[tuple[str, object]]:
    masks, names = dict(shape.masks), dict(shape.rename)
    for name, value in row.items():
        if shape.columns is not None and name not in shape.columns:
            continue
        if name in shape.drop:
            continue
        yield names.get(name, name), _masked(masks.get(name), value, shape.salt)


def _masked(mask: str | None, value: object, salt: str) -> object:
    if mask is None or value is None:
        return value
    text = str(value)
    if mask == "redact":
        return "***"
    if mask == "sha256":
        return hashlib.sha256((salt + text).encode()).hexdigest()
    keep = int(mask.removeprefix("keep_last(").removesuffix(")"))
    if len(text) <= keep:
        return "*" * len(text)
    return "*" * (len(text) - keep) + text[-keep:]
