"""A changelog's row of an update has what either of its images tells.

Canal's JSON and Maxwell's have no more in the old image than in the new one.
"""

from __future__ import annotations

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.aliyun.messages import integer, record, text
from tests.changes.formats.debezium.messages import POSTGRES, dumps, envelope
from tests.changes.formats.json_messages import ogg

TYPES = {"id": "int", "name": "text", "note": "text"}


def cells(**values: str | None) -> list[bytes]:
    return [wire.canal_column(n, v, TYPES[n], key=n == "id") for n, v in values.items()]


def packet(event: str, before: list[bytes], after: list[bytes]) -> bytes:
    return wire.canal_packet(wire.canal_rows(event, [wire.canal_row(before, after)]))


UNSENT = "__debezium_unavailable_value"
FIELDS = (("id", 8), ("name", 253), ("note", 253))
WHOLE = {"id": "1", "name": "a", "note": "long"}

CASES = {
    "canal-protobuf": [
        packet("INSERT", [], cells(**WHOLE)),
        packet("UPDATE", cells(**WHOLE), cells(name="b")),
    ],
    "debezium-json": [
        pack(b'{"id":1}', dumps(envelope("c", dict(WHOLE)))),
        pack(
            b'{"id":1}',
            dumps(envelope("u", WHOLE | {"name": "b", "note": UNSENT}, dict(WHOLE), POSTGRES)),
        ),
    ],
    "ogg-json": [
        ogg("I", dict(WHOLE)),
        ogg("U", {"name": "b"}, dict(WHOLE)),
    ],
    "aliyun-dts-avro": [
        record("INSERT", [integer(1), text("a"), text("long")], fields=FIELDS),
        record(
            "UPDATE", ["NONE", text("b"), "NONE"], [integer(1), text("a"), text("long")], FIELDS
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("first", [0, 1], ids=["behind its insert", "alone"])
@pytest.mark.parametrize("name", CASES)
def test_what_only_the_old_row_holds_did_not_change(name: str, first: int) -> None:
    """Null in its place would be a change that nobody made, and without its key nobody's."""
    decoder = FORMATS[name](FormatOptions()).table_decoder(Mode.APPEND, None)
    values = CASES[name][first:]
    changes = decoder.decode(0, range(len(values)), values)
    assert changes is not None
    row = changes.table.to_pylist()[-1]
    assert [str(row[n]) for n in ("_op", "id", "name", "note")] == ["U", "1", "b", "long"]


def test_documents_that_only_the_old_row_holds() -> None:
    """A column's kind may show itself there first."""
    decoder = FORMATS["ogg-json"](FormatOptions()).table_decoder(Mode.APPEND, None)
    values = [ogg("I", {"id": 1, "d": "x"}), ogg("U", {"id": 1}, {"id": 1, "d": {"a": [1, None]}})]
    changes = decoder.decode(0, [0, 1], values)
    assert changes is not None
    assert changes.table["d"].to_pylist() == ["x", '{"a":[1,null]}']


def test_a_minimal_image_of_a_table_without_key() -> None:
    """There MySQL logs the whole old row, and of the new one what changed."""
    rows = [
        wire.canal_row([wire.canal_column(n, v, TYPES[n]) for n, v in WHOLE.items()], [new])
        for new in (
            wire.canal_column("name", "b", "text"),
            wire.canal_column("note", None, "text"),
        )
    ]
    decoder = FORMATS["canal-protobuf"](FormatOptions()).table_decoder(Mode.UPSERT, None)
    changes = decoder.decode(0, [0], [wire.canal_packet(wire.canal_rows("UPDATE", rows))])
    assert changes is not None
    shown = changes.table.select(["id", "name", "note"]).to_pylist()
    assert shown == [
        {"id": 1, "name": "b", "note": "long"},
        {"id": 1, "name": "a", "note": None},
    ]
