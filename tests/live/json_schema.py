"""Debezium's JSON again, with JSON Schemas in a registry: as Confluent's JsonSchemaConverter does.

That converter is in no public repository, so this follows its documented mapping: a schema's name
is the title, the type of Connect is ``connect.type``, the order of columns ``connect.index``; what
may be null is ``oneOf`` with null; bytes are base64. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES = {
    "int8": "integer", "int16": "integer", "int32": "integer", "int64": "integer",
    "float": "number", "double": "number", "boolean": "boolean", "string": "string",
    "bytes": "string", "struct": "object", "array": "array",
}  # fmt: skip
_NAMES = {"float": "float32", "double": "float64"}
"""Connect's names of types where its JSON has others."""
_BARE = ("struct", "array", "string", "boolean")
"""Types that JSON Schema has; others are said beside it."""
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a schema of Connect's, as its JSON has it."""
    found = _bare(schema)
    if schema.get("optional"):
        return {"oneOf": [{"type": "null"}, found]}
    return found


def _bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    type_ = schema["type"]
    found: dict[str, Any] = {"type": _TYPES[type_]}
    if schema.get("name") == _DECIMAL:
        found["type"] = "number"
    if "name" in schema:
        found["title"] = schema["name"]
    if "version" in schema:
        found["connect.version"] = schema["version"]
    if "parameters" in schema:
        found["connect.parameters"] = schema["parameters"]
    if "default" in schema:
        found["default"] = schema["default"]
    if type_ not in _BARE:
        found["connect.type"] = _NAMES.get(type_, type_)
    if type_ == "array":
        found["items"] = json_schema(schema["items"])
    if type_ == "struct":
        found["properties"] = {
            member["field"]: json_schema(member) | {"connect.index": place}
            for place, member in enumerate(schema["fields"])
        }
    return found
