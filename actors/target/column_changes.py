"""Reports columns that change in the rows without a statement, and marks the target.

The source may have given stored rows other values with such a change: a new column's default, or
values converted to another type. No message says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from actors.contract import effects as fx
from actors.contract.messages import Staged
from actors.contract.writes import Doubt, StagedBatch
from actors.target.buffer import TargetBuffer
from actors.target.divergence import WAY_OUT
from actors.target.pending import StagedFile
from changes.formats.engine.column_changes import ColumnChange, is_enumeration
from changes.formats.engine.lacking import common
from changes.model.model import Mode, TableName, TableSchema
from changes.model.types import widen
from changes.routes.routing import Router

_NEW = "new "
"""Before a new column's name, in the keys of what is noted."""

_Report = tuple[str, tuple[str, bool]]
"""A key, so that it is reported once; the text; whether it is true of rows written now, too."""

_KEEP_NULLS = (
    "value.converter.replace.null.with.default=false in Kafka Connect 3.5 or later, the same for"
    " key.converter; then have it send the rows again. Where it is set nothing is wrong"
)

_FULL = "binlog_row_image = FULL at the source; then have it send the rows again"
_MAYBE = f"nothing where the table has no such column; else {_FULL}"

_VERIFY = (
    "`binlogd tables verify TARGET --repair` compares the rows with the source's and writes those "
    "that differ; else have the source send the table's rows again"
)

_LOAD = (
    "unless the topic is compacted, rows that did not change since are missing: have the source "
    "send them again (Debezium's signal execute-snapshot, an UPDATE that changes each row), or, "
    "where the topic holds them, `binlogd tables rebuild`"
)


def note_column_changes(
    buffer: TargetBuffer,
    staged: Staged,
    place: str,
    *,
    shared: Callable[[], bool],
    behind_write: bool,
    files: Sequence[StagedFile] = (),
) -> list[fx.TargetEffect]:
    """Note what is new, for the next write to carry, and report it.

    ``files``: earlier ones, whose rows are in what is staged. ``shared``: whether rows of several
    tables come to the target; then columns may differ from row to row. ``behind_write``: the file
    waits behind a write that may change the stored columns.
    """
    out = _take_beginning(buffer, staged, place) + _take_filled(buffer, staged.column_changes)
    out += note_left_out(buffer, staged)
    waits = behind_write and bool(buffer.staged_files)  # one write takes these rows and those
    out += _take_keys(buffer, staged, place, amid=waits)
    if (staged.mode or buffer.route.mode) is Mode.APPEND:
        return out
    found = dict(_listed(buffer, staged))
    carried = common((staged.carried, *(file.carried for file in files)))
    seen = _seen(buffer, staged, behind_write, carried)
    others = {key: report for key, report in seen if key not in found}
    if others and not shared():
        found |= others
    for key, (what, amid) in found.items():
        amid = amid or waits
        if (noted := buffer.columns.doubts.get(key)) is not None:
            buffer.columns.doubts[key] = replace(noted, amid=noted.amid or amid)
            continue
        text = f"{what} {place}"
        buffer.columns.doubts[key] = Doubt(text, amid=amid)
        fields = {"target": buffer.name, "what": text, "help": WAY_OUT}
        out.append(fx.Log("warning", "columns_changed", fields))
    return out


def _take_beginning(buffer: TargetBuffer, staged: Staged, place: str) -> list[fx.TargetEffect]:
    """Report a target that begins with a row which the source had before.

    That happens where a table was left out at first, or reading began in the middle of its changes.
    It sets no mark: the first changes of a compacted topic are gone, though its rows are all there.
    With positions an older change may come after it, in another partition.
    """
    if not staged.begins or not buffer.columns.take_first():
        return []
    keyed = (staged.mode or buffer.route.mode) is Mode.UPSERT and staged.positions is None
    if buffer.state.schema is not None or staged.begins == "I" or not keyed:
        return []
    what = f"{buffer.name}: its first change {place} is of a row that the source had before"
    return [fx.Log("warning", "begins_amid", {"target": buffer.name, "what": what, "help": _LOAD})]


def _take_keys(
    buffer: TargetBuffer, staged: Staged, place: str, *, amid: bool
) -> list[fx.TargetEffect]:
    """Note, for the next write to mark, that changes of keys may have crossed unseen.

    Where rows begin amid them, what came before is in the table, but no longer in memory. A table
    that is not there yet holds nothing of it. Two rows that look alike may be in one write.
    """
    found: list[tuple[str, bool]] = []
    if staged.cut and buffer.state.schema is not None:
        began = f"reading began amid changes of keys, {place}: a row that took another's key just"
        found.append((f"{began} before may be missing", amid))
    if staged.alike:
        which = f"of two changes of keys, {place}, nothing tells whether they are of one row or of"
        found.append((f"{which} two that are equal but for their keys: a row may be missing", True))
    out: list[fx.TargetEffect] = []
    for why, with_it in found:
        what = f"{buffer.name}: {why}"
        buffer.columns.doubts[f"keys {what}"] = Doubt(what, amid=with_it)
        fields = {"target": buffer.name, "what": what, "help": _VERIFY}
        out.append(fx.Log("warning", "rows_may_differ", fields))
    return out


