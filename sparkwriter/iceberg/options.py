"""What a route may ask of an Iceberg sink beside what every sink does. Pure: imports no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Write(Enum):
    """How a batch gets into a keyed table. What the table then shows is the same."""

    MERGE = "merge"
    """The stored rows are looked up: quickest to read."""
    EQUALITY = "equality"
    """Rows and the keys that they replace are laid beside the stored ones: quickest to write."""


def write_of(options: Mapping[str, str]) -> Write:
    """How it is wanted to be written; a batch that can't be written so goes by MERGE."""
    return Write(options.get("write", Write.MERGE.value))
