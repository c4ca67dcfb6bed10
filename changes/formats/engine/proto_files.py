"""Parses .proto files, and makes message classes of the formats' own, each file in its own pool.

Services and extensions are read over; fields' options are kept as they are written.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>\.?[A-Za-z_][\w.]*)
    |(?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|[\d.]+(?:[eE][-+]?\d+)?|inf|nan))
    |(?P<sign>[{}\[\]()<>=;:,./-])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_Field = descriptor_pb2.FieldDescriptorProto
_LABELS = {
    label: _Field.Label.Value(f"LABEL_{label.upper()}")
    for label in ("optional", "required", "repeated")
}
SCALARS: dict[str, int] = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in _Field.Type.items()
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
"""The language's own types by name."""

_SKIPPED = frozenset(("option", "reserved", "extensions", "extend", "service", ";"))

Options = dict[str, Any]
"""A field's options by name: texts, lists, and objects as lists of pairs."""


@dataclass
class ProtoFile:
    """A parsed file."""

    file: descriptor_pb2.FileDescriptorProto
    options: dict[tuple[str, str], Options] = field(default_factory=dict)
    """By message (its whole name) and field."""


def parse_proto(name: str, text: str) -> ProtoFile:
    """Parse a file; raises ValueError for what is not understood."""
    return _Parser(name, text).parsed()