def with_column_changes(buffer: TargetBuffer, batch: StagedBatch, router: Router) -> StagedBatch:
    """The write of rows, with what they say of columns: changes, and what each insert carries.

    Columns that are reported as new count as carried, because older rows lack them. So do those of
    the target that the route does not show. Where several tables have different columns, each is
    examined by itself (``note_left_out``).
    """
    batch = replace(batch, doubts=(*batch.doubts, *buffer.columns.doubts.values()))
    labels = {n: words for n, words in buffer.columns.types.items() if is_enumeration(words)}
    if labels and not router.shared(buffer.route.name):
        batch = replace(batch, labels=labels)
    if batch.carried is None:
        return batch
    if batch.table is None:
        return replace(batch, carried=None)
    known = batch.schema.columns + (buffer.state.schema or batch.schema).columns
    if batch.carried.issuperset(column.name for column in known):
        return batch
    return replace(batch, carried=batch.carried | _new_columns(buffer) | own_columns(buffer))


def _new_columns(buffer: TargetBuffer) -> frozenset[str]:
    """The columns, in lower case, that are reported as new: older rows lack them."""
    return frozenset(
        key.removeprefix(_NEW) for key in buffer.columns.doubts if key.startswith(_NEW)
    )


def _take_filled(buffer: TargetBuffer, changes: Sequence[ColumnChange]) -> list[fx.TargetEffect]:
    """Columns whose NULLs may come as their defaults: reported once for each table
    in a run.

    It sets no mark: it is unknown whether a row differs, and nearly all tables of a source would
    have the mark, which would hide what did happen.
    """
    found: dict[str, list[str]] = {}
    for each in changes:
        key = f"{each.table} {each.column}"
        if each.kind == "filled" and key not in buffer.columns.filled:
            buffer.columns.filled.add(key)
            found.setdefault(each.table, []).append(each.column)
    out: list[fx.TargetEffect] = []
    for table, columns in found.items():
        what = f"{table}: NULL may have come as the column's default: {', '.join(columns)}"
        fields = {"target": buffer.name, "what": what, "help": _KEEP_NULLS}
        out.append(fx.Log("warning", "nulls_may_be_defaults", fields))
    return out


def _listed(buffer: TargetBuffer, staged: Staged) -> Iterator[_Report]:
    """What a table's own lists of columns say."""
    for change in staged.column_changes:
        if change.kind == "filled":
            continue
        name = change.column.lower()
        stated = change.kind == "new" and f"{change.table} {name}" in buffer.columns.stated
        if change.table and not stated:
            yield f"{change.kind} {name}", (f"{change.table}: {change.what}", change.amid)


def _seen(
    buffer: TargetBuffer, staged: Staged, behind_write: bool, carried: frozenset[str] | None
) -> Iterator[_Report]:
    """What types show, and columns that the table has not. ``carried``: those that each insert
    has, where inserts may lack some."""
    stored, about = buffer.state.schema, buffer.name
    for change in staged.column_changes:
        if not change.table:
            yield f"{change.kind} {change.column.lower()}", (f"{about}: {change.what}", change.amid)
    if behind_write or staged.schema is None:
        return
    if stored is None:
        for name in staged.partial:
            what = f"{about}: column {name} is missing in first rows"
            yield f"new {name.lower()}", (what, True)
    else:
        lacked = {name.lower() for name in staged.partial}
        if carried is not None:
            whole = {name.lower() for name in carried}
            lacked |= {column.name.lower() for column in staged.schema.columns} - whole
        for name, what in _beside(buffer, stored, staged.schema):
            yield name, (what, name.removeprefix("new ") in lacked)


def _beside(
    buffer: TargetBuffer, stored: TableSchema, schema: TableSchema
) -> Iterator[tuple[str, str]]:
    """What rows have that the table has not; declared types are no change at the source."""
    here = {column.name.lower(): column.type for column in stored.columns}
    shape = buffer.route.shape
    declared = {shape.name_of(name).lower() for name, _ in buffer.route.types}
    for column in schema.columns:
        name = column.name.lower()
        if name not in here:
            yield f"new {name}", f"{buffer.name}: column {column.name} is new"
        elif name not in declared and widen(here[name], column.type) not in (None, here[name]):
            what = f"column {column.name} from {here[name]} to {column.type}"
            yield f"type {name}", f"{buffer.name}: {what}"


def any_columns(buffer: TargetBuffer, owner: TableName | None) -> frozenset[str] | None:
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


def note_left_out(buffer: TargetBuffer, staged: Staged) -> list[fx.TargetEffect]:
    """Note what the next write is to mark, of a target that several source tables feed, and report
    each column of a table once.

    A table that has shown a column, or was given it by a statement, has it: its inserts took a
    default that no message carries. One that has not may never have had it: a warning alone.
    """
    out: list[fx.TargetEffect] = []
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
    names |= any_columns(buffer, None) or set()
    names -= {key.lower() for key in staged.schema.keys}
    for table, shown in staged.tables.items():
        known = columns.shown.setdefault(table, set())
        known |= {name.lower() for name in shown.any}
        if shown.inserts is not None:
            for name in sorted(names.difference(name.lower() for name in shown.inserts)):
                stated = f"{table} {name}" in columns.stated
                yield table, name, bool(table) and (name in known or stated)
