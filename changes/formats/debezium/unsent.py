"""Recognises the placeholders that Debezium writes for values which the source did not send."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET, Raw, Struct
from msgspec.structs import astuple

from changes.formats.debezium.parts import WRAPPED, Members, members
from changes.formats.debezium.record import Record, is_envelope
from changes.formats.debezium.types import Field
from changes.formats.engine.format import unpack
from changes.formats.engine.layout import Refused

_PLACEHOLDER = "__debezium_unavailable_value"
_WHOLE = (b'"mysql"', b'"mariadb"')
"""Connectors that send every value, as in ``source.connector``: they require
binlog_row_image=FULL, so a placeholder among their values is stored text."""

_HINT = re.compile(rb'"m(?:ysql|ariadb)"')

_PLACES = frozenset(
    (
        b'{"wkb":"AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==","srid":4326}',
        b'{"wkb":"AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==","srid":4326}',
        b'{"x":-9.9999999E7,"y":-9.9999999E7,"wkb":"AQEAAAAAAAD8g9eXwQAAAPyD15fB","srid":null}',
    )
)
"""Placeholders of a geometry, a geography and a point: places that are not on Earth."""


def _structured(octets: bytes, text: str) -> Iterator[Any]:
    """The placeholders of lists: of texts, or with a number for each byte."""
    yield [text]
    yield [_coded(octets)]
    yield [str(uuid.UUID(bytes=hashlib.md5(octets, usedforsecurity=False).digest(), version=3))]
    numbers = [byte - 256 if byte > 127 else byte for byte in octets]  # Java's bytes have a sign
    yield numbers
    yield list(map(float, numbers))
    decimals = [_coded(bytes((byte,))) for byte in octets]
    yield decimals
    yield [{"scale": 0, "value": decimal} for decimal in decimals]


def _coded(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def _dumped(form: Any) -> str:
    return json.dumps(form, separators=(",", ":"), ensure_ascii=False)


def connector_of(found: Members) -> bytes | None:
    """The connector in a payload, as raw JSON. A flattened row has it where ``add.fields`` holds
    ``connector``."""
    if not is_envelope(found):
        raw = found.get("__source_connector", found.get("__connector"))
    elif not bytes(found.get("source", b"")).startswith(b"{"):
        raw = None
    else:
        raw = members(bytes(found["source"]), "the source").get("connector")
    return None if raw is None else bytes(raw)


def partial_image(record: Record, keys: Sequence[str]) -> Mapping[str, bytes] | None:
    """The old image without its key, where it may hold the key alone; None where it has the row.

    Under REPLICA IDENTITY DEFAULT Debezium writes null for PostgreSQL's other columns, or 0, "" or
    the default in NOT NULL ones, and Kafka Connect may write a default for null.
    """
    if connector_of(record.payload or {}) not in (None, b'"postgresql"'):
        return None
    before = record.before or {}
    return {name: bytes(value) for name, value in before.items() if name not in keys}


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The placeholders of values that were not sent (PostgreSQL: an unchanged TOAST value).

    Text, bytes in base64, lists and maps with it. Whether a value is a placeholder depends on its
    own record: records of several connectors may come to one target, in one block.
    """

    texts: frozenset[str]
    raws: frozenset[bytes]
    configured: bool = False
    """The pipeline configures it: then it applies to the records of all connectors."""

    @classmethod
    def of(cls, configured: str | None) -> Unavailable:
        """By the connector's ``unavailable.value.placeholder``, None where the pipeline does not
        name it; raises ValueError for bad hex."""
        placeholder = _PLACEHOLDER if configured is None else configured
        octets = placeholder.encode()
        if placeholder.startswith("hex:"):
            octets = bytes.fromhex(placeholder.removeprefix("hex:"))
        text = octets.decode("utf-8", "replace")
        mapped = _dumped({text: text})
        texts = (text, _coded(octets), octets.hex(), mapped)
        raws = {_dumped(form).encode() for form in (*texts, *_structured(octets, text))}
        raws |= {mapped.encode()} | _PLACES
        return cls(frozenset(texts), frozenset(raws), configured is not None)

    def among(self, values: Sequence[Any]) -> set[int]:
        """The places of values, text or raw JSON, that may be placeholders: see ``stands_in``."""
        if isinstance(next((v for v in values if v is not None and v is not UNSET), ""), str):
            if self.texts.isdisjoint(values):
                return set()
            return {place for place, value in enumerate(values) if value in self.texts}
        return {
            place
            for place, value in enumerate(values)
            if isinstance(value, Raw) and bytes(value) in self.raws
        }

    def spares(self, rows: Sequence[Struct]) -> bool:
        """Whether all values of these rows were certainly sent, and none is missing."""
        columns = zip(*map(astuple, rows), strict=True)
        return not any(UNSET in values or self.among(values) for values in columns)

    def doubts(self, records: Iterable[bytes]) -> bool:
        """Whether any of these packed records may have such a value as stored text.

        One search for all: most records of PostgreSQL may have a value that was not sent.
        """
        return not self.configured and _HINT.search(b"".join(records)) is not None

    def stands_in(self, packed: bytes) -> bool:
        """Whether such a value of this record is a placeholder. Raises Refused."""
        if not self.doubts((packed,)):
            return True
        found = members(unpack(packed).value or b"", "the value")
        if found.keys() <= WRAPPED and "payload" in found:
            found = members(bytes(found["payload"]), "the payload")
        return self.within(found) is self

    def within(self, payload: Members) -> Unavailable:
        """The placeholders of this record. Raises Refused."""
        if not self.configured and connector_of(payload) in _WHOLE:
            return NOTHING_UNAVAILABLE
        return self

    def without(self, values: Mapping[str, Raw]) -> dict[str, Raw]:
        """The values that were sent."""
        return {name: raw for name, raw in values.items() if bytes(raw) not in self.raws}


