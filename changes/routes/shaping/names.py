"""Names of columns that binlogd adds to targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from changes.model.model import CHANGELOG_NAMES

OWN_COLUMNS = frozenset(
    {
        *CHANGELOG_NAMES,
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


def unfit_names(key: str, names: Iterable[str]) -> Iterator[str]:
    """Why these can't be names of columns, each once."""
    counted = Counter(name.lower() for name in names)
    if "" in counted:
        yield f"{key}: a column's name is empty"
    twice = [name for name, count in counted.items() if count > 1]
    if twice:
        yield f"{key}: column {twice[0]} is there twice (case aside)"


# The error of a target whose rows can't have their shape.


class ShapeRefused(Exception):
    """The target can't have the shape that its route asks for: why, in one line."""
