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
from actors.processor.buffer import TargetBuffer
from actors.processor.doubts import WAY_OUT
from actors.processor.merged import note_left_out, own_columns
from changes.column_changes import ColumnChange, is_enumeration
from changes.model import Mode, TableSchema
from changes.routing import Router
from changes.types import widen

_NEW = "new "
"""Before a new column's name, in the keys of what is noted."""

_Report = tuple[str, tuple[str, bool]]
"""A key, so that it is reported once; the text; whether it is true of rows written now, too."""

_KEEP_NULLS = (
    "value.converter.replace.null.with.default=false in Kafka Connect 3.5 or later, the same for"
    " key.converter; then have it send the rows again. Where it is set nothing is wrong"
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
) -> list[object]:
    """Note what is new, for the next write to carry, and report it.

    ``shared``: whether rows of several tables come to the target; then columns may differ from row
    to row. ``behind_write``: the file waits behind a write that may change the stored columns.
    """
    out = _take_beginning(buffer, staged, place) + _take_filled(buffer, staged.column_changes)
    out += note_left_out(buffer, staged)
    if (staged.mode or buffer.route.mode) is Mode.APPEND:
        return out
    found = dict(_listed(buffer, staged))
    others = {
        key: report for key, report in _seen(buffer, staged, behind_write) if key not in found
    }
    if others and not shared():
        found |= others
    for key, (what, amid) in found.items():
        if (noted := buffer.columns.doubts.get(key)) is not None:
            buffer.columns.doubts[key] = replace(noted, amid=noted.amid or amid)
            continue
        text = f"{what} {place}"
        buffer.columns.doubts[key] = Doubt(text, amid=amid)
        fields = {"target": buffer.name, "what": text, "help": WAY_OUT}
        out.append(fx.Log("warning", "columns_changed", fields))
    return out


def _take_beginning(buffer: TargetBuffer, staged: Staged, place: str) -> list[object]:
    """Report a target that begins with a row which the source had before.

    That happens where a table was left out at first, or reading began in the middle of its changes.
    It sets no mark: the first changes of a compacted topic are gone, though its rows are all there.
    With positions an older change may come after it, in another partition.
    """
    if buffer.columns.begun or not staged.begins:
        return []
    buffer.columns.begun = True
    keyed = (staged.mode or buffer.route.mode) is Mode.UPSERT and staged.positions is None
    if buffer.state.schema is not None or staged.begins == "I" or not keyed:
        return []
    what = f"{buffer.name}: its first change {place} is of a row that the source had before"
    return [fx.Log("warning", "begins_amid", {"target": buffer.name, "what": what, "help": _LOAD})]


def with_column_changes(buffer: TargetBuffer, batch: StagedBatch, router: Router) -> StagedBatch:
    """The write of rows, with what they say of columns: changes, and what each insert carries.

    Columns that are reported as new count as carried, for rows of before lack them, and those of
    the target that the route does not show. Of several tables, whose columns differ, each is looked
    at by itself (``actors.processor.merged``).
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
    """The columns, in small letters, that are reported as new: rows of before lack them."""
    return frozenset(
        key.removeprefix(_NEW) for key in buffer.columns.doubts if key.startswith(_NEW)
    )


def _take_filled(buffer: TargetBuffer, changes: Sequence[ColumnChange]) -> list[object]:
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
    out: list[object] = []
    for table, columns in found.items():
        what = f"{table}: NULL may have come as the column's default: {', '.join(columns)}"
        fields = {"target": buffer.name, "what": what, "help": _KEEP_NULLS}
        out.append(fx.Log("warning", "nulls_may_be_defaults", fields))
    return out


def forget_published(buffer: TargetBuffer) -> None:
    """What the last write carried is published."""
    if (write := buffer.life.write) is not None:
        carried = set(write.batch.doubts)
        buffer.columns.doubts = {
            key: each for key, each in buffer.columns.doubts.items() if each not in carried
        }


def _listed(buffer: TargetBuffer, staged: Staged) -> Iterator[_Report]:
    """What a table's own lists of columns say."""
    for change in staged.column_changes:
        if change.kind == "filled":
            continue
        name = change.column.lower()
        stated = change.kind == "new" and f"{change.table} {name}" in buffer.columns.stated
        if change.table and not stated:
            yield f"{change.kind} {name}", (f"{change.table}: {change.what}", change.amid)


def _seen(buffer: TargetBuffer, staged: Staged, behind_write: bool) -> Iterator[_Report]:
    """What types show, and columns that the table has not."""
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
