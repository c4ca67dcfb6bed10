"""When a message's change happened by its source's clock: proof that a log has passed a moment.

What a tool says of the time at which it wrote the message is no such proof, and neither is a row
that it read from a table: those come in another order than the source's log has.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from changes.formats.engine.format import Format
from changes.model.model import BadMessage

_LONGEST = 17
"""Digits of a time in milliseconds; a longer number is none."""

_LIVE = (b"", b"null", b"false", b'"false"')
"""What ``source.snapshot`` holds in records of Debezium that come from the source's log."""


class _Canal(Struct, gc=False):
    es: Raw = Raw(b"")


class _Source(Struct, gc=False):
    ts_ms: Raw = Raw(b"")
    snapshot: Raw = Raw(b"")


class _Debezium(Struct, gc=False):
    payload: Raw = Raw(b"")
    source: _Source | None = None
    op: Raw = Raw(b"")
    flat_time: Raw = msgspec.field(default=Raw(b""), name="__source_ts_ms")
    flat_snapshot: Raw = msgspec.field(default=Raw(b""), name="__source_snapshot")
    flat_op: Raw = msgspec.field(default=Raw(b""), name="__op")


class _Maxwell(Struct, gc=False):
    type: Any = None


def source_ms(format_: Format, value: bytes | None, consumed: bytes | None) -> int | None:
    """Milliseconds since 1970; None where the message proves nothing. Raises nothing.

    ``value`` is the record's, ``consumed`` what the format gets of it.
    """
    if value is None:
        return None
    try:
        if format_.name == "canal-json":
            return _number(msgspec.json.decode(value, type=_Canal).es)
        if format_.name == "debezium-json":
            return _debezium(value)
        if format_.name == "maxwell-json" and _is_bootstrap(value):
            return None
        times = [change.ts_ms for change in format_.explain(consumed)]
    except (BadMessage, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None


def _debezium(value: bytes) -> int | None:
    found = msgspec.json.decode(value, type=_Debezium)
    payload = bytes(found.payload)
    if found.source is None and payload.startswith(b"{"):
        found = msgspec.json.decode(payload, type=_Debezium)
    if b'"r"' in (bytes(found.op), bytes(found.flat_op)):
        return None
    source = found.source or _Source(found.flat_time, found.flat_snapshot)
    return _number(source.ts_ms) if bytes(source.snapshot) in _LIVE else None


def _is_bootstrap(value: bytes) -> bool:
    kind = msgspec.json.decode(value, type=_Maxwell).type
    return isinstance(kind, str) and kind.startswith("bootstrap")


def _number(raw: Raw) -> int | None:
    digits = bytes(raw).strip(b'"')
    if not digits.isdigit() or len(digits) > _LONGEST:
        return None
    return int(digits) or None
