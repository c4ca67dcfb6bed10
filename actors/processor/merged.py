"""Inserts that lack columns, of targets that several source tables feed: each table by itself.

A table that has shown a column, or was given it by a statement, has it: its inserts took a default
that no message carries, and the target is marked. One that has not may never have had it, so that
is a warning alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from actors.contract import effects as fx
from actors.contract.messages import Staged
from actors.contract.writes import Doubt
from actors.processor.buffer import TargetBuffer
from changes.model import TableName

_FULL = "binlog_row_image = FULL at the source; then have it send the rows again"
_MAYBE = f"nothing where the table has no such column; else {_FULL}"


def columns_of_any(buffer: TargetBuffer, owner: TableName | None) -> frozenset[str] | None:
    """The target's columns, in small letters, as far as its tables may have them; None where it is
    of one table."""
    if owner is not None:
        return None
    stored = buffer.state.schema
    names = () if stored is None else (column.name.lower() for column in stored.columns)
    return frozenset(names) - own_columns(buffer)


def own_columns(buffer: TargetBuffer) -> frozenset[str]:
    """The target's columns, in small letters, that come from no column which the route shows."""
    shape, stored = buffer.route.shape, buffer.state.schema
    if stored is None or (shape.columns is None and not shape.drop):
        return frozenset()
    old = {new.lower(): name for name, new in shape.rename}
    names = [column.name.lower() for column in stored.columns]
    return frozenset(name for name in names if not shape.shows(old.get(name, name)))


def note_left_out(buffer: TargetBuffer, staged: Staged) -> list[object]:
    """Note what the next write is to mark, and report each column of a table once."""
    out: list[object] = []
    for table, column, sure in _left_out(buffer, staged):
        about = f"{table or 'a source table'}: column {column}"
        what = f"{buffer.name}: {about}: inserts come without it"
        if sure:
            what += ", and its default at the source is not in the stream"
            key = f"left out {table} {column}"
            buffer.columns.doubts[key] = Doubt(what, amid=True)  # without a place: said once
        if what not in buffer.columns.left_out:
            buffer.columns.left_out.add(what)
            event = "rows_may_differ" if sure else "inserts_may_lack_columns"
            fields = {"target": buffer.name, "what": what, "help": _FULL if sure else _MAYBE}
            out.append(fx.Log("warning", event, fields))
    return out


def _left_out(buffer: TargetBuffer, staged: Staged) -> Iterator[tuple[str, str, bool]]:
    """Tables, columns that their inserts lack, and whether the table has them for sure."""
    if staged.schema is None:
        return
    columns = buffer.columns
    names = {column.name.lower() for column in staged.schema.columns}
    names |= columns_of_any(buffer, None) or set()
    names -= {key.lower() for key in staged.schema.keys}
    for table, shown in staged.tables.items():
        known = columns.shown.setdefault(table, set())
        known |= {name.lower() for name in shown.any}
        if shown.inserts is not None:
            for name in sorted(names.difference(name.lower() for name in shown.inserts)):
                stated = f"{table} {name}" in columns.stated
                yield table, name, bool(table) and (name in known or stated)
