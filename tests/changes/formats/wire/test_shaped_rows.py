"""What a route makes of rows is the same on every wire."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import Format
from changes.formats.wire.format import Debezium
from changes.model.model import FormatOptions, Mode
from changes.routes.shaping.decoder import FormatRecords, ShapedDecoder
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.shape import Shape
from tests.changes.formats.wire.records import Kept, json_record

FIELDS = {"id": "int32", "name": "string", "n": "int64"}
ONE, TWO = {"id": 1, "name": "ann", "n": 5}, {"id": 2, "name": "bob", "n": None}
CHANGES = [
    json_record("c", ONE, fields=FIELDS),
    json_record("c", TWO, fields=FIELDS),
    json_record("u", ONE | {"n": 7}, ONE, FIELDS),
    json_record("d", None, TWO, FIELDS),
]


def shaped(format_: Format, shape: Shape, values: Sequence[bytes], mode: Mode) -> object:
    records = FormatRecords(format_, lambda: 1.0)
    decoder = ShapedDecoder(format_.table_decoder(mode, None), shape, records)
    try:
        changes = decoder.decode(0, range(len(values)), values)
    except ShapeRefused as refused:
        return str(refused)
    assert changes is not None
    return changes.schema, changes.table.to_pylist()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "shape",
    [
        Shape(masks=(("name", "sha256"),), salt="a salt of 16 characters"),
        Shape(masks=(("name", "keep_last(1)"),)),
        Shape(filter="n > 5"),
        Shape(filter="name = 'bob' OR n IS NULL", drop=("n",)),
        Shape(rename=(("id", "key"), ("name", "called"))),
        Shape(columns=("id", "n")),
        Shape(computed=(("twice", "n * 2"), ("loud", "upper(name)"))),
        Shape(metadata=("_offset", "_partition")),
    ],
)
def test_routes_shape_rows_of_avro_as_those_of_json(
    tmp_path: Path, shape: Shape, mode: Mode
) -> None:
    kept = Kept(tmp_path)
    avro = [kept.as_avro(value) for value in CHANGES]
    plain = shaped(DebeziumJson(FormatOptions()), shape, CHANGES, mode)
    assert shaped(Debezium(kept.options()), shape, avro, mode) == plain
