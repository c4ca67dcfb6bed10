"""Fetches schemas from a registry, each whole: with all that it refers to."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, get_args
from urllib.parse import quote

import msgspec
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from changes.formats.wire.schemas import Reference, Schema, SchemaId, SchemaKind
from sources.registry.errors import RegistryAway, SchemaNotFound, SchemaUnfit
from sources.registry.section import RegistrySection

if TYPE_CHECKING:  # a quarter of a second, that only users of a registry pay
    from sources.registry.http import Answer, Http

MOST_REFERENCES, DEEPEST = 1000, 32
"""Schemas that one schema may need, and how far from it. More than any real one has; a registry
that answers in circles ends here."""


_NOT_FOUND = frozenset({40401, 40402, 40403})
"""Confluent's codes of a subject, a version and a schema that it does not have. 404 alone is of an
address that it does not know."""


class RegistryClient(Protocol):
    """One registry. Any thread. All methods raise RegistryAway."""

    def fetch(self, identity: SchemaId) -> Schema:
        """The writer's schema of an identity. Raises SchemaNotFound, SchemaUnfit too."""
        ...

    def check(self) -> None:
        """Ask it something that needs the right to read."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def open_client(section: RegistrySection) -> RegistryClient:
    """The client of a registry's kind. Asks nothing yet; raises RegistryAway."""
    from sources.registry.http import Http

    kinds: dict[str, type[ConfluentClient | ApicurioClient]]
    kinds = {"confluent": ConfluentClient, "apicurio": ApicurioClient}
    return kinds[section.kind](Http(section))


class _Budget:
    """The references that a schema may still have fetched."""

    def __init__(self, of: SchemaId) -> None:
        self._of, self._left = of, MOST_REFERENCES

    def take(self, depth: int) -> None:
        """One more. Raises SchemaUnfit where it is one too many."""
        self._left -= 1
        if self._left < 0:
            raise SchemaUnfit(f"schema {self._of} needs more than {MOST_REFERENCES} others")
        if depth > DEEPEST:
            raise SchemaUnfit(f"schema {self._of} needs others {DEEPEST} deep: in a circle?")


