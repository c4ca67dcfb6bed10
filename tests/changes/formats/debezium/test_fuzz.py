"""Damaged records: only BadMessage and BadRecord come out, soon, and never a bad decoder."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import pack
from changes.model.model import BadMessage, FormatOptions, Mode
from tests.changes.formats.debezium.messages import (
    FORMAT,
    dumps,
    envelope,
    key_with_schema,
    wrapped,
)
from tests.changes.formats.debezium.mutated import damaged, survive
from tests.changes.formats.debezium.test_roundtrip import COLUMNS, FIELDS
from tests.changes.formats.debezium.test_values import VALUES

_SEEDS = 400
_LONGEST_S = 5.0
"""For one value: thousands of times what it takes, and far below a hang."""

ROW = {"id": 1, "s": "text", "i": 5, "g": 1.5, "x": "AQ==", "z": "2020-01-01T00:00:00Z"}
TYPED = {f"c{n}": kind for n, (kind, *_) in enumerate(VALUES)}
TYPED_ROW = {f"c{n}": given for n, (_, given, *_) in enumerate(VALUES)}
KEY = dumps(key_with_schema({"id": 1}, {"id": "int32"}))
SAMPLES = [
    dumps(envelope("u", ROW, ROW)),
    dumps(envelope("d", None, ROW)),
    dumps(wrapped(envelope("c", ROW), {name: FIELDS[name] for name in ROW})),
    dumps(wrapped(envelope("u", {"id": 1, **TYPED_ROW}), {"id": "int32", **TYPED})),
    dumps({**ROW, "__op": "u", "__table": "orders", "__db": "shop", "__deleted": "false"}),
    dumps({"source": {"connector": "mysql"}, "databaseName": "d", "ddl": "DROP TABLE t"}),
    dumps({"status": "BEGIN", "id": "1", "event_count": 2}),
]  # fmt: skip
GOOD = [pack(KEY, dumps(wrapped(envelope("c", {**ROW, "id": n}), FIELDS))) for n in range(3)]


@pytest.mark.parametrize("mode", [Mode.UPSERT, Mode.APPEND])
def test_damaged_values(mode: Mode) -> None:
    """Whatever was done to a record, it is read or refused; each outcome is seen."""
    seen: Counter[str] = Counter()
    for seed in range(_SEEDS):
        value = pack(KEY, damaged(SAMPLES, seed))
        begun = time.monotonic()
        seen[survive(DebeziumJson(FormatOptions()), value, mode, GOOD)] += 1
        assert time.monotonic() - begun < _LONGEST_S, seed
    assert {"rows", "bad message", "bad record", "ddl", "nothing"} <= seen.keys()


def test_damaged_keys() -> None:
    """Likewise with what is in the record key: without a value it is all there is."""
    keys = [KEY, b'{"id":1}', b"****", b'{"schema":null,"payload":{"id":1}}']
    seen: Counter[tuple[bool, str]] = Counter()
    for seed in range(_SEEDS):
        has_value = bool(seed % 2)
        value = pack(damaged(keys, seed), SAMPLES[seed % 4] if has_value else None)
        begun = time.monotonic()
        seen[has_value, survive(DebeziumJson(FormatOptions()), value, Mode.UPSERT, GOOD)] += 1
        assert time.monotonic() - begun < _LONGEST_S, seed
    # Of a tombstone it may tell no table, which is said; with a value it is a bad record.
    assert {outcome for has_value, outcome in seen if not has_value} >= {"rows", "bad message"}
    assert {outcome for has_value, outcome in seen if has_value} == {"rows", "bad record"}


def test_damaged_packing() -> None:
    """What was packed by nobody is refused as well."""
    seen = Counter(survive(FORMAT, damaged(GOOD, seed), Mode.UPSERT) for seed in range(_SEEDS))
    assert seen["bad message"] > _SEEDS // 2
    for size in range(12):
        assert survive(FORMAT, GOOD[0][:size], Mode.UPSERT) == "bad message"


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000, '{"payload":' * 50_000])
def test_deep_values(deep: str) -> None:
    """Nesting without an end is refused, not a crash."""
    with pytest.raises(BadMessage):
        FORMAT.peek(pack(KEY, deep.encode()))


@pytest.mark.parametrize("number", ["1e999999999", "9" * 100_000, "-1e-999999999", "0e999999999"])
@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_enormous_numbers(name: str, number: str) -> None:
    """A few bytes must not become gigabytes of digits, whatever the column's type."""
    text = json.dumps(wrapped(envelope("c", {"id": 1, name: "@"}), FIELDS)).replace('"@"', number)
    begun = time.monotonic()
    variable = text.replace(number, f'{{"scale": {number}, "value": "AQ=="}}')
    for each in (text, variable):
        value = pack(KEY, each.encode())
        found = survive(DebeziumJson(FormatOptions()), value, Mode.UPSERT, GOOD)
        assert found in ("rows", "bad message", "bad record")
    assert time.monotonic() - begun < _LONGEST_S