NOTHING_UNAVAILABLE = Unavailable(frozenset(), frozenset())


# Refuses deleted rows of PostgreSQL's REPLICA IDENTITY USING INDEX, whose keys were not sent.

_FILLED = frozenset(
    (
        b"null", b"0", b"0.0", b"false", b'""', b"[]", b"{}", b'"{}"', b'"[]"', b'"AA=="',
        b'"1970-01-01T00:00:00Z"', b'"1970-01-01T00:00:00.000000Z"', b'"00:00:00Z"',
        b'"00000000-0000-0000-0000-000000000000"',
    )
)  # fmt: skip
"""What stands for a value that was not sent, as JSON."""

_FILLED_TEXTS = frozenset(raw.decode().strip('"') for raw in _FILLED)


def may_be_filled(value: object) -> bool:
    """Whether a value of a key, as the quick path reads it, may stand for one that was not sent."""
    return str(value) in _FILLED_TEXTS


def check_identity(record: Record, key: Mapping[str, Raw], keys: Sequence[str]) -> None:
    """Raise Refused where a deleted row's key may not have been sent.

    Some part of the key looks like that, and another column has a value: so it is not REPLICA
    IDENTITY DEFAULT. Nor is it surely FULL: no column shows a value that may be null, as none of
    an index of a replica identity may.
    """
    fields = record.fields or {}
    filled = [name for name in keys if _is_filled(bytes(key[name]), fields.get(name))]
    others = partial_image(record, keys) if filled else None
    if not others:
        return
    shown = [name for name, raw in others.items() if not _is_filled(raw, fields.get(name))]
    if not shown or any(_is_nullable(fields.get(name)) for name in shown):
        return
    raise Refused(
        f"a deleted row whose key column {filled[0]} is {bytes(key[filled[0]]).decode()}, beside a "
        f"value of {shown[0]}: under REPLICA IDENTITY USING INDEX the key is not in the stream "
        "(ALTER TABLE … REPLICA IDENTITY FULL, or DEFAULT)"
    )


def _is_filled(raw: bytes, field: Field | None) -> bool:
    return raw in _FILLED or (field is not None and raw == bytes(field.default))


def _is_nullable(field: Field | None) -> bool:
    return field is not None and field.optional is True and bytes(field.default) == b"null"
