"""Stages a batch: decodes its messages, folds them, writes one file.

Plain work without threads or processes. ``process.py`` runs it beside the daemon.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy

import pyarrow as pa
import pyarrow.compute as pc

from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import BadMessageAt, Staged, StageFailed
from actors.staging.counting import counts_of
from actors.staging.decoding import decode_all
from actors.staging.key_lanes import CountUnknown, Elsewhere, KeyLanes, NotByKey, Records
from actors.staging.staged_tables import StagedStorage
from changes.formats.engine.assemble import Pieces
from changes.formats.engine.column_changes import ColumnChange, changed_types
from changes.formats.engine.format import Format, TableDecoder
from changes.formats.engine.lacking import ShownColumns, common, shown_by_tables
from changes.formats.wire.decoder import SchemaLost
from changes.model.model import (
    FROM,
    HAS_PREFIX,
    BadMessage,
    Changes,
    Mode,
    TableSchema,
    TargetName,
)
from changes.model.positions import has_positions
from changes.routes.fold import (
    concat_changes,
    fold,
    has_deletes,
    has_rows,
    key_bounds,
    partial_columns,
)
from changes.routes.shaping.decoder import FormatRecords, ShapedDecoder
from changes.routes.shaping.names import ShapeRefused
from changes.routes.shaping.partial import as_whole, redecided
from changes.routes.shaping.shape import Shape
from offsets.key_partitioning import KeyPartitioning

# Tells what each source table's rows have, of a target that several tables may feed.

Decoded = Sequence[tuple[LaneMessages, Changes]]
"""What became of lanes' messages, of those that have rows."""


def tables_shown(
    request: Stage, decoded: Decoded, schema: TableSchema, format_: Format
) -> Mapping[str, ShownColumns]:
    """By source table what its rows have, under the target's names; none where no insert lacks a
    column, so that whole rows cost nothing. A table that is not known is empty."""
    if request.merged is None:
        return {}
    wide = request.merged.union(column.name.lower() for column in schema.columns)
    found: dict[str, ShownColumns] = {}
    for lane, changes in decoded:
        has = changes.carried
        if has is None or wide <= {name.lower() for name in has}:
            continue
        for table, shown in _by_table(lane, changes, request.route.shape, has, format_):
            found[table] = shown.and_(found.get(table, ShownColumns()))
    return found


def _by_table(
    lane: LaneMessages, changes: Changes, shape: Shape, has: frozenset[str], format_: Format
) -> Iterable[tuple[str, ShownColumns]]:
    pieces, values = changes.origins, lane.messages.values
    unknown = [("", ShownColumns(has, has))]
    if not isinstance(pieces, Pieces):  # a filter has taken rows away
        return unknown
    read = max(pieces.records) + 1
    try:
        heads = list(format_.heads(values[:read]))
    except BadMessage:
        return unknown
    if len(heads) < read:  # a format that takes messages apart
        return unknown
    tables = ["" if head.table is None else str(head.table) for head in heads]
    made = has - {shape.name_of(name) for name in pieces.columns}
    made |= {name for name, _ in shape.computed}
    return [
        (table, ShownColumns(_having(shape, rows.any, made), _inserts(shape, rows, made)))
        for table, rows in shown_by_tables(pieces, tables).items()
    ]


def _inserts(shape: Shape, rows: ShownColumns, made: frozenset[str]) -> frozenset[str] | None:
    return None if rows.inserts is None else _having(shape, rows.inserts, made)


def _having(shape: Shape, names: frozenset[str], made: frozenset[str]) -> frozenset[str]:
    """With the columns that the route makes of them."""
    return _named(shape, names) | (made - shape.computed_without(names))


def _named(shape: Shape, names: Iterable[str]) -> frozenset[str]:
    return frozenset(shape.name_of(name) for name in names if shape.shows(name))


_LOST = (
    "The folder of schemas was lost or can't be read: restore it, or let the registry answer: it "
    "is queried again for each schema in use, every check_every_s. Then it recovers by itself"
)


