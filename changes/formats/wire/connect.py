"""Connect's schemas as JsonConverter writes them, and the values that need help to be its JSON."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from changes.formats.engine.layout import Refused

ConnectSchema = dict[str, Any]
"""A schema in JsonConverter's form: ``{"type": "int32", "optional": true, "name": …}``."""

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
ZONED = "io.debezium.time.ZonedTimestamp"
_TIMES = "io.debezium.time."

UNION = "io.confluent.connect.avro.Union"
"""Marks a structure of which one member is set: the branch of a union, which is kept as JSON."""

COUNTED = {
    "date": DATE,
    "time-millis": TIME,
    "time-micros": f"{_TIMES}MicroTime",
    "local-timestamp-millis": f"{_TIMES}Timestamp",
    "local-timestamp-micros": f"{_TIMES}MicroTimestamp",
    "local-timestamp-nanos": f"{_TIMES}NanoTimestamp",
}
"""What Avro's logical types are in a Connect schema, where that does not say it by itself."""

INSTANTS = {"timestamp-millis": 10**3, "timestamp-micros": 10**6, "timestamp-nanos": 10**9}
"""Logical types of moments, with their ticks a second: written out as text in UTC."""


_OWN = ("org.apache.kafka.connect.data.", "io.debezium.")
_AS_LOGICAL = {
    DATE: "date",
    f"{_TIMES}Date": "date",
    TIME: "time-millis",
    f"{_TIMES}Time": "time-millis",
    f"{_TIMES}MicroTime": "time-micros",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    f"{_TIMES}Timestamp": "timestamp-millis",
    f"{_TIMES}MicroTimestamp": "timestamp-micros",
    f"{_TIMES}NanoTimestamp": "timestamp-nanos",
    DECIMAL: "decimal",
}
_LOGICAL = frozenset(_AS_LOGICAL.values())


def own_name(given: Mapping[str, Any]) -> str | None:
    """The name of Connect's or Debezium's that a type in Avro has, which says what its values are.

    Another writer's name says nothing of that: a logical type beside it counts. Raises Refused
    where a logical type contradicts the name.
    """
    name, logical = given.get("connect.name"), given.get("logicalType")
    if not isinstance(name, str) or not name.startswith(_OWN):
        return None
    as_logical = _AS_LOGICAL.get(name)
    if isinstance(logical, str) and as_logical is not None:
        said = logical.removeprefix("local-")
        if said in _LOGICAL and said != as_logical:
            raise Refused(
                f"a type of Avro that is {name} and {logical}, which contradict each other"
            )
    return name


def decimal(precision: object, scale: object) -> ConnectSchema:
    """The schema of decimals whose unscaled integers are bytes."""
    parameters = {"scale": str(scale or 0)}
    if precision is not None:
        parameters["connect.decimal.precision"] = str(precision)
    return {"type": "bytes", "name": DECIMAL, "version": 1, "parameters": parameters}


def structure(fields: list[ConnectSchema], name: str | None) -> ConnectSchema:
    """A structure's schema. Its name comes last: it tells beginnings of records apart."""
    named = {} if name is None else {"name": name}
    return {"type": "struct", "fields": fields, "optional": False, **named}


def prefix_of(schema: ConnectSchema) -> bytes:
    """The bytes before a payload of this schema."""
    try:
        return b'{"schema":' + msgspec.json.encode(schema) + b',"payload":'
    except (RecursionError, TypeError, ValueError) as error:
        raise Refused(f"a schema that can't be written as Connect's: {error}") from error


def default_of(default: object, type_: str) -> object:
    """A default as JsonConverter writes it; bytes are text of one character each in Avro."""
    if type_ == "bytes" and isinstance(default, str):
        try:
            return base64.b64encode(default.encode("latin-1")).decode()
        except UnicodeEncodeError:
            return default
    return default


_REPLACED = re.compile(r"[^A-Za-z0-9]")


def column_name(name: str, parameters: Mapping[str, Any]) -> str:
    """A column's name in the source, where the field's is the same with signs replaced.

    Avro's names have no other signs than letters, digits and ``_``. A field that was renamed on the
    way keeps its name.
    """
    source = parameters.get("__debezium.source.column.name")
    if not isinstance(source, str) or source == name:
        return name
    spelled = _REPLACED.sub("_", source)
    return source if name in (spelled, f"_{spelled}") else name


def respelled(columns: Collection[str]) -> dict[str, str]:
    """The columns whose names Avro does not have, by what their fields are called."""
    found = {}
    for column in columns:
        spelled = _REPLACED.sub("_", column)
        found[f"_{spelled}" if spelled[:1].isdigit() else spelled] = column
    return {field: column for field, column in found.items() if field not in columns}


# Values that Avro and Protobuf have as numbers, and JSON as text.

_EPOCH = datetime(1970, 1, 1)


def instant(ticks: int, per_second: int) -> str:
    """A moment as Debezium's ZonedTimestamp writes it; raises Refused for one that is no date."""
    seconds, rest = divmod(ticks, per_second)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        raise Refused(f"a timestamp of {seconds} seconds since 1970, which no date has") from error
    digits = len(str(per_second)) - 1
    return f"{moment.isoformat()}.{rest:0{digits}}Z"


def not_finite(value: float) -> str:
    """NaN or an infinity as JsonConverter writes it."""
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