class _Parser:
    """One file's text. Methods begin behind the words that the caller has read."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._tokens = list(_tokens(name, text))
        self._at = 0
        self._found = ProtoFile(descriptor_pb2.FileDescriptorProto(name=name, syntax="proto2"))

    def parsed(self) -> ProtoFile:
        file = self._found.file
        while self._at < len(self._tokens):
            word = self._next()
            if word == "syntax" and self._takes("="):
                file.syntax = _unquoted(self._next())
                self._expect(";")
            elif word == "package":
                file.package = self._next()
                self._expect(";")
            elif word == "import":
                if not self._takes("public"):
                    self._takes("weak")
                file.dependency.append(_unquoted(self._next()))
                self._expect(";")
            elif word == "message":
                self._message(file.message_type.add(), file.package)
            elif word == "enum":
                self._enum(file.enum_type.add())
            else:
                self._skip(word)
        return self._found

    # --- words

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        if self._at == len(self._tokens):
            raise ValueError(f"{self._name}: it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, sign: str) -> None:
        if (found := self._next()) != sign:
            raise ValueError(f"{self._name}: not understood: {found!r} in the place of {sign!r}")

    def _takes(self, sign: str) -> bool:
        found = self._peek() == sign
        self._at += found
        return found

    def _skip(self, word: str) -> None:
        """Read over a statement, to its end or that of its block."""
        if word not in _SKIPPED:
            raise ValueError(f"{self._name}: not understood: {word!r}")
        depth = 0
        while word != ";":
            sign = self._next()
            depth += (sign == "{") - (sign == "}")
            if depth == 0 and (sign == ";" or (sign == "}" and word in ("extend", "service"))):
                return

    # --- definitions

    def _message(self, message: descriptor_pb2.DescriptorProto, scope: str) -> None:
        message.name = self._next()
        whole = f"{scope}.{message.name}".lstrip(".")
        self._expect("{")
        while not self._takes("}"):
            word = self._next()
            if word == "message":
                self._message(message.nested_type.add(), whole)
            elif word == "enum":
                self._enum(message.enum_type.add())
            elif word == "oneof":
                self._oneof(message, whole)
            elif word in _SKIPPED:
                self._skip(word)
            else:
                self._field(message, whole, word)
        _add_presence(message)

    def _oneof(self, message: descriptor_pb2.DescriptorProto, whole: str) -> None:
        place = len(message.oneof_decl)
        message.oneof_decl.add(name=self._next())
        self._expect("{")
        while not self._takes("}"):
            word = self._next()
            if word in ("option", ";"):
                self._skip(word)
            else:
                self._field(message, whole, word).oneof_index = place

    def _field(
        self, message: descriptor_pb2.DescriptorProto, whole: str, word: str
    ) -> descriptor_pb2.FieldDescriptorProto:
        made = message.field.add(label=_LABELS.get(word, _Field.LABEL_OPTIONAL))
        made.proto3_optional = word == "optional" and self._found.file.syntax == "proto3"
        kind = self._next() if word in _LABELS else word
        if kind == "group":
            raise ValueError(f"{self._name}: a group, which is not read")
        if kind == "map" and self._takes("<"):
            self._map(message, made, whole)
        else:
            _set_type(made, kind)
            made.name = self._next()
        self._expect("=")
        made.number = int(self._next(), 0)
        options = self._options() if self._takes("[") else {}
        if options:
            self._found.options[whole, made.name] = options
        if self._found.file.syntax == "proto2" and "default" in options:
            made.default_value = str(options["default"])
        self._expect(";")
        return made

    def _map(
        self,
        message: descriptor_pb2.DescriptorProto,
        made: descriptor_pb2.FieldDescriptorProto,
        whole: str,
    ) -> None:
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        made.name, made.label = self._next(), _Field.LABEL_REPEATED
        title = "".join(part[:1].upper() + part[1:] for part in made.name.split("_"))
        entry = message.nested_type.add(name=f"{title}Entry")
        entry.options.map_entry = True
        _set_type(entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL), key)
        _set_type(entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL), value)
        made.type, made.type_name = _Field.TYPE_MESSAGE, f".{whole}.{entry.name}"

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        enum.name = self._next()
        self._expect("{")
        while not self._takes("}"):
            word = self._next()
            if word == "option":
                option = self._tokens[self._at : self._at + 3]
                enum.options.allow_alias = option == ["allow_alias", "=", "true"]
                self._skip(word)
            elif word in _SKIPPED:
                self._skip(word)
            else:
                self._expect("=")
                enum.value.add(name=word, number=int(self._next(), 0))
                if self._takes("["):
                    self._options()
                self._expect(";")

    # --- options

    def _options(self) -> Options:
        """The options behind ``[``."""
        found: Options = {}
        while not self._takes("]"):
            name = ""
            while not self._takes("="):
                name += self._next()
            value = self._value()
            if name.endswith("params"):  # written once for each of its items
                found[name] = [*found.get(name, ()), value]
            else:
                found[name] = value
            self._takes(",")
        return found

    def _value(self) -> Any:
        word = self._next()
        if word == "{":
            return list(self._members())
        if word == "[":
            values = []
            while not self._takes("]"):
                values.append(self._value())
                self._takes(",")
            return values
        if word[0] not in "\"'":
            return word
        text = _unquoted(word)
        while self._peek()[:1] in ("'", '"'):
            text += _unquoted(self._next())
        return text

    def _members(self) -> Iterator[tuple[str, Any]]:
        while not self._takes("}"):
            name = self._next()
            self._takes(":")
            yield name, self._value()
            self._takes(",")


def _tokens(name: str, text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"{name}: not understood: {text[at : at + 40]!r}")
        if found.lastgroup is not None:
            yield found[0]
        at = found.end()


def _unquoted(word: str) -> str:
    if word[:1] not in "\"'" or not word:
        raise ValueError(f"not understood: {word!r} in the place of a text")
    return str(ast.literal_eval(word))


def _set_type(made: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    """One of the language's own types, else a name, which the pool resolves in its scope."""
    if kind in SCALARS:
        made.type = SCALARS[kind]  # type: ignore[assignment]
    else:
        made.type_name = kind


def _add_presence(message: descriptor_pb2.DescriptorProto) -> None:
    """The oneofs of one field each that mark fields as optional in proto3: behind all others."""
    for each in message.field:
        if each.proto3_optional:
            each.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{each.name}")


@functools.cache
def messages(name: str) -> MappingProxyType[str, Any]:
    """The message classes of a .proto file below ``changes/formats``, by their names."""
    text = resources.files("changes.formats").joinpath(name).read_text(encoding="utf-8")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file := parse_proto(name, text).file)
    return MappingProxyType(
        {
            message.name: message_factory.GetMessageClass(
                pool.FindMessageTypeByName(f"{file.package}.{message.name}")
            )
            for message in file.message_type
        }
    )
