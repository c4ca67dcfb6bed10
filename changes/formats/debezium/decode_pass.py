"""Reads the records of one ``decode`` call: blocks of a known shape at once, others one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from msgspec import UNSET, Raw, Struct
from msgspec.structs import astuple

from changes.formats.debezium import record as careful
from changes.formats.debezium.keys import (
    deleted_key,
    deleted_row,
    key_fields,
    other_values,
    replaced_key,
)
from changes.formats.debezium.layout import NULL, DebeziumLayout, DeclaredColumn, cell
from changes.formats.debezium.parts import NEW_KEY, OLD_KEY, Key, key_of
from changes.formats.debezium.places import Names, Place, place_texts, position_of
from changes.formats.debezium.record import Record
from changes.formats.debezium.row_segment import NOT_AT_HAND, JsonRowSegment
from changes.formats.debezium.state import State
from changes.formats.debezium.types import Field, from_schema, words
from changes.formats.debezium.unsent import (
    Unavailable,
    check_identity,
    may_be_filled,
    partial_image,
)
from changes.formats.engine.assemble import BLOCK_ROWS
from changes.formats.engine.format import VALUE_AT, packed_header, sizes
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.layout import Refused, decoded, other_key, spelled
from changes.model.model import Kind

_LETTERS = {"c": "I", "r": "I", "u": "U", "d": "D"}


@dataclass(frozen=True, slots=True)
class _Ended:
    """The record before was a delete: its key's bytes, and whether a new key was announced."""

    key: bytes
    moves: bool


