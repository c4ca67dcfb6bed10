"""Names of tables that are filled to take another's, and of those that give theirs away. Pure."""

from __future__ import annotations

import zlib

from changes.model.model import TargetName

NAME_BYTES = 63
"""Of a table's name: PostgreSQL takes so many, and every other sink at least as many."""


def new_table(target: TargetName, number: str) -> TargetName:
    """The new table's name, one that no table had before. The folder of its files is named after it
    and keeps its name when the table is renamed. A long name leaves room for the ending, too.
    """
    return target._replace(table=_with_room(target.table, f"__rebuild_{number}"))


def put_aside(target: TargetName, into: TargetName) -> TargetName:
    """The old table's name after the new one, filled as ``into``, takes its name."""
    number = into.table.rpartition("_")[2]
    return target._replace(table=_with_room(target.table, f"__before_{number}"))


def _with_room(table: str, ending: str) -> str:
    """A name with an ending. One that is too long is cut, and gets a sum of the whole in its place,
    for two that begin alike may be rebuilt at once."""
    if len((table + ending).encode()) <= NAME_BYTES:
        return table + ending
    ending = f"_{zlib.crc32(table.encode()):08x}{ending}"
    kept = table.encode()[: NAME_BYTES - len(ending.encode())].decode(errors="ignore")
    return kept + ending
