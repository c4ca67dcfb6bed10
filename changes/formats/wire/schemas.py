"""A registry's schemas as they are kept on disk: each under its identity, never changed.

The fetcher's side writes them (``sources.registry``) before it dispatches a message that needs one.
So a decoder in another process, after a restart or in a replay finds them here and
needs no registry.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]


class SchemaId(NamedTuple):
    """The identity of a schema: ``kind`` says which of a registry's numbers the frame holds."""

    kind: Literal["id", "guid", "content", "global"]
    """``id`` and ``guid`` are Confluent's, ``content`` and ``global`` Apicurio's."""
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"

    @property
    def file_name(self) -> str:
        """The name of its file: digits, or a GUID's."""
        return f"{self.kind}-{self.value}.json"


class Reference(Struct, frozen=True):
    """A schema that another one imports, under the name that it is imported by."""

    name: str
    text: str
    references: tuple[Reference, ...] = ()


class Schema(Struct, frozen=True):
    """A writer's schema, whole: with the texts of all that it refers to."""

    kind: SchemaKind
    text: str
    references: tuple[Reference, ...] = ()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what it says. Another one under the same identity is another schema."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class SchemaFolder:
    """The schemas of one registry, read from their folder. Any thread and process may read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[SchemaId, Schema] = {}

    def get(self, identity: SchemaId) -> Schema | None:
        """A schema that is kept here, else None; raises ValueError for a damaged file."""
        found = self._known.get(identity)
        if found is None:
            try:
                text = (self.folder / identity.file_name).read_bytes()
            except FileNotFoundError:
                return None
            try:
                found = self._known[identity] = msgspec.json.decode(text, type=Schema)
            except msgspec.DecodeError as error:
                raise ValueError(f"the kept schema {identity} is damaged: {error}") from error
        return found