class DecodePass:
    """Reads one call's records into rows as structs, in segments of one layout each."""

    def __init__(
        self, state: State, fixed: bool, names: Names, unavailable: Unavailable, run: KeyRun
    ) -> None:
        self.run = run
        self._run_at = 0
        """Rows that were added for first halves: a changed key counts as one."""
        self.positions: dict[int, str] | None = None
        """By the record's place; None where the pipeline is configured without positions."""
        self.state = replace(state, shapes=state.shapes.copy())
        self.place = 0
        self.segments: list[JsonRowSegment] = []
        self._segment_layout: DebeziumLayout | None = None
        self._moved = 0
        self._fixed = fixed
        self._names = names
        self._unavailable = unavailable
        self._values: Sequence[bytes] = ()
        self._ended: _Ended | None = None

    @property
    def count(self) -> int:
        """Row changes so far; one that changes a key makes two rows."""
        return sum(len(segment.ops) for segment in self.segments) - self._moved

    @property
    def numbered(self) -> int:
        """The number of the next row, both halves of a changed key being one."""
        return self.count - self._run_at

    def read(self, values: Sequence[bytes]) -> Refused | None:
        """Take the records in; give what stopped it at ``place``, None when all are in."""
        self._values = values
        try:
            while self.place < len(values):
                self._take_block(values[self.place : self.place + BLOCK_ROWS])
                if self.segments and self.segments[-1].is_full:
                    self.segments[-1].close_block()
                elif self.place < len(values):
                    self._read_careful(values[self.place])
                    self.place += 1
        except Refused as refused:
            return refused
        return None

    def _segment(self) -> JsonRowSegment:
        """The segment of the present layout; a new one where the columns have changed."""
        layout = self.state.layout
        if self._segment_layout is not layout:
            self._segment_layout = layout
            segment = JsonRowSegment(
                layout.columns, unavailable=self._unavailable, values=self._values
            )
            segment.keyed = bool(layout.keys)
            self.segments.append(segment)
        return self.segments[-1]

    # --- records of a known shape

    def _take_block(self, values: Sequence[bytes]) -> None:
        """Add the first of these records, as many as are of a known shape."""
        messages = self._decoded(values)
        if not messages or self._take_alike(messages):
            return
        for message, packed in zip(messages, values, strict=False):
            if not self._take(message, packed):
                return

    def _decoded(self, values: Sequence[bytes]) -> list[Any]:
        """Decode records up to the first that has another shape."""
        layout, shapes = self.state.layout, self.state.shapes
        if layout.keys is None or (layout.placed and shapes.added is not None):
            return []
        payloads, keys = shapes.cut(values, check_keys=not self._fixed)
        messages = decoded(layout.decoder(shapes.added), payloads)
        if keys:
            checked = decoded(shapes.bare_key, keys)
            if len(checked) < len(keys):
                del messages[len(checked) :]
        return messages

    def _take_alike(self, messages: Sequence[Any]) -> bool:
        """Add inserts and updates at once; False, and none of them, if one is anything else.

        A loop over them would cost as much as their decoding.
        """
        layout = self.state.layout
        befores, rows, ops, *sources = zip(*map(astuple, messages), strict=True)
        if not _LETTERS.keys() >= set(ops) or "d" in ops or None in rows:
            return False
        letters = "".join(map(_LETTERS.__getitem__, ops))
        if not layout.keys and "U" in letters and not self._unavailable.spares(rows):
            return False
        if layout.key is not None and "U" in letters:
            updates = list(map("u".__eq__, ops))
            olds, news = list(compress(befores, updates)), compress(rows, updates)
            if None in olds:
                if not self.state.covered:
                    return False
                news = compress(news, olds)
                olds = list(filter(None, olds))
            if list(map(layout.key, olds)) != list(map(layout.key, news)):
                return False
        if sources and not (self._unavailable.spares(rows) and self._place(sources[0])):
            return False
        segment = self._segment()
        segment.rows += rows
        segment.ops += letters.encode()
        segment.records += range(self.place, self.place + len(rows))
        self.place += len(rows)
        self._ended = None
        return True

    def _take(self, message: Any, packed: bytes) -> bool:
        """Add a record of a known shape; False if it has to be read slowly."""
        size, key_size, _ = sizes(packed)
        layout, row, letter = self.state.layout, message.after, _LETTERS.get(message.op)
        ended = None
        if letter == "D":
            row = self._gone(message.before)
            begin = VALUE_AT + size
            ended = None if key_size < 0 else _Ended(packed[begin : begin + key_size], False)
        elif letter == "U" and layout.key is not None:
            if message.before is None:
                row = row if self.state.covered or key_size < 0 else None
            elif row is not None and layout.key(message.before) != layout.key(row):
                return False
        elif letter == "U" and row is not None and not self._unavailable.spares((row,)):
            row = row if message.before is None else None
        if row is None or letter is None:
            return False
        if layout.placed:
            whole = letter == "D" or self._unavailable.spares((row,))
            if not (whole and self._place((message.source,))):
                return False
        self._segment().add(row, letter, self.place)
        self._ended = ended
        self.place += 1
        return True

    def _place(self, sources: Sequence[Place | None]) -> bool:
        """Keep the positions of the next records; False, and none of them, if one has none."""
        texts = place_texts(sources)
        if self.positions is None or texts is None:
            return False
        self.positions.update(enumerate(texts, self.place))
        return True

    def _gone(self, before: Struct | None) -> Struct | None:
        """The row of a delete: in a changelog the old one, else just its key. None: look again."""
        layout = self.state.layout
        if not layout.keys or before is None:
            return before
        key = {name: getattr(before, name) for name in layout.key_fields}
        known = None not in key.values() and UNSET not in key.values()
        known = known and not any(map(may_be_filled, key.values()))
        return layout.gone(key) if known and len(key) == len(layout.keys) else None

    # --- the slow path

    def _read_careful(self, packed: bytes) -> None:
        record = careful.read(packed, self._names)
        if record.kind is not Kind.ROWS:
            return
        key = key_of(packed, lenient=self._fixed)
        if self._fixed:
            self._spell_key(record, key)
        else:
            self._learn_key(key)
        keys = self.state.layout.keys or ()
        if key is not None and keys and not self.state.covered:
            self.state = replace(self.state, covered=key.columns.keys() >= set(keys))
        if record.tombstone is not None and not (keys and self._is_unseen(key)):
            return
        if self.positions is not None:
            if record.tombstone is not None:  # it repeats a delete, and has no position
                return
            self.positions[self.place] = position_of(record.payload or {})
        if record.letter == "D":
            self._end(packed, record, key)
        else:
            self._change(packed, record, key)
            self._ended = None
        self.state = self.state.compared(record, self.place)
        if record.prefix is not None:
            self.state.shapes.learn_payload(record.prefix, record.added)
        if not self._fixed and key is not None:
            self.state.shapes.learn_key(key.prefix, list(key.members))

    def _is_unseen(self, key: Key | None) -> bool:
        """Whether a tombstone says more than the delete just before it."""
        return key is not None and (self._ended is None or self._ended.key != key.text)

    def _spell_key(self, record: Record, key: Key | None) -> None:
        """Take the configured key as the records spell it."""
        names = {*(record.after or ()), *(record.before or ()), *(key.columns if key else ())}
        keys = spelled(self.state.layout.keys, names)
        if keys is not None and keys != self.state.layout.keys:
            self.state = replace(self.state, layout=self.state.layout.with_keys(keys))

    def _learn_key(self, key: Key | None) -> None:
        layout = self.state.layout
        names = () if key is None else tuple(key.columns)
        if layout.keys is None:
            self.state = replace(self.state, layout=layout.with_keys(names))
            self.state.shapes.keyless = not names
        elif set(names) != set(layout.keys):
            raise other_key(layout.keys, names)

    def _learn(
        self, fields: Mapping[str, Field], carried: Mapping[str, Raw], unsent: Sequence[str] = ()
    ) -> None:
        """Take in a record's columns, by its schema and its values.

        ``unsent`` are columns that it has, but no values of.
        """
        types = {n: DeclaredColumn(from_schema(each), words(each)) for n, each in fields.items()}
        types |= {name: DeclaredColumn(None, "") for name in unsent if name not in fields}
        layout = self.state.layout.grown(types, carried)
        self.state = self.state.with_sources(fields)
        for key in layout.keys or ():
            if key not in layout.columns:
                raise Refused(f"key column {key} is missing")
        if layout is not self.state.layout:
            if not self.state.layout.means_the_same(layout):
                # What is known of beginnings holds for columns that meant other things.
                self.state.shapes.payloads.clear()
            self.state = replace(self.state, layout=layout)

    def _end(self, packed: bytes, record: Record, key: Key | None) -> None:
        keys = self.state.layout.keys or ()
        if keys:
            image = deleted_key(record, key, keys, configured=self._fixed)
            if record.tombstone is None:
                check_identity(record, image, keys)
            self._learn(record.fields or key_fields(key), image)
            row = self._ended_row(image)
        else:
            image = deleted_row(record, key)
            self._learn(record.fields or {}, image)
            row = self.state.layout.make(image)
        moves = packed_header(packed, NEW_KEY) is not None
        if not (moves and keys) or self._leaves(record, image):
            self._segment().add(row, "D", self.place)
            self._run_at += moves
        else:
            moves = False  # an insert that lacks something can't have it from there
        self._ended = None if key is None else _Ended(key.text, moves)

    def _leaves(self, record: Record, old: Mapping[str, Raw]) -> bool:
        """Whether a key's row ends where its row moves away: not if another one has come."""
        keys = self.state.layout.keys or ()
        before = other_values(record.before or {}, self.state.layout.columns, keys)
        # Under REPLICA IDENTITY DEFAULT null is a value that was not sent.
        known = [UNSET if value == NULL else value for value in before]
        key = tuple([bytes(old[name]) for name in keys])
        return self.run.leaves(self.numbered, key, known, partial_image(record, keys))

    def _arrives(self, sent: Mapping[str, Raw]) -> None:
        """Note that a row has moved to its key by the second half of a change."""
        keys = self.state.layout.keys or ()
        key = tuple([bytes(sent.get(name, NULL)) for name in keys])
        after = other_values(sent, self.state.layout.columns, keys)
        self.run.arrives(self.numbered, key, after)

    def _ended_row(self, key: Mapping[str, Raw]) -> Struct:
        layout = self.state.layout
        return layout.gone(
            {
                layout.fields[name]: cell(bytes(raw), layout.columns[name].wire)
                for name, raw in key.items()
            }
        )

    def _change(self, packed: bytes, record: Record, key: Key | None) -> None:
        after, keys = record.after, self.state.layout.keys or ()
        if after is None:
            raise Refused("an insert or update without the new row")
        if not after:
            raise Refused("a row without columns")
        unavailable = self._unavailable.within(record.payload or {})
        sent = unavailable.without(after)
        lost = next((name for name in (*after, *(record.fields or ())) if name not in sent), None)
        if lost is not None and self.positions is not None:
            raise Refused(
                f"column {lost} is missing: rows that carry only part of their columns can't be "
                "put in order by a position a row"
            )
        if record.letter == "U" and not keys:  # a changelog's: what was not sent did not change
            sent = unavailable.without(record.before or {}) | sent
        old = None
        if record.letter == "U" and keys:
            old = replaced_key(record, key, keys, configured=self._fixed)
        if old is not None:
            self._learn(record.fields or {}, old)
        self._learn(record.fields or {}, sent, [name for name in after if name not in sent])
        row = self.state.layout.make(sent)
        if old is not None:
            self._segment().add(self._ended_row(old), "D", self.place)
            self._came_from_there()
        elif record.letter == "I" and keys and len(sent) < len(after):
            if not (self._ended and self._ended.moves and packed_header(packed, OLD_KEY)):
                raise Refused(f"{lost}: {NOT_AT_HAND}")
            self._came_from_there()
        if record.letter == "I" and keys and packed_header(packed, OLD_KEY) is not None:
            self._arrives(sent)
        self._segment().add(row, record.letter, self.place)

    def _came_from_there(self) -> None:
        """The next row moved here from the key that the row before it deletes."""
        segment = self._segment()
        segment.moved.append(len(segment.ops))
        self._moved += 1
