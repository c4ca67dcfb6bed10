"""What a real Debezium wrote through real converters becomes what its JSON becomes.

But for what a wire does not have: Avro's converter writes the default for a NULL, Protobuf's knows
neither names of types nor those of columns.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import Format, pack
from changes.formats.wire.format import Debezium
from changes.model.model import FormatOptions, Head, Kind, Mode
from changes.model.registry import Registry
from tests.changes.formats.recordings.recorded import FORMS, SOURCES, Record, recording
from tests.changes.formats.recordings.test_recorded import OF_APICURIO, UNREAD

Time = "io.debezium.time."
LOST = (
    ("da", f"{Time}Date"), ("tt", f"{Time}MicroTime"), ("tt6", f"{Time}MicroTime"),
    ("tt3", f"{Time}Time"), ("dt", f"{Time}Timestamp"), ("dt3", f"{Time}Timestamp"),
    ("dt6", f"{Time}MicroTimestamp"), ("ts", f"{Time}MicroTimestamp"),
    ("ts0", f"{Time}Timestamp"), ("ts3", f"{Time}Timestamp"),
    ("ts6", f"{Time}ZonedTimestamp"), ("tz", f"{Time}ZonedTimestamp"),
    ("bi", "io.debezium.data.Bits(10)"), ("bits", "io.debezium.data.Bits(3)"),
)  # fmt: skip
"""The types that Protobuf's converter loses; a configuration gives them."""

CASES = [
    (source, form, table)
    for source in SOURCES
    for form in FORMS
    if form != "json"
    for table in sorted({one.table for one in recording(source, "json").records})
]


class Read(NamedTuple):
    """What a table's records become."""

    heads: Sequence[Head]
    rows: Sequence[dict[str, Any]]
    types: dict[str, Any]


def read(format_: Format, records: Sequence[Record], lost: Sequence[tuple[str, str]]) -> Read:
    values = [pack(one.key, one.value, one.headers) for one in records]
    heads = list(format_.heads(values))
    rows = [v for v, head in zip(values, heads, strict=True) if head.kind is Kind.ROWS]
    decoder = format_.table_decoder(Mode.UPSERT, None, tuple(lost))
    changes = decoder.decode(0, range(len(rows)), rows)
    if changes is None:
        return Read(heads, [], {})
    types = {field.name: field.type for field in changes.table.schema}
    return Read(heads, changes.table.to_pylist(), types)


SPELLED = {"a b": "a_b", "x.y": "x_y", "1st": "_1st"}
"""Names that Avro and Protobuf don't have."""

FILLED = {"a": 7, "t": "x", "d": Decimal("1.50")}


def like(row: dict[str, Any], source: str, form: str, table: str) -> dict[str, Any]:
    """A row of the JSON as the form has it."""
    if form == "jsonschema":
        return row
    if table == "s.defaults" and row.get("__binlogd_op") == "U":
        return {n: FILLED.get(n) if each is None else each for n, each in row.items()}
    # MariaDB's connector sends the source's names beside the types; Protobuf's converter does not.
    if table.startswith("s.od-d") and (source == "postgres" or form.startswith("proto")):
        return {SPELLED.get(name, name): each for name, each in row.items()}
    if (
        form.startswith("proto") and row.get("__binlogd_op") == "U"
    ):  # an empty list is no list there
        return {n: "[]" if n in ("ia", "ta") and v is None else v for n, v in row.items()}
    return row


def compact(row: dict[str, Any]) -> str:
    """A row with documents written alike, and a NaN that equals itself."""
    documents = {
        name: json.dumps(json.loads(each), separators=(",", ":"))
        for name, each in row.items()
        if isinstance(each, str) and each.startswith("[")
    }
    return repr(row | documents)


@pytest.mark.parametrize(("source", "form", "table"), CASES)
def test_the_rows_are_those_of_the_json(source: str, form: str, table: str, tmp_path: Path) -> None:
    """The same heads, rows and types."""
    recorded, plain = recording(source, form), recording(source, "json")
    for identity, schema in recorded.schemas.items():
        (tmp_path / identity.file_name).write_bytes(msgspec.json.encode(schema))
    registry = Registry("apicurio" if form in OF_APICURIO else "confluent", tmp_path)
    of_proto = form.startswith("proto")
    if of_proto and table == UNREAD:
        assert not recorded.of(table)
        return
    extra = {"absent_fields": "zero"} if of_proto else {}
    kinds = LOST if of_proto else ()
    if source == "mariadb":
        kinds = tuple((n, f"{Time}ZonedTimestamp" if n == "ts" else kind) for n, kind in kinds)

    found = read(Debezium(FormatOptions(extra=extra, registry=registry)), recorded.of(table), kinds)
    expected = read(DebeziumJson(FormatOptions()), plain.of(table), ())

    assert list(found.heads) == list(expected.heads)
    rows = [like(row, source, form, table) for row in expected.rows]
    assert list(map(compact, found.rows)) == list(map(compact, rows))
    assert [*found.types.values()] == [*expected.types.values()]
