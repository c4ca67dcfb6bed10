"""Shows records of a log to people: bytes, times, and what their format says of them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

from changes.formats.as_target import AsTarget, JudgedPart
from changes.formats.engine.format import Format, RowChange, Statement
from changes.model.model import BadMessage
from changes.model.printable import escaped_json
from changes.routes.routing import RouteConflict, Router
from daemon.operations.replay.keys import affected_targets, decoder_of


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
    return None if image is None else {name: plain_value(value) for name, value in image.items()}


def plain_value(value: object) -> object:
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


def shown_by_routes(format_: Format, router: Router) -> AsTarget:
    """Explains messages as the targets of these routes take them."""

    def parts(value: bytes) -> Iterator[JudgedPart]:
        try:
            for affected in affected_targets(format_, router, value):
                if not affected.ddl:
                    made = partial(decoder_of, format_, affected.route)
                    yield JudgedPart(affected.target, made, affected.value)
        except RouteConflict as conflict:
            raise BadMessage(str(conflict)) from conflict

    return AsTarget(format_, parts)


def explained_message(shown: AsTarget, message: bytes | None) -> dict[str, Any]:
    """What ``binlogd decode`` prints for a message: its changes, and why it is bad."""
    try:
        changes = shown.explain(message)
    except BadMessage as bad:
        return {"error": str(bad), "changes": []}
    misfits = [
        f"{change.table}: {change.misfit}"
        for change in changes
        if isinstance(change, RowChange) and change.misfit is not None
    ]
    return {
        "error": "; ".join(misfits) or None,
        "changes": [json.loads(as_line(change)) for change in changes],
    }


def readable(value: bytes | None) -> dict[str, str] | None:
    """Bytes as text if they are UTF-8 text, else in base64. None for None."""
    if value is None:
        return None
    try:
        text = value.decode("utf-8")
        if text.isprintable() or all(c.isprintable() or c in "\r\n\t" for c in text):
            return {"text": text}
    except UnicodeDecodeError:
        pass  # not text
    return {"base64": base64.b64encode(value).decode("ascii")}


def shown(value: Mapping[str, str] | None) -> str:
    """What ``readable`` gives, for people."""
    if value is None:
        return "none"
    return value["text"] if "text" in value else f"(base64) {value['base64']}"
