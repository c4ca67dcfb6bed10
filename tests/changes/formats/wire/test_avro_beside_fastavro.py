"""Any Avro schema and value, beside fastavro; damage is never another value."""

import base64
import io
import json
from typing import Any

import fastavro
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from changes.formats.engine.layout import Refused
from tests.changes.formats.wire.records import avro_bytes, record_of, translated

NAMES = iter(range(10**9))
LEAVES = st.sampled_from(["int", "long", "float", "double", "boolean", "string", "bytes"])


def _named(items: Any) -> Any:
    """Schemas with names of their own."""
    return st.one_of(
        items,
        st.tuples(items, st.just(0)).map(lambda each: ["null", each[0]]).filter(
            lambda union: not isinstance(union[1], list)
        ),
        items.map(lambda each: {"type": "array", "items": each}),
        items.map(lambda each: {"type": "map", "values": each}),
        st.lists(items, min_size=1, max_size=4).map(
            lambda each: {**record_of(*each), "name": f"r{next(NAMES)}"}
        ),
        st.just(0).map(
            lambda _: {"type": "enum", "name": f"e{next(NAMES)}", "symbols": ["x", "y"]}
        ),
        st.integers(1, 5).map(lambda n: {"type": "fixed", "name": f"f{next(NAMES)}", "size": n}),
    )  # fmt: skip


SCHEMAS = st.lists(_named(_named(LEAVES)), min_size=1, max_size=4).map(
    lambda each: record_of(*each)
)


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values of a schema."""
    if isinstance(schema, list):
        return st.one_of(map(values_of, schema))
    kind = schema if isinstance(schema, str) else schema["type"]
    simple: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "boolean": st.booleans(),
        "string": st.text(max_size=5),
        "bytes": st.binary(max_size=5),
    }
    if kind in simple:
        return simple[kind]
    if kind == "record":
        return st.fixed_dictionaries({f["name"]: values_of(f["type"]) for f in schema["fields"]})
    if kind == "array":
        return st.lists(values_of(schema["items"]), max_size=3)
    if kind == "map":
        return st.dictionaries(st.text(max_size=3), values_of(schema["values"]), max_size=1)
    if kind == "enum":
        return st.sampled_from(schema["symbols"])
    return st.binary(min_size=schema["size"], max_size=schema["size"])


CASES = SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), values_of(schema)))


def as_json(value: Any) -> Any:
    """A value of fastavro's as JSON has it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, float) and value in (float("inf"), -float("inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


@settings(max_examples=300, deadline=None)
@given(CASES)
def test_it_reads_what_fastavro_reads(case: tuple[Any, Any]) -> None:
    """Any schema, any value: the same but for the shortest digits of a float."""
    schema, value = case
    data = avro_bytes(schema, value)
    read = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(schema), None)

    found = translated(schema, data)["payload"]

    assert avro_bytes(schema, back(schema, found)) == data
    if "float" not in json.dumps(schema):
        assert found == as_json(read)


def back(schema: Any, value: Any) -> Any:
    """A value of JSON's as fastavro writes it."""
    if value is None:
        return None
    if isinstance(schema, list):
        return back(schema[1], value)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in ("bytes", "fixed"):
        return base64.b64decode(value)
    if kind in ("float", "double"):
        return float(value)
    if kind == "record":
        return {f["name"]: back(f["type"], value[f["name"]]) for f in schema["fields"]}
    if kind == "array":
        return [back(schema["items"], each) for each in value]
    if kind == "map":
        return {name: back(schema["values"], each) for name, each in value.items()}
    return value


@settings(max_examples=300, deadline=None)
@given(CASES, st.data())
def test_damage_is_never_another_value(case: tuple[Any, Any], data: st.DataObject) -> None:
    """Bytes that are read are those that a writer writes of the value: nothing is left out of it.

    A change that makes another valid value can't be seen by anybody.
    """
    schema, value = case
    good = avro_bytes(schema, value)
    assume(good)
    place = data.draw(st.integers(0, len(good) - 1))
    damaged = data.draw(
        st.sampled_from([good[:place], good + good[place:], good[:place] + good[place + 1 :]])
        | st.binary(min_size=1, max_size=3).map(
            lambda other: good[:place] + other + good[place + 1 :]
        )
    )
    try:
        found = translated(schema, damaged)["payload"]
    except Refused:
        return
    text = json.dumps(schema)
    if '"map"' in text or '"array"' in text or "NaN" in json.dumps(found):
        return  # their blocks, or a number that is none, can be written in several ways
    assert avro_bytes(schema, back(schema, found)) == damaged
