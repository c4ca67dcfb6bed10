"""What a real Debezium wrote through real converters, and what the registry answered (read only).

``python -m tests.live.record`` records the files in ``data`` again: the same statements on
PostgreSQL and MariaDB, in each form of a wire, and as plain JSON beside them to compare with. Each
topic has one partition, so a table's records have the order of its changes.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from changes.formats.wire.schemas import Schema, SchemaId

FOLDER = Path(__file__).with_name("data")
SOURCES = ("postgres", "mariadb")
FORMS = (
    "json", "avro", "avro-headers", "avro-global-ids", "avro-content-ids", "proto",
    "proto-wrappers", "jsonschema",
)  # fmt: skip
"""As ``tests.live.wires`` names them."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record. ``table``: ``schema.table`` as its topic's name has it, sanitised; of statements
    that is empty."""

    table: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """All of one source in one form."""

    schemas: Mapping[SchemaId, Schema]
    records: Sequence[Record]

    def of(self, table: str) -> Sequence[Record]:
        """Those of one table, in their order."""
        return [record for record in self.records if record.table == table]


def recording(source: str, form: str) -> Recording:
    """Read one."""
    with gzip.open(_path(source, form)) as file:
        found = json.load(file)
    schemas = {
        SchemaId(one["identity"], one["number"]): msgspec.convert(one["schema"], Schema)
        for one in found["schemas"]
    }
    return Recording(schemas, [_record(one) for one in found["records"]])


def save(source: str, form: str, recorded: Recording) -> None:
    """Write one; the same content gives the same bytes."""
    found = {
        "schemas": [
            {"identity": name.kind, "number": name.value, "schema": msgspec.to_builtins(one)}
            for name, one in sorted(recorded.schemas.items())
        ],
        "records": [
            {
                "table": one.table, "key": _text(one.key), "value": _text(one.value),
                "headers": [[name, _text(value)] for name, value in one.headers],
            }
            for one in recorded.records
        ],
    }  # fmt: skip
    FOLDER.mkdir(exist_ok=True)
    data = json.dumps(found, indent=0, ensure_ascii=False).encode()
    _path(source, form).write_bytes(gzip.compress(data, mtime=0))


def _path(source: str, form: str) -> Path:
    return FOLDER / f"{source}-{form}.json.gz"


def _record(one: Mapping[str, Any]) -> Record:
    headers = tuple((name, _bytes(value)) for name, value in one["headers"])
    return Record(one["table"], _bytes(one["key"]), _bytes(one["value"]), headers)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
