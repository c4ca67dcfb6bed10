"""Decodes the rows of one target in Canal's protobuf packets, an event's cells at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET

from changes.formats.canal.flat import first_of, rows_of_many, texts_of
from changes.formats.canal.layout import type_word
from changes.formats.canal.packet import DELETE, INSERT, UPDATE, rows_of, table_of
from changes.formats.engine.block_decoder import BlockDecodePass, BlockTableDecoder
from changes.formats.engine.flat_rows import BulkBackoff, Leftover, moved_records
from changes.formats.engine.layout import Refused
from changes.formats.engine.row_blocks import Cell, RowBlocks, Shape, with_keys
from changes.formats.engine.row_images import TextRow
from changes.model.model import ColumnTypes, FormatOptions, Mode, TableName
from changes.sql.mysql.tokens import on_one_line

_SQL_SHOWN = 80
"""Characters of a statement that an error quotes."""

LETTERS = {INSERT: "I", UPDATE: "U", DELETE: "D"}

_SHAPES_KEPT = 1_000
"""Shapes of rows in the cache; minimal images of a wide table have many."""


class CanalWireDecoder(BlockTableDecoder):
    """The ``TableDecoder`` of Canal protobuf."""

    def __init__(
        self,
        options: FormatOptions,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes = (),
    ) -> None:
        super().__init__(options, mode, keys, types)
        self._shapes: dict[tuple[Any, ...], Shape] = {}

    def _decode_pass(self, blocks: RowBlocks) -> _DecodePass:
        return _DecodePass(blocks, self._backoff, self._shapes)

    def _last_table(self, value: bytes) -> TableName | str:
        return last_table(value)


class _DecodePass(BlockDecodePass):
    """Reads one call's packets."""

    def __init__(
        self, blocks: RowBlocks, backoff: BulkBackoff, shapes: dict[tuple[Any, ...], Shape]
    ) -> None:
        super().__init__(blocks, backoff)
        self._shapes = shapes

    def _add_many(self, values: Sequence[bytes], start: int) -> Iterator[Leftover] | None:
        flat = rows_of_many(values)
        first = None if flat is None else first_of(flat)
        if flat is None or first is None:
            return None
        names = tuple([column.name for column in first])
        shape, blocks = self._shape(first, names, more=()), self._blocks
        try:
            blocks.learn(shape)
        except Refused:
            return None  # reading one by one finds the record
        moved = moved_records(flat, shape.names, blocks.layout.keys or ())
        texts = None if moved is None else texts_of(flat, first)
        if moved is None or texts is None:
            return None
        left = blocks.add_flat(shape, texts, flat, moved, start)
        return ((place, [values[place - start]]) for place in left)

    def _add_message(self, value: bytes, place: int) -> None:
        self._about = ""
        for entry, change in rows_of(value):
            self._about = f"{table_of(entry)}: "
            self._add(change, letter_of(change, entry), place)

    def _add(self, change: Any, op: str, place: int) -> None:
        rows = change.rowDatas
        if not rows:
            check_rows(change)
            return
        images = [row.beforeColumns if op == "D" else row.afterColumns for row in rows]
        flat = images[0] if len(images) == 1 else list(itertools.chain.from_iterable(images))
        names = tuple([column.name for column in flat])
        width = len(images[0])
        if not all(images):
            raise Refused(f"a row of {_OPS[op]} without columns")
        alike = len(images) == 1 or names == names[:width] * len(images)
        if not alike or (op == "U" and self._is_logged(rows[0]) and any(map(_left_out, rows))):
            for row in rows:
                self._add_one(row, op, place)
            return
        self._add_alike(rows, flat, names[:width], op, place)

    def _add_one(self, row: Any, op: str, place: int) -> None:
        image = row.beforeColumns if op == "D" else row.afterColumns
        if op == "U" and self._is_logged(row):
            image = [*image, *_left_out(row)]
        self._add_alike([row], image, tuple([column.name for column in image]), op, place)

    def _is_logged(self, row: Any) -> bool:
        """Whether rows make a changelog, in which a row has the values of both its images."""
        keys = self._blocks.layout.keys
        if keys is not None:
            return not keys
        return not any(column.isKey for column in (*row.afterColumns, *row.beforeColumns))

    def _add_alike(
        self, rows: Sequence[Any], flat: Sequence[Any], names: tuple[str, ...], op: str, place: int
    ) -> None:
        cells: list[Cell] = [None if column.isNull else column.value for column in flat]
        shape = self._shape_of(rows[0], flat[: len(names)], names, op)
        blocks = self._blocks
        blocks.learn(shape)
        keys = blocks.layout.keys
        if op != "U" or not keys:
            blocks.add(shape, cells, op, place)
            return
        olds = [_old_key(row.beforeColumns, keys) for row in rows]
        wider, cells = with_keys(shape, cells, keys)
        if wider is not shape:
            blocks.learn(wider)
        blocks.update(
            wider, cells, olds, place, lambda row: _old_key(rows[row].beforeColumns, wider.names)
        )

    def _shape_of(self, row: Any, columns: Sequence[Any], names: tuple[str, ...], op: str) -> Shape:
        # What an update's new row lacks, its old one may have: a key's columns and types.
        lacks = op == "U" and not any(column.isKey for column in columns)
        beside = row.beforeColumns if lacks else ()
        more = tuple([(c.name, type_word(c.mysqlType, c.sqlType)) for c in beside if c.isKey])
        return self._shape(columns, names, more)

    def _shape(
        self, columns: Sequence[Any], names: tuple[str, ...], more: tuple[tuple[str, str], ...]
    ) -> Shape:
        types = tuple([(column.mysqlType, column.sqlType) for column in columns])
        keyed = tuple([column.isKey for column in columns])
        signature = (names, types, keyed, more)
        shape = self._shapes.get(signature)
        if shape is None:
            if len(self._shapes) >= _SHAPES_KEPT:
                self._shapes.clear()
            words = itertools.starmap(type_word, types)
            declared = {n: t for n, t in (*zip(names, words, strict=True), *more) if t}
            keys = tuple(itertools.compress(names, keyed)) or tuple(name for name, _ in more)
            shape = self._shapes[signature] = Shape(names, declared, keys)
        return shape


