"""What a route may ask of an Iceberg sink beside what every sink does. Pure: imports no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from changes.shaping.layout import Sort, Transform, sorts_of, transforms_of

_OURS = (
    "binlogd.",
    "encryption.",
    "format-version",
    "gc.enabled",
    "write.delete.",
    "write.format.",
    "write.merge.",
    "write.update.",
    "write.delete-format.",
)
"""What properties begin with that binlogd's own files and deletions depend on."""


class Write(Enum):
    """How a batch gets into a keyed table. What the table then shows is the same."""

    MERGE = "merge"
    """The stored rows are looked up: quickest to read."""
    EQUALITY = "equality"
    """Rows and the keys that they replace are laid beside the stored ones: quickest to write."""


def write_of(options: Mapping[str, str]) -> Write:
    """How it is wanted to be written; a batch that can't be written so goes by MERGE."""
    return Write(options.get("write", Write.MERGE.value))


class Layout(NamedTuple):
    """How a table's files are laid out, and what its properties are."""

    partitions: tuple[Transform, ...] = ()
    order: tuple[Sort, ...] = ()
    properties: Mapping[str, str] = {}


NO_LAYOUT = Layout()
"""Neither partitions nor an order."""


def layout_of(options: Mapping[str, str]) -> Layout:
    """What a route asks of a table's files."""
    return Layout(
        transforms_of(json.loads(options.get("partition_by", "[]"))),
        sorts_of(json.loads(options.get("sort_by", "[]"))),
        properties_of(options),
    )


def properties_of(options: Mapping[str, str]) -> dict[str, str]:
    """The table properties that a route asks for."""
    return dict(json.loads(options.get("table_properties", "{}")))


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise ValueError for a property that is binlogd's own to set."""
    for name in properties:
        if not name.strip():
            raise ValueError("table_properties: a name is empty")
        if any(name.lower().startswith(own) for own in _OURS):
            raise ValueError(f"table_properties: {name} is binlogd's own to set")
