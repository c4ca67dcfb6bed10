"""What the tests of samples share: reading Flink's expectations, comparing rows with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from changes.formats.engine.format import Format, RowChange
from changes.model.model import OP, Mode
from changes.routes.fold import fold

COLUMNS = ("id", "name", "description", "weight")


def lines(path: Path) -> list[bytes]:
    """The messages of a file, one a line."""
    return [line for line in path.read_bytes().splitlines() if line.strip()]


def check_changelog(format_: Format, values: Sequence[bytes], expected: dict[str, Any]) -> None:
    """Each change as people read it, in order."""
    told = []
    for value in values:
        for change in format_.explain(value):
            assert isinstance(change, RowChange)
            for image, mark in ((change.before, "-"), (change.after, "+")):
                if image is not None:
                    sign = mark + ("U" if change.op == "U" else change.op)
                    told.append([sign, *(single(image[name]) for name in COLUMNS)])
    assert told == [[single(value) for value in row] for row in expected["changelog"]]


def check_final_rows(format_: Format, values: Sequence[bytes], expected: dict[str, Any]) -> None:
    """What remains after net changes; columns without a type hold text."""
    changes = format_.table_decoder(Mode.UPSERT, None).decode(0, range(len(values)), values)
    assert changes is not None
    rows = fold(changes.table, changes.schema.keys).to_pylist()
    found = [
        [int(row["id"]), row["name"], row["description"], single(float(row["weight"]))]
        for row in rows
        if row[OP] == "U"
    ]
    assert sorted(found) == sorted(
        [single(value) for value in row] for row in expected["final_rows"]
    )


def single(value: object) -> object:
    """A fraction as the 32-bit number nearest to it: the weight's type in the source."""
    return pa.scalar(value, pa.float32()).as_py() if isinstance(value, float) else value


def shown(value: object) -> object:
    """A shown value to compare: a document by its content, a number by its value."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value, parse_float=Decimal)
    return Decimal(repr(value)) if isinstance(value, float) else value


def plain(value: object) -> object:
    """The same of what was expected."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value, parse_float=Decimal)
    return value
