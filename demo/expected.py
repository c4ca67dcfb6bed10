"""The shop's final state as Arrow tables, typed as the lake must have them.

It is the demo's oracle, so it shares no code with the daemon: texts become Python values one by
one, and those become Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from changes.model.model import CHANGELOG_NAMES
from changes.model.types import CHANGELOG_COLUMNS
from changes.sql.spark.schema import lake_name
from demo.shop import Shop
from demo.tables import Field

_WHOLE = {"tinyint": pa.int32(), "smallint": pa.int32(), "mediumint": pa.int32()}
_TEXT = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}


def arrow_type(mysql_type: str) -> pa.DataType:
    """Tell how the lake holds a column of this MySQL type; raises ValueError for one not used."""
    match = re.fullmatch(r"(\w+)(?:\((\d+)(?:,(\d+))?\))?( unsigned)?", mysql_type)
    if match is None:
        raise ValueError(f"not a MySQL type: {mysql_type!r}")
    name, digits, scale, unsigned = match.groups()
    if name in _TEXT:
        return pa.string()
    match name:
        case "tinyint" | "smallint" | "mediumint":
            return _WHOLE[name]
        case "int":
            return pa.int64() if unsigned else pa.int32()
        case "bigint":
            return pa.decimal128(20, 0) if unsigned else pa.int64()
        case "decimal":
            return pa.decimal128(int(digits), int(scale))
        case "float":
            return pa.float32()
        case "double":
            return pa.float64()
        case "date":
            return pa.date32()
        case "datetime":
            return pa.timestamp("us")
        case "timestamp":
            return pa.timestamp("us", "UTC")
    raise ValueError(f"the shop has no column of type {mysql_type!r}")


def _reader(kind: pa.DataType) -> Callable[[str], object]:
    """How a text of the source becomes a Python value for a column of this type."""
    if pa.types.is_integer(kind):
        return int
    if pa.types.is_decimal(kind):
        return Decimal
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_date(kind):
        return date.fromisoformat
    if pa.types.is_timestamp(kind):
        if kind.tz:
            return lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC)
        return datetime.fromisoformat
    return str


def _column(texts: Iterable[str | None], kind: pa.DataType) -> pa.Array:
    read = _reader(kind)
    return pa.array([None if text is None else read(text) for text in texts], kind)


def _columns(fields: Sequence[Field], rows: Sequence[tuple[str | None, ...]]) -> dict[str, Any]:
    kinds = [arrow_type(field.mysql_type) for field in fields]
    return {
        field.name: _column((row[place] for row in rows), kind)
        for place, (field, kind) in enumerate(zip(fields, kinds, strict=True))
    }


def keys_of(shop: Shop) -> dict[str, list[str]]:
    """What tells the rows of each table apart: its key, or the position in a changelog."""
    places = [lake_name(column) for column in CHANGELOG_NAMES[1:]]
    return {name: live.names[: live.spec.keys] or places for name, live in shop.live.items()}


def expected_tables(shop: Shop, offsets: Sequence[int], partition: int = 0) -> dict[str, pa.Table]:
    """Give every table as the lake must show it once the whole stream is applied.

    ``offsets`` holds the Kafka offset of each message, in the order of ``shop.messages()``.
    """
    return {
        name: _state(shop, name) if live.spec.keys else _changelog(shop, name, offsets, partition)
        for name, live in shop.live.items()
    }


def _state(shop: Shop, name: str) -> pa.Table:
    live = shop.live[name]
    return pa.table(_columns(live.fields, list(live.rows.values())))


def _changelog(shop: Shop, name: str, offsets: Sequence[int], partition: int) -> pa.Table:
    """A table without a key: one row for each change, with its place in the stream."""
    changes = shop.changelog[name]
    places = [(op, partition, offsets[message], index) for message, index, op, _ in changes]
    marks = {
        lake_name(column): pa.array([place[number] for place in places], kind)
        for number, (column, kind) in enumerate(CHANGELOG_COLUMNS)
    }
    rows = [row for _, _, _, row in changes]
    return pa.table(marks | _columns(shop.live[name].fields, rows))
