"""Record keys that real converters wrote are read as JSON, by which partitions are checked."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from changes.formats import make_format
from changes.formats.engine.format import Format, mark_of, pack
from changes.formats.wire.record_keys import key_form
from changes.formats.wire.schemas import SchemaId
from changes.model.model import FormatOptions
from changes.model.registry import Registry
from tests.changes.formats.recordings.recorded import FORMS, SOURCES, Recording, recording
from tests.changes.formats.recordings.test_recorded import OF_APICURIO

KEYS = {"s.types": ["id"], "s.moved": ["a", "b"], "s.defaults": ["id"]}


def opened(name: str, form: str, recorded: Recording, folder: Path) -> Format:
    """A format with the recording's registry."""
    for identity, schema in recorded.schemas.items():
        (folder / identity.file_name).write_bytes(msgspec.json.encode(schema))
    registry = Registry("apicurio" if form in OF_APICURIO else "confluent", folder)
    return make_format(name, FormatOptions(registry=registry))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("format_", ["debezium", "auto"])
def test_keys_of_a_table_have_one_form_with_types(
    source: str, form: str, format_: str, tmp_path: Path
) -> None:
    """Those of tombstones, too; of other tables it is another one."""
    recorded = recording(source, form)
    opened_format = opened(format_, form, recorded, tmp_path)
    mark = mark_of("debezium") if format_ == "auto" else b""
    forms = {}
    for table, columns in KEYS.items():
        records = [one for one in recorded.of(table) if one.key is not None]
        packed = [mark + pack(one.key, one.value, one.headers) for one in records]
        keys = [key for key in opened_format.record_keys(packed) if key is not None]
        assert len(keys) == len(records)
        found = forms[table] = key_form(keys[0])
        assert [name for name, _ in found.columns] == columns
        assert found.typed
        assert found.fits(keys)
    assert len({found.text for found in forms.values()}) == len(forms)


@pytest.mark.parametrize(
    ("form", "columns"),
    [
        ("avro", ["a_b", "_1st"]),
        ("avro-headers", ["a_b", "_1st"]),
        ("jsonschema", ["a b", "1st"]),
    ],
)
def test_key_columns_are_called_as_the_key_calls_them(
    form: str, columns: list[str], tmp_path: Path
) -> None:
    """With a value, which knows the source's names, and without one: one form either way."""
    recorded = recording("mariadb", form)
    format_ = opened("debezium", form, recorded, tmp_path)
    first = recorded.of("s.od-d_n_me")[0]
    for value in (first.value, None):
        (key,) = format_.record_keys([pack(first.key, value, first.headers)])
        assert key is not None
        assert [name for name, _ in key_form(key).columns] == columns


def test_a_frame_is_no_part_of_the_json_behind_it(tmp_path: Path) -> None:
    """Id 123 is a brace in bytes, and id 10 the end of a line."""
    recorded = recording("mariadb", "jsonschema")
    first = recorded.of("s.types")[0]
    assert first.key is not None
    number = str(int.from_bytes(first.key[1:5], "big"))
    kept = recorded.schemas[SchemaId("id", number)]
    format_ = opened("debezium", "jsonschema", recorded, tmp_path)
    for other in (10, 123):
        (tmp_path / f"id-{other}.json").write_bytes(msgspec.json.encode(kept))
        (key,) = format_.record_keys([pack(bytes([0, 0, 0, 0, other]) + first.key[5:], None)])
        assert key is not None
        assert key_form(key).fits([key, key])