class StageWork:
    """Stages the batches of one pipeline, and remembers its targets' columns.

    For one thread at a time. All batches of a target must come to the same instance.
    """

    def __init__(
        self, format_: Format, tables: StagedStorage, now_s: Callable[[], float] = time.time
    ) -> None:
        self._format = format_
        self._tables = tables
        self._now_s = now_s
        self._decoders: dict[TargetName, tuple[int, TableDecoder]] = {}
        self._declared: dict[TargetName, Mapping[str, str]] = {}
        self._key_lanes = KeyLanes(format_.record_keys)

    def stage(self, request: Stage, path: str) -> Staged | StageFailed:
        """Stage the request. A full disk is an answer, and so is a shape that does not fit, or keys
        that are not in their partitions; any other fault is raised."""
        try:
            return self._stage(request, path)
        except OSError as error:
            return StageFailed(request.route.name, f"{path}: {error}")
        except ShapeRefused as error:
            return Staged(request.route.name, refused=str(error))
        except Elsewhere as error:
            return StageFailed(request.route.name, str(error), elsewhere=True)
        except NotByKey as error:
            return Staged(request.route.name, not_by_key=str(error))
        except CountUnknown as error:
            return StageFailed(request.route.name, str(error))
        except SchemaLost as error:
            return StageFailed(request.route.name, f"{error.reason}. {_LOST}")

    def _stage(self, request: Stage, path: str) -> Staged:
        decoder = self._decoder(request)
        before = copy(decoder)
        try:
            return self._decoded(request, decoder, path)
        except Exception:
            # What it holds is decoded again, as if it had not been.
            self._decoders[request.route.name] = request.generation, before
            raise

    def _decoded(self, request: Stage, decoder: TableDecoder, path: str) -> Staged:
        target = request.route.name
        read, bad = decode_all(decoder, request.lanes)
        decoded = [found for _, found in read]
        changes, nulled = sum(p.count for p in decoded), sum(p.nulled for p in decoded)
        if not (decoded or request.earlier_files):
            return Staged(target, changes=changes, nulled=nulled, bad=bad)
        schema = decoder.schema
        assert schema is not None
        upsert, spread = bool(schema.keys), self._key_partitioning(request, bad, schema)
        table = self._table(request, decoded, schema.keys)
        size = self._tables.write(path, table)
        declared, changed = self._declarations(request, decoder, table)
        return Staged(
            target=target,
            path=path,
            rows=table.num_rows,
            size=size,
            changes=changes,
            nulled=nulled,
            schema=schema,
            mode=Mode.UPSERT if upsert else Mode.APPEND,
            has_deletes=upsert and has_deletes(table),
            has_rows=not upsert or has_rows(table),
            partial=partial_columns(table) if upsert else (),
            bounds=key_bounds(table, schema.keys) if upsert else (),
            positions=decoder.positions if upsert else None,
            bad=bad,
            declared_types=declared,
            column_changes=changed,
            begins=decoded[0].begins if decoded else "",
            moves=FROM in table.column_names,
            carried=common(p.carried for p in decoded),
            tables=tables_shown(request, read, schema, self._format),
            key_partitioning=spread,
            counts=counts_of(read, self._format) if request.counted else {},
            cut=any(p.cut for p in decoded),
            alike=any(p.alike for p in decoded),
        )

    def _key_partitioning(
        self, request: Stage, bad: BadMessageAt | None, schema: TableSchema
    ) -> KeyPartitioning | None:
        """How the keys of the good records are spread. Raises NotByKey, CountUnknown."""
        if request.partitioned is None or not schema.keys:
            return None
        lanes = request.lanes if bad is None else request.lanes[: bad.lane_index + 1]
        good = [Records(at.source, at.messages.offsets, at.messages.values) for at in lanes]
        if bad is not None:
            last = good[-1]
            good[-1] = last._replace(values=last.values[: bad.index])
        target, shape = request.route.name, request.route.shape
        read = [records for records in good if records.values]
        return self._key_lanes.partitioning(target, request.partitioned, read, schema, shape)

    def _decoder(self, request: Stage) -> TableDecoder:
        """The target's decoder, a new one for each generation."""
        target, route = request.route.name, request.route
        generation, before = self._decoders.get(target, (request.generation, None))
        decoder = before if generation == request.generation else None
        if decoder is None:
            decoder = self._format.table_decoder(route.mode, route.keys, route.types)
            if route.shape:
                decoder = ShapedDecoder(
                    decoder, route.shape, FormatRecords(self._format, self._now_s)
                )
            if request.stored is not None:
                decoder.use_stored_schema(request.stored)
            if before is not None:
                decoder.use_key_runs(before.key_runs)
            self._decoders[target] = request.generation, decoder
            self._declared.pop(target, None)
        return decoder

    def _table(self, request: Stage, decoded: Sequence[Changes], keys: Sequence[str]) -> pa.Table:
        """The rows of earlier files and of decoded messages, folded if they have keys. Raises
        OSError, and ShapeRefused."""
        tables = [self._tables.read(file) for file in request.earlier_files]
        tables += [part.table for part in decoded]
        if not keys:
            return concat_changes(tables)
        filter_ = request.route.shape.row_filter
        if filter_ is None or has_positions(tables[0]):
            return fold(concat_changes(tables), keys)
        table = concat_changes(as_whole(tables))
        partial = bool(partial_columns(table))
        folded = fold(table, keys)
        return redecided(folded, filter_) if partial else folded

    def _declarations(
        self, request: Stage, decoder: TableDecoder, table: pa.Table
    ) -> tuple[Mapping[str, str] | None, tuple[ColumnChange, ...]]:
        """The types that differ from the last answer, or those of all columns that the table's
        rows have, and the columns that changed without a statement."""
        target, amid = request.route.name, bool(request.earlier_files)
        changed, declared = decoder.take_column_changes(), dict(decoder.declared_types)
        was, self._declared[target] = self._declared.get(target, {}), declared
        fresh = {name: words for name, words in declared.items() if was.get(name) != words}
        if all(each.kind == "filled" for each in changed):  # no column list says it more precisely
            changed += tuple(changed_types(was, declared))
        if request.all_types and declared:
            fresh |= {name: declared[name] for name in _in_rows(table) if name in declared}
        return fresh or None, tuple(each._replace(amid=each.amid or amid) for each in changed)


def _in_rows(changes: pa.Table) -> Iterator[str]:
    """The columns that some row has. Others may be known from earlier messages alone."""
    for name in changes.column_names:
        has = HAS_PREFIX + name
        if has not in changes.column_names or pc.any(changes[has]).as_py():
            yield name
