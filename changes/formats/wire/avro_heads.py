"""Compiles what reads the head of a Debezium envelope in Avro: its source and its operation.

All else is skipped, but not presumed: a record's table is the one in its own source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from changes.formats.engine.layout import Refused
from changes.formats.wire.avro_reader import AvroSchema, ReaderSource, type_of

AvroHead = tuple[object, ...]
"""The operation, and what names the table in the source."""

HeadReader = Callable[[bytes, int], tuple[AvroHead, int]]

NAMING = ("connector", "db", "schema", "table", "collection", "keyspace")
"""What names the table, as ``debezium.places.Source`` has it."""


def head_reader(schema: AvroSchema, named: Mapping[str, AvroSchema]) -> HeadReader | None:
    """Make the reader of heads, None where the schema is no envelope's."""
    fields = {} if type_of(schema) != "record" else {f["name"]: f["type"] for f in schema["fields"]}
    source = _resolved(fields.get("source"), named)
    if "after" not in fields or source is None or not _is_text(fields.get("op")):
        return None
    try:
        return _HeadSource(named).reader(schema)
    except Refused:
        return None


def _is_text(schema: AvroSchema) -> bool:
    return schema is not None and type_of(_present(schema)) == "string"


def _present(schema: AvroSchema) -> AvroSchema:
    """An optional type without null."""
    if isinstance(schema, list):
        return next((each for each in schema if each != "null"), "null")
    return schema


def _resolved(schema: AvroSchema, named: Mapping[str, AvroSchema]) -> AvroSchema | None:
    """A record, or an optional one; else None."""
    schema = _present(schema)
    found = named.get(type_of(schema), schema) if schema is not None else None
    return found if found is not None and type_of(found) == "record" else None


class _HeadSource(ReaderSource):
    """Writes the source of a reader that skips most of a value."""

    def __init__(self, named: Mapping[str, AvroSchema]) -> None:
        super().__init__(named, {})
        self._skippers: dict[str, str] = {}

    def reader(self, schema: AvroSchema) -> HeadReader:
        with self.body("head"):
            self._add(f"{', '.join(NAMING)} = {', '.join(['None'] * len(NAMING))},")
            self._add("op = None")
            for field in schema["fields"]:
                if field["name"] == "op":
                    self._value("op", field["type"])
                elif field["name"] == "source":
                    self._naming(field["type"])
                else:
                    self._skip(field["type"])
            self._add(f"return (op, {', '.join(NAMING)}), at")
        made: HeadReader = self.made("head")
        return made

    def _naming(self, schema: AvroSchema) -> None:
        """Read of a source what names the table."""
        if isinstance(schema, list):
            self._branches(schema, self._naming)
            return
        for field in self._named.get(type_of(schema), schema)["fields"]:
            if field["name"] in NAMING:
                self._value(field["name"], field["type"])
            else:
                self._skip(field["type"])

    def _branches(self, branches: list[AvroSchema], then: Callable[[AvroSchema], None]) -> None:
        branch = self._fresh()
        self._add(f"{branch} = d[at]; at += 1")
        for place, each in enumerate(branches):
            self._add(f"{'elif' if place else 'if'} {branch} == {2 * place}:")
            with self._block():
                self._add("pass")
                if each != "null":
                    then(each)
        self._add("else: raise Damaged('a branch that the union does not have')")

    def _skip(self, schema: AvroSchema) -> None:
        """Write what goes over a value."""
        kind = type_of(schema)
        if kind in self._named:
            schema = self._named[kind]
            kind = type_of(schema)
        if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
            self._skip(schema["type"])
        elif kind == "union":
            self._branches(schema, self._skip)
        elif kind == "record":
            self._add(f"at = {self._skipper(schema)}(d, at)")
        elif kind in ("array", "map"):
            with self._items():
                if kind == "map":
                    self._skip("string")
                self._skip(schema["items" if kind == "array" else "values"])
        elif kind in ("string", "bytes"):
            end = self._fresh()
            self._sized(end)
            self._add(f"at = {end}")
        elif kind in ("int", "long", "enum"):
            self._add("while d[at] > 127: at += 1")
            self._add("at += 1")
        elif kind != "null":
            size = schema["size"] if kind == "fixed" else _SIZES[kind]
            self._add(f"at += {size}")

    def _skipper(self, schema: AvroSchema) -> str:
        """The name of the function that goes over a record; it is written where it is new."""
        full = schema["name"]
        if full not in self._skippers:
            name = self._skippers[full] = f"skip_{len(self._skippers)}"
            with self.body(name):
                for field in schema["fields"]:
                    self._skip(field["type"])
                self._add("return at")
        return self._skippers[full]


_SIZES: Mapping[str, Any] = {"boolean": 1, "float": 4, "double": 8}
