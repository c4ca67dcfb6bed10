"""Names of columns that binlogd adds to targets."""

from __future__ import annotations

from collections.abc import Iterator

from changes.model.model import CHANGELOG_COLUMNS

OWN_COLUMNS = frozenset(
    {
        *(name for name, _ in CHANGELOG_COLUMNS),
        *("_ts", "_source_ts", "_position", "_deleted", "_partition_number"),
        *("_valid_from", "_valid_to", "_is_current", "_ended_at"),
    }
)
"""Columns that binlogd adds to targets: no route gives another one such a name."""

METADATA_NAMES = ("_op", "_ts", "_source_ts", "_partition", "_offset", "_position")
"""What may be shown of where a row comes from."""

HISTORY_NAMES = ("_valid_from", "_valid_to", "_is_current", "_ended_at")
"""What each version of a row says."""


def unfit_new_name(key: str, name: str) -> Iterator[str]:
    """Why no column may get the name."""
    lower = name.lower()
    if lower in OWN_COLUMNS or lower.startswith("__binlogd"):
        yield f"{key}: {name} is a name of binlogd's own columns"


# The error of a target whose rows can't have their shape.


class ShapeRefused(Exception):
    """The target can't have the shape that its route asks for: why, in one line."""