_OPS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}


def check_rows(change: Any) -> None:
    """Refuse a change without rows: a binlog in statement format."""
    if not change.rowDatas and change.sql:
        sql = on_one_line(change.sql)[:_SQL_SHOWN]
        raise Refused(f"a statement without rows (the source's binlog_format must be ROW): {sql}")


def letter_of(change: Any, entry: Any) -> str:
    """The letter of the rows' change; raises Refused."""
    if change.isDdl:
        raise Refused("a statement (isDdl) in an entry of rows")
    event = change.eventType or entry.header.eventType or UPDATE
    op = LETTERS.get(event)
    if op is None:
        raise Refused(f"a RowChange of event type {event} in an entry of rows")
    return op


def _left_out(row: Any) -> list[Any]:
    """Columns that only the old row holds: a minimal image has just those that changed."""
    if len(row.beforeColumns) <= len(row.afterColumns) and all(
        old.name == new.name for old, new in zip(row.beforeColumns, row.afterColumns, strict=False)
    ):
        return []
    names = {column.name for column in row.afterColumns}
    return [column for column in row.beforeColumns if column.name not in names]


def _old_key(columns: Sequence[Any], keys: Sequence[str]) -> list[Cell]:
    """An updated row's old key. UNSET for what the old row does not hold."""
    found: list[Cell] = []
    count = len(columns)
    for place, key in enumerate(keys):
        # Most keys come first.
        column = columns[place] if place < count else None
        if column is None or column.name != key:
            column = next((each for each in columns if each.name == key), None)
        found.append(UNSET if column is None else None if column.isNull else column.value)
    return found


def last_table(value: bytes) -> TableName | str:
    """The table of a packet's last rows, for an error."""
    tables = [table_of(entry) for entry, _ in rows_of(value)]
    return tables[-1] if tables else "a packet without rows"


def text_rows(change: Any, op: str) -> Iterator[TextRow]:
    """The rows of a RowChange, one by one, for people; raises Refused."""
    check_rows(change)
    for row in change.rowDatas:
        after, before = row.afterColumns, row.beforeColumns
        keys = dict.fromkeys(c.name for c in (*after, *before) if c.isKey)
        typed = [c for c in (*before, *after) if c.mysqlType]
        types = {c.name: type_word(c.mysqlType, c.sqlType) for c in typed}
        now, was = (before, ()) if op == "D" else (after, before)
        if not now:
            raise Refused(f"a row of {_OPS[op]} without columns")
        yield TextRow(op, _image(now), _image(was) if op == "U" else None, tuple(keys), types)


def _image(columns: Sequence[Any]) -> dict[str, str | None]:
    return {column.name: None if column.isNull else column.value for column in columns}
