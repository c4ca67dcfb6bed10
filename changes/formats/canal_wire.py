"""Decodes the rows of one target out of Canal's packets, a whole event's cells at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET

from changes.convert import Converter
from changes.declared import Declared
from changes.formats.canal_flat import rows_of_many, texts_of, told_of
from changes.formats.canal_packet import DELETE, INSERT, UPDATE, rows_of, table_of
from changes.formats.flat_rows import Leftover, Trying, moved_records
from changes.formats.key_runs import KeyRun
from changes.formats.layout import Refused, Unfit
from changes.formats.row_blocks import BlockLayout, Cell, RowBlocks, Shape, with_keys
from changes.formats.row_images import TextRow
from changes.model import (
    BadMessage,
    BadRecord,
    Changes,
    ColumnTypes,
    FormatOptions,
    Mode,
    TableName,
    TableSchema,
)

_SQL_SHOWN = 80
"""Characters of a statement that an error quotes."""

LETTERS = {INSERT: "I", UPDATE: "U", DELETE: "D"}

_SHAPES_KEPT = 1_000
"""Shapes of rows kept ready; minimal images of a wide table come in many."""


class CanalWireDecoder:
    """The ``TableDecoder`` of Canal protobuf.

    A call that raises leaves what is known of the columns as it was, so the records before the
    bad one can be decoded again without it.
    """

    def __init__(
        self,
        options: FormatOptions,
        mode: Mode,
        keys: tuple[str, ...] | None,
        types: ColumnTypes = (),
    ) -> None:
        self._options = options
        keys = () if mode is Mode.APPEND else (keys or None)
        self._fixed = keys is not None
        self._layout = BlockLayout({}, keys, {}, given=Declared.of(types))
        self._shapes: dict[tuple[Any, ...], Shape] = {}
        self._run = KeyRun()
        self._seen = False
        self._trying = Trying()

    @property
    def schema(self) -> TableSchema | None:
        return self._layout.schema if self._seen else None

    @property
    def positions(self) -> str | None:
        return None

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        blocks = RowBlocks(self._layout, self._fixed, self._run.begun(partition, offsets))
        reading = _Reading(blocks, self._shapes, self._trying)
        bad = reading.add_all(values)
        converter = Converter(self._options.time_zone, self._options.zero_dates)
        try:
            changes = blocks.changes(converter, partition, offsets)
        except BadRecord as misfit:
            table = last_table(values[misfit.index])
            raise BadRecord(misfit.index, f"{table}: {misfit.reason}") from misfit
        if bad is not None:
            raise bad
        if changes is not None:
            self._layout, self._seen = blocks.layout, True
            self._run = blocks.run.ended(blocks.count)
        return changes


class _Reading:
    """One call's way through its packets."""

    def __init__(
        self, blocks: RowBlocks, shapes: dict[tuple[Any, ...], Shape], trying: Trying
    ) -> None:
        self._about = ""
        self._blocks = blocks
        self._trying = trying
        self._shapes = shapes

    def add_all(self, values: Sequence[bytes]) -> BadRecord | None:
        """Take packets in, up to the first that can't be read: gives what is wrong with it."""
        for start, some in self._trying.left_over(values, self._add_many):
            for place, value in enumerate(some, start):
                try:
                    self._add_packet(value, place)
                except (Refused, BadMessage) as refused:
                    unfit = isinstance(refused, Unfit)
                    return BadRecord(place, f"{self._about}{refused}", of_table=unfit)
        return None

    def _add_many(self, values: Sequence[bytes], start: int) -> Iterator[Leftover] | None:
        """Take packets in at once where all of their rows are alike, else nothing of them."""
        flat = rows_of_many(values)
        told = None if flat is None else told_of(flat)
        if flat is None or told is None:
            return None
        shape, blocks = self._shape(*told, more=()), self._blocks
        try:
            blocks.learn(shape)
        except Refused:
            return None  # read one by one they tell at which record
        moved = moved_records(flat, shape.names, blocks.layout.keys or ())
        texts = None if moved is None else texts_of(flat, told)
        if moved is None or texts is None:
            return None
        left = blocks.add_flat(shape, texts, flat, moved, start)
        return ((place, [values[place - start]]) for place in left)

    def _add_packet(self, value: bytes, place: int) -> None:
        """Take a packet in; raises Refused, BadMessage."""
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
        """Whether rows make a changelog, in which one has all that either of its images tells."""
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
        types = tuple([column.mysqlType for column in columns])
        keyed = tuple([column.isKey for column in columns])
        # What an update's new row lacks, its old one may tell: a key's columns and types.
        beside = row.beforeColumns if op == "U" and not any(keyed) else ()
        return self._shape(
            names, types, keyed, tuple([(c.name, c.mysqlType) for c in beside if c.isKey])
        )

    def _shape(
        self,
        names: tuple[str, ...],
        types: tuple[str, ...],
        keyed: tuple[bool, ...],
        more: tuple[tuple[str, str], ...],
    ) -> Shape:
        told = (names, types, keyed, more)
        shape = self._shapes.get(told)
        if shape is None:
            if len(self._shapes) >= _SHAPES_KEPT:
                self._shapes.clear()
            declared = {n: t for n, t in (*zip(names, types, strict=True), *more) if t}
            keys = tuple(itertools.compress(names, keyed)) or tuple(name for name, _ in more)
            shape = self._shapes[told] = Shape(names, declared, keys)
        return shape


_OPS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}


def check_rows(change: Any) -> None:
    """Refuse what changed rows without saying which: a binlog in statement format."""
    if not change.rowDatas and change.sql:
        sql = " ".join(change.sql.split())[:_SQL_SHOWN]
        raise Refused(f"a statement without rows (the source's binlog_format must be ROW): {sql}")


def letter_of(change: Any, entry: Any) -> str:
    """What happened to the rows; raises Refused."""
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
        types = {c.name: c.mysqlType for c in (*before, *after) if c.mysqlType}
        now, was = (before, ()) if op == "D" else (after, before)
        if not now:
            raise Refused(f"a row of {_OPS[op]} without columns")
        yield TextRow(op, _image(now), _image(was) if op == "U" else None, tuple(keys), types)


def _image(columns: Sequence[Any]) -> dict[str, str | None]:
    return {column.name: None if column.isNull else column.value for column in columns}
