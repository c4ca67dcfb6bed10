"""Values as databases hold them, written as Debezium writes them, come back equal."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from changes.model.model import OP, Mode
from changes.routes.fold import fold
from tests.changes.formats.debezium.messages import (
    FORMAT,
    change,
    decode,
    envelope,
    key_with_schema,
    record,
    wrapped,
)

EPOCH = datetime(1970, 1, 1)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))
MICROSECOND = timedelta(microseconds=1)
DECIMAL = "org.apache.kafka.connect.data.Decimal"
TIME = "io.debezium.time."


def base64_of(value: bytes) -> str:
    return base64.b64encode(value).decode()


def unscaled(value: Decimal, scale: int) -> str:
    """Big-endian two's complement in as few bytes as Java's BigInteger takes."""
    number = int(value.scaleb(scale))
    return base64_of(
        number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
    )


def decimal(precision: int, scale: int) -> tuple[str, str, dict[str, str]]:
    return (
        "bytes",
        DECIMAL,
        {"scale": str(scale), "connect.decimal.precision": str(precision)},
    )


def micros(value: datetime) -> int:
    return (value.replace(tzinfo=None) - EPOCH) // MICROSECOND


def time_of(microseconds: int) -> str:
    """MySQL's TIME as the lake has it."""
    seconds, part = divmod(abs(microseconds), 10**6)
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{'-' if microseconds < 0 else ''}{shown}{f'.{part:06}' if part else ''}"


Column = tuple[Any, st.SearchStrategy[Any], Callable[[Any], Any], Callable[[Any], Any]]


def same(value: Any) -> Any:
    return value


COLUMNS: dict[str, Column] = {
    "i": ("int32", st.integers(-(2**31), 2**31 - 1), same, same),
    "l": ("int64", st.integers(-(2**63), 2**63 - 1), same, same),
    "b": ("boolean", st.booleans(), same, same),
    "f": ("float", st.floats(width=32, allow_nan=False), same, same),
    "g": ("double", st.floats(allow_nan=False), same, same),
    "s": ("string", st.text(max_size=20), same, same),
    "x": ("bytes", st.binary(max_size=20), base64_of, same),
    "d": (decimal(20, 6), st.decimals(-(10**13), 10**13, places=6), lambda v: unscaled(v, 6), same),
    "u": (("bytes", DECIMAL, {"scale": "0"}), st.integers(0, 2**64 - 1).map(Decimal),
          lambda v: unscaled(v, 0), same),
    "v": (("struct", "io.debezium.data.VariableScaleDecimal"), st.decimals(-99, 99, places=3),
          lambda v: {"scale": 3, "value": unscaled(v, 3)}, lambda v: f"{v:f}"),
    "n": (("bytes", "io.debezium.data.Bits", {"length": "60"}), st.integers(0, 2**60 - 1),
          lambda v: base64_of(v.to_bytes(8, "little")), same),
    "y": (("int32", f"{TIME}Date"), st.dates(date(1, 1, 1)),
          lambda v: v.toordinal() - EPOCH.toordinal(), same),
    "t": (("int64", f"{TIME}MicroTime"), st.integers(-(838 * 3600 * 10**6), 838 * 3600 * 10**6),
          same, time_of),
    "m": (("int64", f"{TIME}MicroTimestamp"), MOMENTS, micros, same),
    "o": (("string", f"{TIME}IsoTimestamp"), MOMENTS,
          lambda v: f"{v.isoformat()}Z", same),
    "z": (("string", f"{TIME}ZonedTimestamp"), MOMENTS.map(lambda v: v.replace(tzinfo=UTC)),
          lambda v: v.isoformat().replace("+00:00", "Z"), same),
    "p": (("struct", f"{TIME}StructuredTimestamp"), MOMENTS,
          lambda v: {"year": v.year, "month": v.month, "day": v.day, "hour": v.hour,
                     "minute": v.minute, "second": v.second, "nanos": v.microsecond * 1000}, same),
}  # fmt: skip
FIELDS = {"id": "int32"} | {name: kind for name, (kind, *_) in COLUMNS.items()}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | given for name, (_, given, *_) in COLUMNS.items()}),
    min_size=1,
    max_size=8,
)


def written(row: dict[str, Any]) -> dict[str, Any]:
    """A row as Debezium writes it."""
    return {
        name: value if value is None or name not in COLUMNS else COLUMNS[name][2](value)
        for name, value in row.items()
    }


def kept(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the lake has it."""
    return {
        name: value if value is None or name not in COLUMNS else COLUMNS[name][3](value)
        for name, value in row.items()
    }


@settings(max_examples=60)
@given(ROWS)
def test_values_come_back(rows: list[dict[str, Any]]) -> None:
    """Every value of every type is equal after the way through JSON, nulls included."""
    keyed = [{"id": place} | row for place, row in enumerate(rows)]
    values = [
        record(
            wrapped(envelope("c", written(row)), FIELDS),
            key_with_schema({"id": row["id"]}, {"id": "int32"}),
        )
        for row in keyed
    ]
    assert decode(*values).table.to_pylist() == [{OP: "U"} | kept(row) for row in keyed]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from("curd"),
        st.integers(0, 4),
        st.dictionaries(st.sampled_from("abc"), st.none() | st.integers() | st.text(max_size=3)),
        st.booleans(),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=100)
@given(CHANGES, st.integers(1, 20))
def test_net_rows_are_those_of_a_table(
    changes: list[tuple[str, int, dict[str, Any], bool]], size: int
) -> None:
    """However records are cut into calls, what remains is what a table would hold.

    Rows carry any of their columns, of any kind of value; updates may change the key to a free one.
    """
    table: dict[str, dict[str, Any]] = {}
    sent: dict[int, dict[str, Any]] = {}
    values = []
    for op, number, row, moves in changes:
        key = str(number)
        if op == "d":
            values.append(change("d", None, {"id": number}))
            table.pop(key, None)
            sent.pop(number, None)
            continue
        old = (number + 1) % 5 if moves and op == "u" and key not in table else number
        before = {"id": old, **sent.get(old, {})} if op == "u" else None
        sent[number] = (sent.pop(old, {}) if op == "u" else sent.get(number, {})) | row
        values.append(change(op, {"id": number, **row}, before))
        stored = table.pop(str(old), {}) if op == "u" else table.get(key, {})
        table[key] = stored | {name: None if v is None else str(v) for name, v in row.items()}
    decoder = FORMAT.table_decoder(Mode.UPSERT, None)
    lake: dict[str, dict[str, Any]] = {}
    for start in range(0, len(values), size):
        part = values[start : start + size]
        found = decoder.decode(0, range(len(part)), part)
        assert found is not None
        lake = applied(lake, fold(found.table, ("id",)).to_pylist())
    for row in (*table.values(), *lake.values()):
        for name in "abc":
            row.setdefault(name, None)
    assert lake == table


def applied(lake: dict[str, dict[str, Any]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The lake after a write: columns that a row lacks keep what its key, or its old key, had."""
    after = dict(lake)
    for row in rows:
        after.pop(row["id"], None)
    for row in rows:
        if row[OP] == "U":
            origin = (
                row["__binlogd_from_id"] if row.get("__binlogd_from") is not None else row["id"]
            )
            stored = dict(lake.get(origin, {}))
            for name in "abc":
                if name in row and row.get(f"__binlogd_has_{name}") is not False:
                    stored[name] = row[name]
            after[row["id"]] = stored
    return after
