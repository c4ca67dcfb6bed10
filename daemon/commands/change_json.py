"""Prints a change as one line of JSON, for ``binlogd decode`` and ``dead-letters show``."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from changes.formats.base import RowChange, Statement
from changes.printable import escaped_json


def as_line(change: RowChange | Statement) -> str:
    """A change as one line of JSON."""
    table = str(change.table)
    members: dict[str, object]
    if isinstance(change, Statement):
        members = {"table": table, "op": "DDL", "sql": change.sql, "ts_ms": change.ts_ms}
    else:
        members = {
            "table": table,
            "op": change.op,
            "key": _image(change.key),
            "before": _image(change.before),
            "after": _image(change.after),
            "ts_ms": change.ts_ms,
        }
    return escaped_json(json.dumps(members, ensure_ascii=False, allow_nan=False))


def _image(image: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if image is None else {name: _plain(value) for name, value in image.items()}


def _plain(value: object) -> object:
    """Decimals, NaN and infinities as text, bytes in base64, times in ISO 8601. JSON has the
    rest."""
    match value:
        case Decimal():
            return f"{value:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value
