"""Reads the values of Protobuf's fields as JSON has them, with their Connect schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from changes.formats.engine.explain import shortest
from changes.formats.engine.layout import Refused
from changes.formats.wire.connect import DATE, ConnectSchema, decimal, not_finite

Read = Callable[[Any], Any]

_F = FieldDescriptor
_TYPES = {
    _F.CPPTYPE_BOOL: "boolean", _F.CPPTYPE_INT32: "int32", _F.CPPTYPE_INT64: "int64",
    _F.CPPTYPE_UINT32: "int64", _F.CPPTYPE_UINT64: "int64", _F.CPPTYPE_FLOAT: "float",
    _F.CPPTYPE_DOUBLE: "double", _F.CPPTYPE_ENUM: "string",
}  # fmt: skip
TIME = "io.debezium.time."
STRUCTURES = {
    "VariableScaleDecimal": (("scale", "value"), "io.debezium.data.VariableScaleDecimal"),
    "Point": (("srid", "wkb", "x", "y"), "io.debezium.data.geometry.Point"),
    "Geometry": (("srid", "wkb"), "io.debezium.data.geometry.Geometry"),
    "Geography": (("srid", "wkb"), "io.debezium.data.geometry.Geography"),
}
"""Debezium's structures by their messages' names, which is all that is left of theirs."""


def _as_is(value: Any) -> Any:
    return value


def _double(value: float) -> Any:
    return not_finite(value) if value - value else value


def _float(value: float) -> Any:
    return not_finite(value) if value - value else shortest(value)


def plain(each: FieldDescriptor, parameters: Mapping[str, str]) -> tuple[Read, ConnectSchema]:
    if each.enum_type is not None:
        return _label(each.name, each.enum_type)
    told = _TYPES.get(each.cpp_type) or ("bytes" if each.type == _F.TYPE_BYTES else "string")
    schema: ConnectSchema = {"type": parameters.get("connect.type", told)}
    if left := {name: text for name, text in parameters.items() if name != "connect.type"}:
        schema["parameters"] = left
    return {"float": _float, "double": _double}.get(told, _as_is), schema


def _label(column: str, kind: EnumDescriptor) -> tuple[Read, ConnectSchema]:
    labels = {number: found.name for number, found in kind.values_by_number.items()}

    def read(number: int) -> str:
        if number not in labels:
            raise Refused(f"column {column}: its enumeration has no number {number}")
        return labels[number]

    allowed = ",".join(kind.values_by_name)
    return read, {"type": "string", "parameters": {"allowed": allowed}}


def decimal_of(parameters: Mapping[str, str]) -> tuple[Read, ConnectSchema]:
    """By the scale in the schema; without one each value has its own."""
    scale = parameters.get("scale")
    if scale is None:
        name = STRUCTURES["VariableScaleDecimal"][1]
        return lambda m: {"scale": m.scale, "value": m.value}, {"type": "struct", "name": name}

    def read(found: Any) -> bytes:
        if str(found.scale) != scale:
            raise Refused(f"a decimal of scale {found.scale} in a column of scale {scale}")
        return bytes(found.value)

    return read, decimal(parameters.get("precision"), scale)


def timestamp(found: Any) -> str:
    try:
        moment = date(1970, 1, 1).fromordinal(_EPOCH + found.seconds // 86_400)
    except (ValueError, OverflowError) as error:
        raise Refused(f"a timestamp of {found.seconds} seconds, which no date has") from error
    minutes, second = divmod(found.seconds % 86_400, 60)
    return f"{moment}T{minutes // 60:02}:{minutes % 60:02}:{second:02}.{_nanos(found)}Z"


def _nanos(found: Any) -> str:
    if not 0 <= found.nanos < 10**9:
        raise Refused(f"a time of {found.nanos} nanoseconds in a second")
    return f"{found.nanos:09}"


_EPOCH = date(1970, 1, 1).toordinal()


def _days(found: Any) -> int:
    try:
        return date(found.year, found.month, found.day).toordinal() - _EPOCH
    except ValueError as error:
        raise Refused(f"{found.year}-{found.month}-{found.day} is no date: {error}") from error


def _time_of_day(found: Any) -> int:
    seconds = (found.hours * 60 + found.minutes) * 60 + found.seconds
    return int(seconds * 10**9 + int(_nanos(found)))


CALENDAR: Mapping[str, tuple[Read, ConnectSchema]] = {
    "google.type.Date": (_days, {"type": "int32", "name": DATE, "version": 1}),
    "google.type.TimeOfDay": (
        _time_of_day,
        {"type": "int64", "name": f"{TIME}NanoTime", "version": 1},
    ),
}
