"""Debezium's signals from a topic: what a record asks of the jobs. Pure.

``docs/operations.md`` names what is understood. Whatever is not is refused by name: a signal that
asks for less than a whole table must not become a load of all its rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from changes.printable import holds_half
from daemon.jobs.effects import Request

LONGEST_ID = 42
"""Characters: as wide as the column of Debezium's signalling table."""

LONGEST_SHOWN = 200
"""Characters of what a record says, in the reason of its refusal: it may have megabytes."""

REQUESTS: dict[str, Request] = {
    "pause-snapshot": "pause",
    "resume-snapshot": "resume",
    "stop-snapshot": "cancel",
}

_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]+")
"""A name without any sign of a regular expression."""


class SignalRefused(Exception):
    """Nothing is done: one line."""


class NotForUs(SignalRefused):
    """Its key names another connector."""


@dataclass(frozen=True, slots=True)
class Signal:
    """What is asked. ``tables``: patterns (``*``) on ``database.table``; for ``pause`` and others
    none means all. ``pipelines``: for which."""

    id: str
    request: Literal["execute", "pause", "resume", "cancel"]
    pipelines: tuple[str, ...]
    tables: tuple[str, ...] = ()


def read_signal(key: bytes | None, value: bytes | None, pipelines: Collection[str]) -> Signal:
    """Read a record. Raises SignalRefused, NotForUs."""
    chosen = _chosen(key, pipelines)
    document = _object(value, "it is not a JSON object")
    type_, id_ = document.get("type"), document.get("id", "")
    if not isinstance(id_, str) or len(id_) > LONGEST_ID:
        raise SignalRefused(f'"id" is no text of at most {LONGEST_ID} characters')
    data = document.get("data") or {}
    if isinstance(data, str):  # as in the signalling table's column
        data = _object(data, '"data" is not a JSON object')
    if not isinstance(data, dict):
        raise SignalRefused('"data" is not an object')
    if type_ == "execute-snapshot":
        return Signal(id_, "execute", chosen, _asked_tables(data))
    if type_ == "stop-snapshot":
        return Signal(id_, "cancel", chosen, _tables(data))
    if isinstance(type_, str) and type_ in REQUESTS:
        return Signal(id_, REQUESTS[type_], chosen)
    known = ", ".join(["execute-snapshot", *REQUESTS])
    raise SignalRefused(f"its type is {repr(type_)[:LONGEST_SHOWN]}; known: {known}")


def _chosen(key: bytes | None, pipelines: Collection[str]) -> tuple[str, ...]:
    if key is None:
        return tuple(sorted(pipelines))
    name = key.decode(errors="replace")
    if name not in pipelines:
        raise NotForUs(f"its key {name!r} names none of the pipelines")
    return (name,)


def _object(value: bytes | str | None, problem: str) -> dict[str, Any]:
    try:
        found = json.loads(value or b"")
        half = holds_half(found)
    except (ValueError, RecursionError) as error:
        raise SignalRefused(f"{problem}: {error}") from error
    if half:
        raise SignalRefused("it holds text that is not UTF-8; no name is such a text")
    if not isinstance(found, dict):
        raise SignalRefused(problem)
    return found


def _asked_tables(data: dict[str, Any]) -> tuple[str, ...]:
    kind = str(data.get("type", "incremental"))
    if kind.lower() != "incremental":
        raise SignalRefused(f"a snapshot of type {kind!r} is asked for, not an incremental one")
    for name in ("additional-conditions", "additional-condition", "surrogate-key"):
        if data.get(name):
            raise SignalRefused(f"{name!r} is not supported: a table is loaded whole")
    tables = _tables(data)
    if not tables:
        raise SignalRefused('"data-collections" names no table')
    return tables


def _tables(data: dict[str, Any]) -> tuple[str, ...]:
    names = data.get("data-collections") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SignalRefused('"data-collections" is not a list of texts')
    return tuple(_pattern(name) for name in names)


def _pattern(expression: str) -> str:
    """Debezium's are regular expressions: names, and ``.*`` for any, are understood."""
    parts = re.split(r"(\.\*|\\\.|\.)", expression.strip())
    words = []
    for part in parts:
        if part == ".*":
            words.append("*")
        elif part in (".", "\\."):
            words.append(".")
        elif part and not _PLAIN.fullmatch(part):
            raise SignalRefused(f"{expression!r}: only names and .* are understood, as shop\\..*")
        else:
            words.append(part)
    pattern = "".join(words)
    if "." not in pattern and "*" not in pattern:
        raise SignalRefused(f"{expression!r} is not of the form database.table")
    return pattern
