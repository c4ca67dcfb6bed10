"""Reads neighbouring records of a known shape at once: their bytes before the payload are known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import astuple

from changes.formats.debezium.layout import DebeziumLayout
from changes.formats.debezium.memory import ListMemory
from changes.formats.debezium.places import LogPlace, place_texts, times_of
from changes.formats.debezium.record import LETTERS
from changes.formats.debezium.unsent import Unavailable, may_be_filled
from changes.formats.engine.assemble import BLOCK_ROWS
from changes.formats.engine.format import VALUE_AT, sizes
from changes.formats.engine.layout import decoded
from changes.formats.engine.rows import Pass


class FastPath:
    """The next records of a pass, as many as make a block. They raise nothing: whatever is not
    certain is left to be read slowly."""

    def __init__(self, into: Pass, unavailable: Unavailable) -> None:
        self._into = into
        self._memory: ListMemory = into.memory
        self._layout: DebeziumLayout = into.layout
        self._unavailable = unavailable

    def add(self) -> bool:
        """Add the first of them; whether these are all."""
        into = self._into
        values = into.values[into.place : into.place + BLOCK_ROWS]
        messages, end = self._decoded(values), into.place + len(values)
        if messages and not self._take_all(messages):
            self._take_first(messages, values)
        return into.place == end

    def _decoded(self, values: Sequence[bytes]) -> list[Any]:
        """Decode records up to the first that has another shape."""
        layout, shapes = self._layout, self._memory.shapes
        if layout.keys is None or (layout.placed and shapes.added is not None):
            return []
        payloads, keys = shapes.cut(values, check_keys=not self._into.fixed)
        messages = decoded(layout.reader(shapes.added), payloads)
        if keys:
            checked = decoded(shapes.bare_key, keys)
            if len(checked) < len(keys):
                del messages[len(checked) :]
        return messages

    def _take_all(self, messages: Sequence[Any]) -> bool:
        """Add inserts and updates at once; False, and none of them, if one is anything else.

        A loop over them would cost as much as their decoding.
        """
        layout, into = self._layout, self._into
        befores, rows, ops, sources = zip(*map(astuple, messages), strict=True)
        if not LETTERS.keys() >= set(ops) or "d" in ops or None in rows:
            return False
        letters = "".join(map(LETTERS.__getitem__, ops))
        if not layout.keys and "U" in letters and not self._unavailable.spares(rows):
            return False
        if layout.key is not None and "U" in letters:
            updates = list(map("u".__eq__, ops))
            olds, news = list(compress(befores, updates)), compress(rows, updates)
            if None in olds:
                if not self._memory.covered:
                    return False
                news = compress(news, olds)
                olds = list(filter(None, olds))
            if list(map(layout.key, olds)) != list(map(layout.key, news)):
                return False
        if layout.placed and not (
            self._unavailable.spares(rows) and self._place(sources, into.place)
        ):
            return False
        into.times.append((into.place, times_of(ops, sources)))
        into.add_rows(rows, letters.encode(), range(into.place, into.place + len(rows)))
        into.place += len(rows)
        self._memory.moves, into.run.deleted = False, None
        return True

    def _take_first(self, messages: Sequence[Any], values: Sequence[bytes]) -> None:
        """Add records up to one that has to be read slowly."""
        into, rows, letters = self._into, list[Struct](), list[str]()
        for message, packed in zip(messages, values, strict=False):
            row, letter = self._row_of(message, packed, into.place + len(rows))
            if row is None:
                break
            rows.append(row)
            letters.append(letter)
        if rows:
            _, _, ops, sources = zip(*map(astuple, messages[: len(rows)]), strict=True)
            into.times.append((into.place, times_of(ops, sources)))
            into.add_rows(
                rows, "".join(letters).encode(), range(into.place, into.place + len(rows))
            )
            into.place += len(rows)

    def _row_of(self, message: Any, packed: bytes, place: int) -> tuple[Struct | None, str]:
        """The row of the record at that place, None where it has to be read slowly."""
        layout, row, letter = self._layout, message.after, LETTERS.get(message.op, "")
        ended = None
        if letter == "D":
            row = self._gone(message.before)
            size, key_size, _ = sizes(packed)
            begin = VALUE_AT + size
            ended = None if key_size < 0 else packed[begin : begin + key_size]
        elif letter == "U" and layout.key is not None:
            if message.before is None:
                row = row if self._memory.covered or sizes(packed)[1] < 0 else None
            elif row is not None and layout.key(message.before) != layout.key(row):
                row = None
        elif letter == "U" and row is not None and not self._unavailable.spares((row,)):
            row = row if message.before is None else None
        if row is None or not letter:
            return None, letter
        if layout.placed:
            whole = letter == "D" or self._unavailable.spares((row,))
            if not (whole and self._place((message.source,), place)):
                return None, letter
        self._memory.moves, self._into.run.deleted = False, ended
        return row, letter

    def _place(self, sources: Sequence[LogPlace | None], place: int) -> bool:
        """Keep the positions of records from that place on; False, and none of them, if one has
        none."""
        texts, positions = place_texts(sources), self._into.positions
        if positions is None or texts is None:
            return False
        positions.update(enumerate(texts, place))
        return True

    def _gone(self, before: Struct | None) -> Struct | None:
        """The row of a delete: in a changelog the old one, else just its key. None: look again."""
        layout = self._layout
        if not layout.keys or before is None:
            return before
        key = layout.key_of(before)
        known = None not in key and UNSET not in key and not any(map(may_be_filled, key))
        return layout.gone(before, before) if known and len(key) == len(layout.keys) else None
