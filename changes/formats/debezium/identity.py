"""Refuses deleted rows of PostgreSQL's REPLICA IDENTITY USING INDEX, whose keys were not sent.

The server sends the index's columns alone. Debezium fills the others: null, or in NOT NULL columns
0, an empty text or the default; so also the columns of the primary key, which is the record's key.
Such a delete would end the row of key 0, and leave the one that was deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Raw

from changes.decoding.layout import Refused
from changes.formats.debezium.record import Record
from changes.formats.debezium.types import Field
from changes.formats.debezium.unsent import partial_image

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
