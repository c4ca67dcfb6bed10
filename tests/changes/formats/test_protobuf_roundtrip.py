"""Rows of every type, written by an encoder of the facts alone, come back as they were."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode
from tests.changes.formats import protobuf_records as wire

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
MOMENT = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31))

TYPES: dict[str, tuple[str, st.SearchStrategy[Any], int]] = {
    "tiny": ("tinyint(4)", st.integers(-128, 127), 1),
    "medium": ("mediumint(9)", st.integers(-(2**23), 2**23 - 1), 3),
    "whole": ("int(10) unsigned", st.integers(0, 2**32 - 1), 7),
    "big": ("bigint(20)", st.integers(-(2**63), 2**63 - 1), 4),
    "ubig": ("bigint(20) unsigned", st.integers(0, 2**64 - 1), 8),
    "exact": ("decimal(38,10)", st.decimals(-(10**27), 10**27, places=10), 12),
    "real": ("double", st.floats(allow_nan=False, allow_infinity=False), 10),
    "words": ("varchar(20)", TEXT, 13),
    "raw": ("varbinary(20)", st.binary(max_size=20), 11),
    "day": ("date", st.dates(date(1000, 1, 1)), 13),
    "local": ("datetime(6)", MOMENT, 13),
    "moment": ("timestamp(6)", MOMENT.map(lambda when: when.replace(tzinfo=UTC)), 13),
}
"""By column: MySQL's type, values, the number that Tencent gives the kind."""

ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values, _) in TYPES.items()}),
    min_size=1,
    max_size=5,
)


def printed(value: Any) -> str:
    """A value as MySQL shows it."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def canal(rows: list[dict[str, Any]]) -> bytes:
    made = []
    for number, row in enumerate(rows):
        columns = [wire.canal_column("id", str(number), "int(11)", key=True)]
        for name, (mysql, _, _) in TYPES.items():
            value = row[name]
            columns.append(
                wire.canal_column(name, None if value is None else printed(value), mysql)
            )
        made.append(wire.canal_row((), columns))
    return wire.canal_packet(
        wire.canal_mark(1), wire.canal_rows("INSERT", made), wire.canal_mark(3)
    )


def dts_value(kind: int, value: Any) -> bytes:
    if value is None:
        return wire.NIL
    if kind == 11:
        return wire.dts_bytes(value)
    if kind != 13:
        return wire.dts_number(kind, printed(value))
    zone = " +00:00" if isinstance(value, datetime) and value.tzinfo else ""
    return wire.dts_text(printed(value) + zone)


def dts(rows: list[dict[str, Any]]) -> bytes:
    columns = [wire.dts_column("id", "int(11)", key=True)]
    columns += [wire.dts_column(name, mysql) for name, (mysql, _, _) in TYPES.items()]
    made = []
    for number, row in enumerate(rows):
        values = [dts_value(kind, row[name]) for name, (_, _, kind) in TYPES.items()]
        made.append(wire.dts_row((), [wire.dts_number(3, str(number)), *values]))
    return wire.dts_message(wire.dts_begin(), wire.dts_rows(0, columns, made), wire.dts_commit())


def read(name: str, value: bytes) -> list[dict[str, Any]]:
    changes = (
        FORMATS[name](FormatOptions()).table_decoder(Mode.UPSERT, None).decode(0, [0], [value])
    )
    assert changes is not None
    return [{name: row[name] for name in TYPES} for row in changes.table.to_pylist()]


@settings(max_examples=40)
@given(ROWS)
def test_canal_protobuf(rows: list[dict[str, Any]]) -> None:
    """Nothing rounded, shifted or lost; null and the empty text apart."""
    assert read("canal-protobuf", canal(rows)) == rows


@settings(max_examples=40)
@given(ROWS)
def test_tencent_dts(rows: list[dict[str, Any]]) -> None:
    """Nothing rounded, shifted or lost; null and the empty text apart."""
    assert read("tencent-dts", pack(None, dts(rows))) == rows
