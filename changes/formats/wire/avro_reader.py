"""Compiles an Avro schema into a function that reads its values as JSON has them.

The function is made as Python source, as the standard library makes those of data classes: a call
for each field would cost several times as much. It takes no byte for granted: fastavro reads a
branch of a union or a label of an enumeration from behind where its number is negative, and any
byte as a boolean, so that a damaged record could become another row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from changes.formats.engine.layout import Refused
from changes.formats.wire.avro_bytes import HELPERS
from changes.formats.wire.connect import INSTANTS, own_name

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Reads the value that begins at a place; returns it, and where it ends."""

AvroSchema = Any
"""A schema as ``fastavro.parse_schema`` returns it: names are whole, defined once."""


def type_of(schema: AvroSchema) -> str:
    """The name of its type: ``record``, ``long``, ``union``; a reference is resolved before."""
    if isinstance(schema, list):
        return "union"
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def is_entries(schema: AvroSchema) -> bool:
    """Whether an array stands for a map whose keys are no text (Confluent's AvroData)."""
    items = schema["items"]
    if not isinstance(items, dict) or {each["name"] for each in items.get("fields", ())} != {
        "key", "value",
    }:  # fmt: skip
        return False
    internal = items.get("connect.internal.type", schema.get("connect.internal.type"))
    return internal == "MapEntry" or str(items.get("name", "")).endswith(".MapEntry")


def branch_name(schema: AvroSchema) -> str:
    """What a branch of a union is called in Avro's JSON."""
    return str(schema.get("name", schema["type"]) if isinstance(schema, dict) else schema)


def compiled(
    schema: AvroSchema, named: Mapping[str, AvroSchema], names: Mapping[tuple[str, str], str]
) -> Reader:
    """Make the reader of a schema. Raises Refused for one whose values look like damage.

    ``names``: by record and field what the field is called in JSON, where that is another name.
    """
    made = ReaderSource(named, names)
    made.function("read", schema)
    reader: Reader = made.made("read")
    return reader