class ConfluentClient:
    """Confluent's REST API, which Karapace, Redpanda and Apicurio speak, too."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def fetch(self, identity: SchemaId) -> Schema:
        """See RegistryClient."""
        paths = {"id": "schemas/ids", "guid": "schemas/guids"}
        if identity.kind not in paths:
            raise SchemaUnfit(
                f'schema {identity} is an Apicurio id: its registry needs kind = "apicurio"'
            )
        path = f"{paths[identity.kind]}/{quote(identity.value, safe='')}"
        found = self._schema(path, f"schema {identity}")
        kind = _kind(found.get("schemaType", "AVRO"), identity)
        budget, serialized = _Budget(identity), kind == "PROTOBUF"
        text = self._text(path, found, serialized=serialized)
        return Schema(kind, text, self._references(found, budget, serialized=serialized))

    def check(self) -> None:
        """See RegistryClient."""
        _parsed(self._http.get("subjects", {"limit": "1"}), list)

    def close(self) -> None:
        """See RegistryClient."""
        self._http.close()

    def _schema(self, path: str, what: str) -> dict[str, Any]:
        """Raises SchemaNotFound."""
        answer = self._http.get(path)
        found: dict[str, Any] = _parsed(answer, dict)
        if answer.status == 404:
            # Another 404 is that of a proxy or of a wrong path: it says nothing of the schema.
            if found.get("error_code") not in _NOT_FOUND:
                raise RegistryAway("answer", f"{answer.url}: 404 without a registry's error")
            raise SchemaNotFound(f"{what}: {found.get('message', 'not found')}")
        if not isinstance(found.get("schema"), str):
            raise RegistryAway("answer", f"{answer.url}: an answer without a schema")
        return found

    def _text(self, path: str, found: Mapping[str, Any], *, serialized: bool) -> str:
        """Its text; of Protobuf the descriptor in base64, where the registry compiles it."""
        text: str = found["schema"]
        if not serialized:
            return text
        try:
            answer = self._http.get(path, {"format": "serialized"})
        except RegistryAway as error:
            # Apicurio's compiler fails on files that name no reference, as Confluent's converter
            # leaves out its own `confluent/type/decimal.proto`: asking again would never end.
            if error.status != 500:
                raise
            return text
        compiled = _parsed(answer, dict).get("schema") if answer.status == 200 else None
        # Apicurio answers with the bare bytes in a JSON text, which damages them.
        return compiled if isinstance(compiled, str) and is_descriptor(compiled) else text

    def _references(
        self, found: Mapping[str, Any], budget: _Budget, *, serialized: bool, depth: int = 1
    ) -> tuple[Reference, ...]:
        references = []
        for each in found.get("references") or ():
            budget.take(depth)
            try:
                subject, version = quote(each["subject"], safe=""), int(each["version"])
                name = str(each["name"])
            except (KeyError, TypeError, ValueError) as error:
                raise RegistryAway("answer", f"a reference is not readable: {each!r}") from error
            path = f"subjects/{subject}/versions/{version}"
            of = self._schema(path, f"{name}, which it refers to ({each['subject']} {version})")
            text = self._text(path, of, serialized=serialized)
            inner = self._references(of, budget, serialized=serialized, depth=depth + 1)
            references.append(Reference(name, text, inner))
        return tuple(references)


class ApicurioClient:
    """Apicurio's own REST API, version 3, where its content ids and global ids are.

    Confluent's part of it takes an id as either, by a switch of the server that no answer shows.
    """

    _IDS: Mapping[str, str] = {"content": "contentIds", "global": "globalIds"}
    _ROOT = "apis/registry/v3"

    def __init__(self, http: Http) -> None:
        self._http = http

    def fetch(self, identity: SchemaId) -> Schema:
        """See RegistryClient."""
        if identity.kind not in self._IDS:
            raise SchemaUnfit(
                f'schema {identity} is Confluent\'s id: its registry needs kind = "confluent", '
                'with url = "…/apis/ccompat/v7" where that is Apicurio'
            )
        path = f"{self._ROOT}/ids/{self._IDS[identity.kind]}/{quote(identity.value, safe='')}"
        text = self._content(path, f"schema {identity}")
        kind = _kind(self._type(identity), identity)
        return Schema(kind, text, self._references(path, _Budget(identity)))

    def check(self) -> None:
        """See RegistryClient."""
        answer = self._http.get(f"{self._ROOT}/search/artifacts", {"limit": "1"})
        _parsed(answer, dict)
        if answer.status == 404:
            raise RegistryAway("answer", f"{answer.url}: not found; url is the server's address")

    def close(self) -> None:
        """See RegistryClient."""
        self._http.close()

    def _type(self, identity: SchemaId) -> str:
        """What an artifact with this content says of its type."""
        key = "contentId" if identity.kind == "content" else "globalId"
        query = {key: identity.value, "limit": "1"}
        answer = self._http.get(f"{self._ROOT}/search/versions", query)
        versions = _parsed(answer, dict).get("versions")
        if not versions:
            raise SchemaNotFound(f"schema {identity}: no artifact has it")
        return str(versions[0].get("artifactType"))

    def _content(self, path: str, what: str) -> str:
        answer = self._http.get(path)
        if answer.status == 404:
            raise self._missing(answer, what)
        try:
            return answer.body.decode()
        except UnicodeDecodeError as error:
            raise SchemaUnfit(f"{what} is not UTF-8 text") from error

    def _missing(self, answer: Answer, what: str) -> Exception:
        found = _parsed(answer, dict)
        if not str(found.get("name", "")).endswith("NotFoundException"):
            return RegistryAway("answer", f"{answer.url}: 404 without a registry's error")
        return SchemaNotFound(f"{what}: {found.get('title', 'not found')}")

    def _references(self, path: str, budget: _Budget, depth: int = 1) -> tuple[Reference, ...]:
        answer = self._http.get(f"{path}/references")
        if answer.status == 404:
            raise self._missing(answer, "its references")
        references = []
        for each in _parsed(answer, list):
            budget.take(depth)
            try:
                name = str(each["name"])
                group, artifact = (
                    quote(str(part), safe="")
                    for part in (each.get("groupId") or "default", each["artifactId"])
                )
                version = quote(str(each["version"]), safe="")
            except (AttributeError, KeyError, TypeError) as error:
                raise RegistryAway("answer", f"a reference is not readable: {each!r}") from error
            place = f"{self._ROOT}/groups/{group}/artifacts/{artifact}/versions/{version}"
            text = self._content(f"{place}/content", f"{name}, which it refers to")
            inner = self._references(place, budget, depth + 1)
            references.append(Reference(name, text, inner))
        return tuple(references)


def is_descriptor(text: str) -> bool:
    """Whether the text of a Protobuf schema is its compiled form: a descriptor in base64."""
    try:
        found = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return False
    return bool(found.message_type or found.enum_type or found.dependency)


def _kind(said: str, identity: SchemaId) -> SchemaKind:
    for kind in get_args(SchemaKind):
        if kind == said:
            return kind  # type: ignore[no-any-return]
    raise SchemaUnfit(f"schema {identity} is {said}, and AVRO, PROTOBUF and JSON are read")


def _parsed(answer: Answer, kind: type) -> Any:
    """An answer's JSON. Raises RegistryAway where it is none of that kind."""
    try:
        found = msgspec.json.decode(answer.body)
    except msgspec.DecodeError as error:
        raise RegistryAway(
            "answer", f"{answer.url}: HTTP {answer.status} without JSON is no registry's answer"
        ) from error
    if not isinstance(found, kind):
        if answer.status == 404:
            raise RegistryAway("answer", f"{answer.url}: 404 without a registry's error")
        raise RegistryAway("answer", f"{answer.url}: not a registry's answer")
    return found
