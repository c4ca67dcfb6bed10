"""Reads the rows of Canal's JSON messages: any message exactly, and many that are alike at once."""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import astuple

from changes.formats.canal.layout import CanalLayout
from changes.formats.canal.message import (
    LETTERS,
    HandleKey,
    Message,
    MessageShape,
    position_of,
    read,
)
from changes.formats.engine.assemble import BLOCK_ROWS
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.image_rows import ImageRows
from changes.formats.engine.images import RowImage, RowShape
from changes.formats.engine.json_text import text_of
from changes.formats.engine.layout import Refused, decoded
from changes.formats.engine.rows import Pass
from changes.model.model import ColumnTypes
from changes.model.positions import position_text
from changes.model.records import Values

_FIRST_MESSAGES = 32
"""Messages decoded at once before it is known how many rows each has. More: thousands of rows
when they are large. Fewer: a small call takes more turns."""


class CanalRows(ImageRows):
    """The ``Rows`` of Canal JSON."""

    completes = False
    needs_columns = False

    def __init__(self, placed: bool) -> None:
        self._placed = placed
        self._ahead = _FIRST_MESSAGES
        self._shape: RowShape | None = None
        self._about: tuple[Any, ...] = ()
        """What the latest shape is made of."""

    def layout(self, keys: tuple[str, ...] | None, types: ColumnTypes) -> CanalLayout:
        return CanalLayout({}, keys, {}, configured=ConfiguredTypes.of(types))

    # --- one message, with nothing assumed about its columns

    def images(self, value: bytes) -> Iterator[RowImage]:
        message = read(value)
        if not message.data:
            return
        op = LETTERS.get(message.type)
        if op is None:
            raise Refused(f"unknown type {message.type!r}")
        shape = self._shape_of(message)
        position = position_of(message, op, shape) if self._placed else None
        # In InLong the replaced values are in ``updateBefore``.
        olds = (message.old or message.updateBefore or []) if op == "U" else []
        for values, was in itertools.zip_longest(message.data, olds[: len(message.data)]):
            if values is None:
                raise Refused("data holds null in place of a row")
            yield RowImage(op, values, was, shape, position)

    def _shape_of(self, message: Message) -> RowShape:
        rows = filter(None, message.data or ())
        names = tuple(dict.fromkeys(itertools.chain.from_iterable(rows)))
        about = (names, message.mysqlType, message.pkNames, message.sqlType, message.is_ticdc)
        if self._shape is None or about != self._about:
            self._about, self._shape = about, MessageShape(*about)
            # Without MySQL's types it may be of any database, as by Flink CDC.
            self.moves_freely = bytes(message.mysqlType).strip() not in (b"", b"null", b"{}")
        return self._shape

    def structs(self, into: Pass, image: RowImage) -> tuple[Struct, Struct | None]:
        was = image.was if into.layout.keys else None
        return _row(into.layout, image.now), None if was is None else _row(into.layout, was)

    # --- many messages of one layout

    def block(self, into: Pass) -> bool:
        layout = into.layout
        end = min(into.place + self._ahead, len(into.values))
        messages = _decoded(layout, into.values, into.place, end)
        if messages:
            self._add(into, messages)
        return into.layout is not layout or into.place == end

    def _add(self, into: Pass, messages: Sequence[Any]) -> None:
        """Add messages, up to one that changes the layout.

        A loop over them would cost as much as their decoding: so each member is read as a column,
        and a loop only finds those that are read by their images.
        """
        layout = into.layout
        columns = zip(*map(astuple, messages), strict=True)
        data, types, olds, names, kinds, tidb, before, times = columns
        ops = list(map(LETTERS.get, kinds))
        known = _are_known(types, layout.known)
        known = known and (into.fixed or _are_known(names, into.key_texts))
        if (
            known
            and all(data)
            and None not in ops
            and not any(before)
            and not any(map(_is_cut, tidb))
            and (not layout.keys or layout.keeps_keys(ops, data, olds))
            and _place(into, tidb, ops, data)
        ):
            into.times.append((into.place, times))
            self._add_rows(into, data, list(map(str, ops)))
            return
        for plain, some in itertools.groupby(messages, partial(_is_plain, into, known)):
            if plain:
                data, kinds, times = zip(*[(e.data, e.type, e.es) for e in some], strict=True)
                into.times.append((into.place, times))
                self._add_rows(into, data, list(map(LETTERS.__getitem__, kinds)))
                continue
            for _ in some:
                into.read_one()
                if into.layout is not layout:
                    return

    def _add_rows(self, into: Pass, data: Sequence[list[Struct]], letters: Sequence[str]) -> None:
        """Add the rows of messages, of each at least one; ``letters`` has one for each message."""
        rows, count = list(itertools.chain.from_iterable(data)), len(data)
        records: Iterable[int] = range(into.place, into.place + count)
        ops = "".join(letters)
        if len(rows) > count:
            sizes = list(map(len, data))
            ops = "".join(map(operator.mul, letters, sizes))
            records = itertools.chain.from_iterable(map(itertools.repeat, records, sizes))
        into.add_rows(rows, ops.encode(), records)
        into.place += count
        self._ahead = max(1, BLOCK_ROWS * count // len(rows))


def _place(
    into: Pass,
    marks: Sequence[HandleKey | None],
    ops: Sequence[str | None],
    data: Sequence[Sequence[Struct]],
) -> bool:
    """Give messages their positions; False where one has none, or a row lacks a column."""
    if into.positions is None:
        return True
    commits = [-1 if mark is None or mark.commitTs is None else mark.commitTs for mark in marks]
    kept = (rows for op, rows in zip(ops, data, strict=True) if op != "D")
    if min(commits) < 0 or any(
        UNSET in astuple(row) for row in itertools.chain.from_iterable(kept)
    ):
        return False
    into.positions.update(enumerate(map(position_text, commits), into.place))
    return True


def _is_plain(into: Pass, known: bool, message: Any) -> bool:
    """Whether a message moves no row, and has nothing else for which its images are needed.

    ``known``: its types and key certainly are.
    """
    layout, olds = into.layout, message.old
    return bool(
        message.data
        and into.positions is None
        and message.type in LETTERS
        and not message.updateBefore
        and not _is_cut(message.tidb)
        and (known or bytes(message.mysqlType) in layout.known)
        and (known or into.fixed or bytes(message.pkNames) in into.key_texts)
        and not (layout.keys and olds and layout.any_moves(message.data, olds))
    )


def _are_known(texts: Sequence[Raw], known: set[bytes]) -> bool:
    if texts.count(texts[0]) == len(texts):
        return bytes(texts[0]) in known
    return known.issuperset(map(bytes, texts))


def _is_cut(tidb: HandleKey | None) -> bool:
    """Whether a message may have been too large for TiCDC; ``read`` decides."""
    return tidb is not None and tidb.is_cut


def _decoded(layout: CanalLayout, values: Sequence[bytes], start: int, end: int) -> list[Any]:
    """Decode messages by the layout, up to the first that does not have it."""
    if layout.keys is None or not layout.columns:
        return []
    if not isinstance(values, Values):
        return decoded(layout.decode, values[start:end])
    # Each of them is one object, or ``heads`` would have refused it: so they need no frames.
    with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
        messages = layout.decode_lines(values.stretch(start, end))
        if len(messages) == end - start:
            return messages
    # A slice would copy all of them, though perhaps the first does not fit.
    return decoded(layout.decode, map(values.__getitem__, range(start, end)))


def _row(layout: CanalLayout, values: Mapping[str, Raw]) -> Struct:
    """Make a row of raw values; unknown columns are left out."""
    return layout.row(
        **{
            field: text_of(bytes(values[name]), layout.columns[name])
            for name, field in layout.fields.items()
            if name in values
        }
    )
