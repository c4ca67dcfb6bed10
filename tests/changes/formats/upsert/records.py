"""Builds records of upsert rows, and reads them by the format or by a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from changes.formats.engine.format import TableDecoder, pack
from changes.formats.upsert.json import UpsertJson
from changes.model.model import OP, Changes, ColumnTypes, FormatOptions, Mode
from tests.changes.formats.cases import NAMED
from tests.changes.formats.json_messages import as_json

UPSERT = "upsert-json"
Keys = tuple[str, ...] | None


def made(**options: Any) -> UpsertJson:
    """The format of the table ``d.t``."""
    return UpsertJson(FormatOptions(extra=NAMED, **options))


def record(key: Any, row: Any = None) -> bytes:
    """One packed record, a delete where there is no row; bytes stand as they are."""
    parts = (each if isinstance(each, bytes | None) else as_json(each) for each in (key, row))
    return pack(*parts)


def decoder(mode: Mode = Mode.UPSERT, keys: Keys = None, types: ColumnTypes = ()) -> TableDecoder:
    return made().table_decoder(mode, keys, types)


def decode(reader: TableDecoder, *values: bytes) -> Changes:
    """Decode at offsets 0, 1, …; there must be rows."""
    changes = reader.decode(0, range(len(values)), values)
    assert changes is not None
    return changes


def rows(*values: bytes, **how: Any) -> list[dict[str, Any]]:
    """The rows of a fresh decoder."""
    found: list[dict[str, Any]] = decode(decoder(**how), *values).table.to_pylist()
    return found


def brief(found: Sequence[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Letters and some columns of rows."""
    return [(row[OP], *(row[name] for name in names)) for row in found]
