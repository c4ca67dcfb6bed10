"""Debezium's records in Avro become the rows that they become in JSON."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from changes.formats.debezium.json import DebeziumJson
from changes.formats.wire.format import Debezium
from changes.model.model import Mode
from tests.changes.formats.debezium.test_roundtrip import FIELDS, ROWS, written
from tests.changes.formats.wire.records import Kept, json_record


@settings(max_examples=40)
@given(ROWS)
def test_values_come_back(rows: list[dict[str, Any]]) -> None:
    """Every value of every type is equal after the way through Avro, nulls included."""
    values = [
        json_record("c", {"id": n, **written(row)}, fields=FIELDS) for n, row in enumerate(rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder))
        avro = [kept.as_avro(value) for value in values]

        found = (
            Debezium(kept.options())
            .table_decoder(Mode.UPSERT, None)
            .decode(7, range(len(avro)), avro)
        )
        heads = list(Debezium(kept.options()).heads(avro))

    plain = DebeziumJson(kept.options())
    expected = plain.table_decoder(Mode.UPSERT, None).decode(7, range(len(avro)), values)
    assert found is not None
    assert expected is not None
    assert found.table.equals(expected.table)
    assert found.schema == expected.schema
    assert heads == list(plain.heads(values))
