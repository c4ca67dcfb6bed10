"""Finds the key of the row in a Debezium record: in its key, its images, or by configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import UNSET, Raw

from changes.formats.debezium.layout import NULL
from changes.formats.debezium.parts import Key, Members, columns_of
from changes.formats.debezium.record import Record
from changes.formats.debezium.types import Field, from_schema
from changes.formats.engine.layout import Refused
from changes.model.types import SourceType

FULL = "PostgreSQL sends it with REPLICA IDENTITY FULL"


def deleted_key(
    record: Record, key: Key | None, keys: Sequence[str], *, configured: bool
) -> Members:
    """The key of a deleted row. Raises Refused where neither image nor record key has it.

    Under REPLICA IDENTITY DEFAULT the image has null in columns outside the key: unknown, not null.
    """
    key_columns = {} if key is None else key.columns
    before = record.before or {}
    found: dict[str, Raw] = {}
    for name in keys:
        if _has_value(before, name):
            found[name] = before[name]
        elif _has_value(key_columns, name):
            found[name] = key_columns[name]
        elif name in before and configured and not _only_key(before, key_columns, keys):
            found[name] = before[name]
        else:
            where = "is null" if name in before else "is missing"
            raise Refused(f"key column {name} {where} in a deleted row ({FULL})")
    return found


def deleted_row(record: Record, key: Key | None) -> Members:
    """The known columns of a deleted row, for a changelog. Raises Refused where there are none."""
    found = record.before if record.before is not None else (key and key.columns)
    if not found:
        raise Refused(f"a deleted row without any column ({FULL})")
    return found


def replaced_key(
    record: Record, key: Key | None, keys: Sequence[str], *, configured: bool
) -> Members | None:
    """The old key of an update, None where the key stayed. Raises Refused where that is unknown.

    Debezium writes a change of the record key as a delete and an insert. So an update only changes
    configured keys, or those that the producer chose.
    """
    key_columns = {} if key is None else key.columns
    before, after = record.before, record.after or {}
    covered = not configured or key is None or key_columns.keys() >= set(keys)
    if before is None:
        if covered:
            return None
        raise Refused(
            f"whether an update changed the key ({', '.join(keys)}) is unknown: its old row is "
            f"null ({FULL})"
        )
    old: dict[str, Raw] = {}
    for name in keys:
        if _has_value(before, name) or name not in after:
            old[name] = before.get(name, after.get(name, Raw(NULL)))
        elif (
            name in key_columns
            or name not in before
            or bytes(after[name]) == NULL
            or not configured
        ):
            old[name] = after[name]
        elif _only_key(before, key_columns, keys):
            raise Refused(f"the old value of key column {name} is unknown ({FULL})")
        else:
            old[name] = before[name]
    changed = any(name in after and bytes(old[name]) != bytes(after[name]) for name in keys)
    return old if changed else None


def other_values(
    image: Members,
    columns: Mapping[str, SourceType],
    fields: Mapping[str, Field] | None,
    keys: Sequence[str],
) -> dict[str, tuple[object, pa.DataType | None]]:
    """A row's values without its key, as ``key_runs.Values``: its image's, whether the layout has
    these columns (by this spelling) or not, and UNSET for those that it lacks.

    The types are the record's own, else the layout's.
    """
    mine = {name.lower() for name in keys}
    types = {name.lower(): kind.arrow for name, kind in columns.items()}
    types |= {name.lower(): from_schema(each).arrow for name, each in (fields or {}).items()}
    found: dict[str, tuple[object, pa.DataType | None]] = {n: (UNSET, types[n]) for n in types}
    found |= {n.lower(): (bytes(raw), types.get(n.lower())) for n, raw in image.items()}
    return {name: value for name, value in found.items() if name not in mine}


def key_fields(key: Key | None) -> Mapping[str, Field]:
    """The types in a tombstone's key."""
    return {} if key is None else columns_of(key.field)


def _has_value(image: Mapping[str, Raw], name: str) -> bool:
    return name in image and bytes(image[name]) != NULL


def _only_key(before: Members, key_columns: Members, keys: Sequence[str]) -> bool:
    """Whether an image may hold the key alone: all other columns are null."""
    mine = {*key_columns, *keys}
    return not any(_has_value(before, name) for name in before if name not in mine)
