"""Inserts that lack a column which an expression uses: its default at the source is in no message,
and what is made of it can't be right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats import make_format
from changes.formats.engine.format import pack
from changes.model.model import Changes, FormatOptions, Mode
from changes.routes.shaping.decoder import FormatRecords, ShapedDecoder
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.shape import Shape

WHOLE = {"id": "1", "n": "5", "note": "1"}
BARE = {"id": "2", "note": "1"}
NULLED: dict[str, Any] = {"id": "3", "n": "1", "note": None}
"""A null shows that the writer leaves none out."""


def canal(row: dict[str, Any]) -> bytes:
    return json.dumps({
        "database": "s", "table": "t", "type": "INSERT", "isDdl": False, "es": 1, "ts": 1,
        "pkNames": ["id"], "mysqlType": dict.fromkeys(row, "int"), "data": [row], "id": 1,
    }).encode()  # fmt: skip


def maxwell(row: dict[str, Any]) -> bytes:
    said = {"database": "s", "table": "t", "type": "insert", "ts": 1, "xid": 1, "data": row,
            "primary_key_columns": ["id"]}  # fmt: skip
    return pack(None, json.dumps(said).encode())


FORMATS = {"canal-json": canal, "maxwell-json": maxwell}


def decoded(name: str, shape: Shape, mode: Mode, *rows: dict[str, Any]) -> Changes | None:
    """The second batch of a table, whose first one was whole."""
    format_ = make_format(name, FormatOptions())
    inner = format_.table_decoder(mode, ("id",))
    decoder = ShapedDecoder(inner, shape, FormatRecords(format_, lambda: 0.0))
    decoder.decode(0, [0], [FORMATS[name](WHOLE)])
    values = [FORMATS[name](row) for row in rows]
    return decoder.decode(0, range(1, 1 + len(values)), values)


@pytest.mark.parametrize("drop", [(), ("n",)])
@pytest.mark.parametrize(
    ("name", "mode"),
    [("canal-json", Mode.APPEND), ("maxwell-json", Mode.UPSERT), ("maxwell-json", Mode.APPEND)],
)
def test_what_is_computed_of_it_does_not_count_as_carried(
    name: str, mode: Mode, drop: tuple[str, ...]
) -> None:
    """So the write marks the computed column, also where the target does not show the other."""
    shape = Shape(computed=(("c", "CAST(n AS int) * 2"), ("d", "id || '!'")), drop=drop)
    if name == "canal-json":
        shape = Shape(computed=(("c", "n * 2"), ("d", "id + 1")), drop=drop)
    changes = decoded(name, shape, mode, BARE, NULLED)
    assert changes is not None
    assert changes.carried == {"id", "note", "d"}
    whole = decoded(name, shape, mode, WHOLE, NULLED)
    assert whole is not None
    assert {"c", "d"} <= (whole.carried or frozenset())


@pytest.mark.parametrize("drop", [(), ("n",)])
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", FORMATS)
def test_a_filter_that_uses_it_refuses(name: str, mode: Mode, drop: tuple[str, ...]) -> None:
    """Whether such a row is in the target is not known: no mark would tell which."""
    shape = Shape(filter="CAST(n AS int) = 5" if name != "canal-json" else "n = 5", drop=drop)
    with pytest.raises(ShapeRefused, match="without column n"):
        decoded(name, shape, mode, BARE, NULLED)
