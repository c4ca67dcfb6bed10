"""Makes message classes of the formats' .proto files, each in a descriptor pool of its own.

The subset of the language that these files need is small (messages, enumerations, proto3's plain
fields) and parsed here: so no generated code can differ from its file, and no compiler is needed.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from types import MappingProxyType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_COMMENT = re.compile(r"//[^\n]*")
_BLOCK = re.compile(r"\b(message|enum)\s+(\w+)\s*\{([^{}]*)\}")
_FIELD = re.compile(r"(repeated\s+)?(\w+)\s+(\w+)\s*=\s*(\d+)")
_VALUE = re.compile(r"(\w+)\s*=\s*(\d+)")
_PACKAGE = re.compile(r"\bpackage\s+([\w.]+)\s*;")
_SYNTAX = re.compile(r'\s*syntax\s*=\s*"proto3"\s*;')

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}


def read_proto(name: str, text: str) -> descriptor_pb2.FileDescriptorProto:
    """Read a .proto file of the subset; raises ValueError for what is not of it."""
    left = _COMMENT.sub("", text)
    package = _PACKAGE.search(left)
    if package is None or _SYNTAX.match(left) is None:
        raise ValueError(f"{name}: proto3 with a package is wanted")
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package[1], syntax="proto3")
    blocks = _BLOCK.findall(left)
    rest = _BLOCK.sub("", _PACKAGE.sub("", _SYNTAX.sub("", left, count=1), count=1)).strip()
    if rest:
        raise ValueError(f"{name}: not understood: {rest[:60]!r}")
    enums = {title for kind, title, _ in blocks if kind == "enum"}
    for kind, title, body in blocks:
        lines = [line.strip() for line in body.split(";") if line.strip()]
        if kind == "enum":
            _add_enum(file, title, lines)
        else:
            _add_message(file, title, lines, enums)
    return file


def _matched(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    found = pattern.fullmatch(line)
    if found is None:
        raise ValueError(f"not understood: {line!r}")
    return found


def _add_enum(file: descriptor_pb2.FileDescriptorProto, title: str, lines: list[str]) -> None:
    enum = file.enum_type.add(name=title)
    for line in lines:
        found = _matched(_VALUE, line)
        enum.value.add(name=found[1], number=int(found[2]))


def _add_message(
    file: descriptor_pb2.FileDescriptorProto, title: str, lines: list[str], enums: set[str]
) -> None:
    message = file.message_type.add(name=title)
    for line in lines:
        repeated, kind, name, number = _matched(_FIELD, line).groups()
        field = message.field.add(name=name, number=int(number))
        field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type = _Field.TYPE_ENUM if kind in enums else _Field.TYPE_MESSAGE
            field.type_name = f".{file.package}.{kind}"


@functools.cache
def messages(name: str) -> MappingProxyType[str, Any]:
    """The message classes of a .proto file below ``changes/formats``, by their names."""
    text = resources.files("changes.formats").joinpath(name).read_text(encoding="utf-8")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file := read_proto(name, text))
    return MappingProxyType(
        {
            message.name: message_factory.GetMessageClass(
                pool.FindMessageTypeByName(f"{file.package}.{message.name}")
            )
            for message in file.message_type
        }
    )
