"""Many Avro values at once: the very bytes that each gives by itself, or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.formats.engine.format import pack, unpack
from changes.formats.engine.layout import Refused
from changes.formats.wire import alike
from changes.formats.wire.avro import AvroTranslation
from changes.formats.wire.schemas import Schema, SchemaId
from changes.formats.wire.translation import Meanings, Translations
from tests.changes.formats.recordings.recorded import SOURCES, recording
from tests.changes.formats.wire.records import Kept, avro_bytes, json_record
from tests.changes.formats.wire.test_avro_beside_fastavro import SCHEMAS, values_of

MANY = SCHEMAS.flatmap(
    lambda schema: st.tuples(st.just(schema), st.lists(values_of(schema), min_size=1, max_size=6))
)
WIDE = {
    "type": "record", "name": "r", "fields": [
        {"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]},
        {"name": "c", "type": ["null", {"type": "record", "name": "s", "fields": [
            {"name": "d", "type": "int"}, {"name": "e", "type": ["string", "null"]},
            {"name": "f", "type": "boolean"}, {"name": "g", "type": ["null", "bytes"]},
        ]}]},
        {"name": "h", "type": "string"},
    ],
}  # fmt: skip

VALUES = st.fixed_dictionaries(
    {
        "a": st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.text(max_size=6),
        "c": st.none()
        | st.fixed_dictionaries(
            {
                "d": st.integers(-(2**31), 2**31 - 1),
                "e": st.none() | st.text(max_size=3),
                "f": st.booleans(),
                "g": st.none() | st.binary(max_size=3),
            }
        ),
        "h": st.text(max_size=6),
    }
)


def one_by_one(translation: AvroTranslation, values: list[bytes]) -> list[bytes] | None:
    """None where one of them is refused."""
    try:
        return [translation.wrapped(value, 0, None) for value in values]
    except Refused:
        return None


def translation_of(schema: Any) -> AvroTranslation:
    return AvroTranslation(Schema("AVRO", json.dumps(schema)))


@settings(deadline=None)
@given(MANY)
def test_any_values_give_what_each_gives_by_itself(case: tuple[Any, list[Any]]) -> None:
    """Of any schema; the block is refused for none that is whole."""
    schema, rows = case
    translation = translation_of(schema)
    values = [avro_bytes(schema, row) for row in rows]
    found = translation.wrapped_all(values, 0)
    if found is not None:
        assert found == one_by_one(translation, values)
    assert found is not None or _may_be_left(schema)


def _may_be_left(schema: Any) -> bool:
    """Whether zeros may be no value: a block with a null there is read one by one."""
    return "fixed" in json.dumps(schema) or "array" in json.dumps(schema)


@settings(deadline=None, max_examples=400)
@given(st.lists(VALUES, min_size=1, max_size=5), st.data())
def test_no_damage_becomes_another_value(rows: list[Any], data: st.DataObject) -> None:
    """Bytes changed, taken out, put in, or moved over to the next value."""
    translation = translation_of(WIDE)
    values = [avro_bytes(WIDE, row) for row in rows]
    assert translation.wrapped_all(values, 0) == one_by_one(translation, values)
    for _ in range(data.draw(st.integers(1, 3))):
        which = data.draw(st.integers(0, len(values) - 1))
        at = data.draw(st.integers(0, len(values[which])))
        some = data.draw(st.binary(max_size=3))
        gone = data.draw(st.integers(0, 3))
        values[which] = values[which][:at] + some + values[which][at + gone :]
        if data.draw(st.booleans()):
            cut = data.draw(st.integers(0, len(values[which])))
            after = (which + 1) % len(values)
            if after != which:
                values[after] = values[which][cut:] + values[after]
                values[which] = values[which][:cut]
    found = translation.wrapped_all(values, 0)
    wanted = one_by_one(translation, values)
    assert found is None or found == wanted


@pytest.mark.parametrize("source", SOURCES)
def test_a_real_debeziums_values(source: str) -> None:
    """Each type of the two databases, as it was recorded: all of one schema at once."""
    recorded = recording(source, "avro")
    by_schema: dict[str, list[bytes]] = {}
    for one in recorded.records:
        for data in (one.key, one.value):
            if data:
                by_schema.setdefault(str(int.from_bytes(data[1:5], "big")), []).append(data[5:])
    quick = 0
    for number, values in by_schema.items():
        translation = AvroTranslation(recorded.schemas[SchemaId("id", number)])
        found = translation.wrapped_all(values, 0)
        quick += found is not None
        assert found is None or found == one_by_one(translation, values)
    assert quick > len(by_schema) / 2


def test_a_number_of_all_lengths() -> None:
    """At each border of a byte, both signs, beside each other."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    numbers = [sign * (1 << bits) + more for bits in range(63) for sign in (1, -1) for more in
               (-1, 0, 1)] + [2**63 - 1, -(2**63)]  # fmt: skip
    translation = translation_of(schema)
    values = [avro_bytes(schema, {"a": number}) for number in numbers]
    assert translation.wrapped_all(values, 0) == one_by_one(translation, values)
    for damaged in (b"\x80\x00", b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01"):
        assert translation.wrapped_all([*values, damaged], 0) is None


def test_a_schema_that_holds_itself_is_left() -> None:
    """Its depth is that of each value."""
    schema = {
        "type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}],
    }  # fmt: skip
    assert translation_of(schema).wrapped_all([b"\x00", b"\x02\x00"], 0) is None


COLUMNS = {"id": "int32", "name": "string"}


def mixed(kept: Kept) -> list[bytes]:
    """A batch of several kinds: with headers, deletes and their tombstones, a plain key."""
    found: list[bytes] = []
    for number in range(alike.LEAST + 20):
        row = {"id": number, "name": f"row {number}"}
        made = kept.as_avro(json_record("u", row, row, COLUMNS))
        found.append(made)
        if number % 100 == 7:
            gone = unpack(kept.as_avro(json_record("d", None, row, COLUMNS)))
            found += [pack(gone.key, gone.value), pack(gone.key, None)]
        if number % 100 == 9:
            value = unpack(made).value
            found += [pack(b'{"id":1}', value), pack(unpack(made).key, value, (("h", b"1"),))]
    return found


def test_a_batch_is_translated_as_its_records_are(tmp_path: Path) -> None:
    """Most of them together, each in its place."""
    kept = Kept(tmp_path)
    values = mixed(kept)
    whole = Translations(kept.registry, Meanings())
    wanted = [whole.whole(value, {}) for value in values]
    fresh = Translations(kept.registry, Meanings())
    assert list(fresh.whole_all(values, {})) == wanted
    ready = alike.together(values, fresh._by_begin, lambda _: None)
    assert len(ready) == alike.LEAST + 20 + 6  # and the deletes
    assert {place: wanted[place] for place in ready} == ready


def test_a_bad_record_is_refused_in_its_place(tmp_path: Path) -> None:
    """Those before it are there, with the reason of a record by itself."""
    kept = Kept(tmp_path)
    values = mixed(kept)
    cut = unpack(values[300])
    assert cut.value is not None
    values[300] = pack(cut.key, cut.value[:-1])
    found: list[bytes] = []
    with pytest.raises(Refused, match="the value: schema id 2: its bytes are no value"):
        found.extend(Translations(kept.registry, Meanings()).whole_all(values, {}))
    assert len(found) == 300


def test_large_records_are_read_one_by_one(tmp_path: Path) -> None:
    """So that a batch of them does not take many times its memory."""
    kept = Kept(tmp_path)
    row = {"id": 1, "name": "x" * 40_000}
    values = [kept.as_avro(json_record("c", row, None, COLUMNS))] * alike.LEAST
    fresh = Translations(kept.registry, Meanings())
    assert len(list(fresh.whole_all(values, {}))) == len(values)
    assert alike.together(values, fresh._by_begin, lambda _: None) == {}
