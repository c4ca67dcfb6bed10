"""Patterns of ``database.table``, as routes have them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from changes.model import TableName


def matching(pattern: str, names: Iterable[TableName]) -> list[TableName]:
    """The names that a pattern matches, in order. Case counts."""
    return sorted(name for name in names if fnmatchcase(str(name), pattern))