class ReaderSource:
    """Writes the source: a function for the schema, and one for each named record in it."""

    def __init__(
        self, named: Mapping[str, AvroSchema], names: Mapping[tuple[str, str], str]
    ) -> None:
        self._named = named
        self._names = names
        self._records: dict[str, str] = {}
        self._indent = ""
        self._count = 0
        self.constants: dict[str, Any] = {}
        self.lines: list[str] = []

    def made(self, name: str) -> Any:
        """Make the functions that were written, and return one of them."""
        space: dict[str, Any] = {**HELPERS, **self.constants}
        exec(compile("\n".join(self.lines), "<an Avro schema>", "exec"), space)
        return space[name]

    @contextmanager
    def body(self, name: str) -> Iterator[None]:
        """The lines of a function; those of another one, in which it is met, go on behind it."""
        outer, self.lines, indent, self._indent = self.lines, [], self._indent, ""
        self._add(f"def {name}(d, at):")
        with self._block():
            yield
        self.lines, self._indent = [*self.lines, *outer], indent

    def function(self, name: str, schema: AvroSchema) -> None:
        """Write a function that reads a value of the schema."""
        with self.body(name):
            self._value("v", schema)
            self._add("return v, at")

    def _record_function(self, schema: AvroSchema) -> str:
        """The name of the function that reads a record; it is written where it is new."""
        full = schema["name"]
        if full not in self._records:
            name = self._records[full] = f"record_{len(self._records)}"
            with self.body(name):
                self._fields(schema)
        return self._records[full]

    def _fields(self, schema: AvroSchema) -> None:
        members = []
        for place, field in enumerate(schema["fields"]):
            self._value(f"f{place}", field["type"])
            name = self._names.get((schema["name"], field["name"]), field["name"])
            members.append(f"{name!r}: f{place}")
        self._add(f"return {{{', '.join(members)}}}, at")

    # --- lines

    def _add(self, line: str) -> None:
        self.lines.append(self._indent + line)

    @contextmanager
    def _block(self) -> Iterator[None]:
        self._indent += " "
        yield
        self._indent = self._indent[:-1]

    def _fresh(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def _constant(self, value: object) -> str:
        name = f"C{len(self.constants)}"
        self.constants[name] = value
        return name

    # --- values

    def _value(self, into: str, schema: AvroSchema) -> None:
        """Write what reads a value into a variable."""
        kind = type_of(schema)
        if kind in self._named:
            schema = self._named[kind]
            kind = type_of(schema)
        elif isinstance(schema, dict) and isinstance(schema["type"], dict | list):
            return self._value(into, schema["type"])
        writer = getattr(self, f"_{kind}", None)
        if writer is None:
            raise Refused(f"a type of Avro that is not known: {kind}")
        writer(into, schema)
        return None

    def _null(self, into: str, schema: AvroSchema) -> None:
        self._add(f"{into} = None")

    def _boolean(self, into: str, schema: AvroSchema) -> None:
        self._add(f"{into} = BOOLEANS[d[at]]; at += 1")

    def _number(self, into: str, further: str = "further") -> None:
        """A number before its sign is taken out of the last bit."""
        self._add(f"{into} = d[at]; at += 1")
        self._add(f"if {into} > 127: {into}, at = {further}(d, at, {into})")

    def _signed(self, into: str, further: str = "further") -> None:
        self._number(into, further)
        self._add(f"{into} = ({into} >> 1) ^ -({into} & 1)")

    def _int(self, into: str, schema: AvroSchema) -> None:
        self._signed(into, "further_of_int")

    def _long(self, into: str, schema: AvroSchema) -> None:
        self._signed(into)
        if isinstance(schema, dict) and own_name(schema) is None:
            per_second = INSTANTS.get(schema.get("logicalType", ""))
            if per_second is not None:
                self._add(f"{into} = instant({into}, {per_second})")

    def _float(self, into: str, schema: AvroSchema) -> None:
        self._add(f"({into},) = FLOAT(d, at); at += 4")
        self._add(f"{into} = not_finite({into}) if {into} - {into} else shortest({into})")

    def _double(self, into: str, schema: AvroSchema) -> None:
        self._add(f"({into},) = DOUBLE(d, at); at += 8")
        self._add(f"if {into} - {into}: {into} = not_finite({into})")

    def _sized(self, into: str) -> None:
        """Where what comes next ends."""
        self._number(into)
        self._add(f"if {into} & 1: raise Damaged('a negative length')")
        self._add(f"{into} = at + ({into} >> 1)")

    def _string(self, into: str, schema: AvroSchema) -> None:
        end = self._fresh()
        self._sized(end)
        self._add(f"{into} = d[at:{end}].decode(); at = {end}")

    def _bytes(self, into: str, schema: AvroSchema) -> None:
        end = self._fresh()
        self._sized(end)
        self._add(f"{into} = d[at:{end}]; at = {end}")

    def _fixed(self, into: str, schema: AvroSchema) -> None:
        end = self._fresh()
        self._add(f"{end} = at + {int(schema['size'])}")
        self._add(f"{into} = d[at:{end}]; at = {end}")
        if schema.get("logicalType") == "uuid":
            self._add(f"{into} = uuid_text({into})")

    def _enum(self, into: str, schema: AvroSchema) -> None:
        symbols = self._constant(tuple(schema["symbols"]))
        self._number(into)
        self._add(f"if {into} & 1: raise Damaged('a negative label')")
        self._add(f"{into} = {symbols}[{into} >> 1]")

    def _union(self, into: str, schema: AvroSchema) -> None:
        branches = list(schema)
        named = len([each for each in branches if each != "null"]) > 1
        self._add(f"{into} = d[at]; at += 1")
        for place, branch in enumerate(branches):
            self._add(f"{'elif' if place else 'if'} {into} == {2 * place}:")
            with self._block():
                self._value(into, branch)
                if named and branch != "null":
                    self._add(f"{into} = {{{branch_name(branch)!r}: {into}}}")
        self._add("else: raise Damaged('a branch that the union does not have')")

    def _record(self, into: str, schema: AvroSchema) -> None:
        self._add(f"{into}, at = {self._record_function(schema)}(d, at)")

    def _array(self, into: str, schema: AvroSchema) -> None:
        entries = is_entries(schema)
        self._check_size(schema["items"])
        item = self._fresh()
        self._add(f"{into} = []")
        with self._items():
            self._value(item, schema["items"])
            self._add(
                f"{into}.append([{item}['key'], {item}['value']])"
                if entries
                else f"{into}.append({item})"
            )

    def _map(self, into: str, schema: AvroSchema) -> None:
        key, value = self._fresh(), self._fresh()
        self._add(f"{into} = {{}}")
        with self._items():
            self._string(key, "string")
            self._value(value, schema["values"])
            self._add(f"{into}[{key}] = {value}")

    @contextmanager
    def _items(self) -> Iterator[None]:
        """The loop over the items of an array's or map's blocks."""
        count, size = self._fresh(), self._fresh()
        self._add("while True:")
        with self._block():
            self._signed(count)
            self._add(f"if not {count}: break")
            self._add(f"if {count} < 0:")
            with self._block():
                self._add(f"{count} = -{count}")
                self._number(size)
            self._add(f"if {count} > len(d) - at: raise Damaged('more items than bytes')")
            self._add(f"for _ in range({count}):")
            with self._block():
                yield

    def _check_size(self, schema: AvroSchema) -> None:
        """Raise Refused for items that take no bytes: any number of them would be read."""
        found = self._named.get(type_of(schema), schema)
        kind = type_of(found)
        if kind == "null" or (kind == "fixed" and not found["size"]):
            raise Refused("an Avro array whose items take no bytes, which is not read")
        if kind == "record" and not any(type_of(f["type"]) != "null" for f in found["fields"]):
            raise Refused("an Avro array whose items take no bytes, which is not read")
