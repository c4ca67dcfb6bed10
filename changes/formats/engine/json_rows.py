"""Messages of one row each, of typed JSON values: shared by Maxwell, GoldenGate and their like.

A block of messages is read by the layout's decoder and handled a member at a time. A message that
does not fit the layout is read by itself, slowly, and the layout grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import astuple

from changes.formats.engine.assemble import BLOCK_ROWS
from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.image_rows import ImageRows
from changes.formats.engine.images import RowImage, RowShape
from changes.formats.engine.json_layout import (
    Documents,
    JsonLayout,
    is_document,
    may_move,
    with_nulls,
    with_olds,
)
from changes.formats.engine.lacking import lacked_by_inserts, shows_null
from changes.formats.engine.layout import Layout, decoded
from changes.formats.engine.rows import Pass
from changes.model.model import ColumnTypes

_DELETE, _INSERT = ord("D"), "I"


class JsonRows(ImageRows):
    """The ``ImageRows`` of such a format, which says by which members a message is read quickly.

    A change has its row in ``now``, a D perhaps only in ``was``; the replaced values of an update
    are in ``was``, as far as the message has them. ``images`` reads any message, and gives one
    image (``image_of``).
    """

    letters: Mapping[str, str]
    """I, U or D by the value of ``kind``."""
    members: Mapping[str, str]
    """The messages' names of ``kind``, ``now``, ``was`` and ``names``, which names the key; and of
    ``odd``, if there is one: a member that has a message read slowly."""
    times = "times "
    """The messages' name of the source's time, if there is one."""
    deletes_by_was = False
    """Which of two images of a deleted row counts."""

    def bodies(self, values: Sequence[bytes]) -> Sequence[bytes]:
        """The messages themselves, of records that may be packed."""
        return values

    def key_texts(self, names: Sequence[Raw], values: Sequence[bytes]) -> Sequence[bytes]:
        """The texts by which records name their keys: ``RowShape.key_text``; ``names`` is that
        member of the messages."""
        if names.count(names[0]) == len(names):
            return (bytes(names[0]),)
        return list(map(bytes, names))

    def times_of(self, kinds: Sequence[str], times: Sequence[Any]) -> Sequence[object]:
        """The times of messages, as ``Pieces`` has them; ``times``: that member of theirs."""
        return ()

    def layout(self, keys: tuple[str, ...] | None, types: ColumnTypes) -> JsonLayout:
        return JsonLayout(self._message, {}, keys, {}, configured=ConfiguredTypes.of(types))

    def _message(self, row: type[Struct]) -> type[Struct]:
        image: Any = row
        fields: list[tuple[str, Any, Any]] = [
            ("kind", str, ""),
            ("now", image | None | UnsetType, None),
            ("was", image | None | UnsetType, None),
            ("names", Raw, Raw()),
            ("odd", Any, None),
            ("times", Any, None),
        ]
        # No member's name ends in a space: such a field keeps its default.
        names = {"odd": "odd ", **self.members, "times": self.times}
        return msgspec.defstruct("Message", fields, rename=names, gc=False)

    # --- one message, with nothing assumed about its columns

    def fitted(self, layout: Layout, image: RowImage) -> Layout:
        assert isinstance(layout, JsonLayout)
        images = (image.now, image.was or {})
        documents = {n for each in images for n, raw in each.items() if is_document(raw)}
        documents -= layout.documents
        return layout.with_documents(documents) if documents else layout

    def structs(self, into: Pass, image: RowImage) -> tuple[Struct, Struct | None]:
        layout = into.layout
        row = layout.row_of(image.now)
        was = None if image.was is None else layout.row_of(image.was)
        if self.drops_nulls:
            self._fill(into, image.op, row, was)
        return row, was

    def _fill(self, into: Pass, op: str, row: Struct, was: Struct | None) -> None:
        """Put nulls where they were left out; see ``drops_nulls``."""
        for name, field in into.layout.fields.items():
            cell = getattr(row, field)
            into.shows_nulls = into.shows_nulls or cell is None
            if cell is not UNSET:
                continue
            if op == _INSERT:
                into.lacked.add(name)
            if op == _INSERT or (was is not None and getattr(was, field) is not UNSET):
                setattr(row, field, None)

    # --- many messages of one layout

    def block(self, into: Pass) -> bool:
        layout = into.layout
        if layout.keys is None or not layout.columns:
            return False
        values = into.values[into.place : into.place + BLOCK_ROWS]
        messages = decoded(layout.decode, self.bodies(values))
        if messages and not self._add_alike(into, messages, values):
            for message, value in zip(messages, values, strict=False):
                if not self._add_known(into, message, value):
                    into.read_one()
                if into.layout is not layout:
                    return True
        return into.layout is not layout or len(messages) == len(values)

    def _add_alike(self, into: Pass, messages: Sequence[Any], values: Sequence[bytes]) -> bool:
        """Add messages that all fit the layout; False, and none of them, if one does not.

        A loop over them would cost as much as their decoding, so each member is read as a column.
        True also where the layout has to change first: then none was added.
        """
        kinds, nows, wases, names, odds, times = zip(*map(astuple, messages), strict=True)
        row, letters = into.layout.row, self.letters
        if odds.count(None) < len(odds) or not letters.keys() >= set(kinds):
            return False
        if not self._name_key(into, names, values[: len(names)]):
            return False
        ops = "".join(map(letters.__getitem__, kinds)).encode()
        rows: list[Any] = list(nows)
        by_was = self.deletes_by_was and b"D" in ops
        if by_was or set(map(type, nows)) != {row}:
            for place, op in enumerate(ops):
                if op == _DELETE:
                    rows[place] = self._ended(row, nows[place], wases[place])
                if not isinstance(rows[place], row):
                    return False
        into.times.append((into.place, self.times_of(kinds, times)))
        self._add(into, ops, rows, wases)
        return True

    def _add_known(self, into: Pass, message: Any, value: bytes) -> bool:
        """Add a message of a known shape; False if it is not and has to be read slowly."""
        row = into.layout.row
        if message.kind not in self.letters or message.odd is not None:
            return False
        op = self.letters[message.kind]
        now = self._ended(row, message.now, message.was) if op == "D" else message.now
        if not isinstance(now, row) or not self._name_key(into, (message.names,), (value,)):
            return False
        self._add(into, op.encode(), [now], (message.was,))
        return True

    def _ended(self, row: type[Struct], now: object, was: object) -> object:
        """The image of a deleted row."""
        first, second = (was, now) if self.deletes_by_was else (now, was)
        return first if isinstance(first, row) else second

    def _name_key(self, into: Pass, names: Sequence[Raw], values: Sequence[bytes]) -> bool:
        """Whether these all name the key that the layout has."""
        return into.fixed or into.key_texts.issuperset(self.key_texts(names, values))

    def _add(self, into: Pass, ops: bytes, rows: Sequence[Struct], wases: Sequence[Any]) -> None:
        """Add rows with their old images, one for each message. Where a column turns out to hold
        documents, only the layout changes, and nothing is added."""
        layout: JsonLayout = into.layout
        moves = bool(layout.keys) and may_move(layout, ops, rows, wases)
        if not layout.keys and not self.drops_nulls:
            rows = with_olds(layout, ops, rows, wases)
        olds = [was if isinstance(was, layout.row) else None for was in wases] if moves else []
        try:
            texts = layout.texts([*rows, *filter(None, olds)])  # an old key may become a row
        except Documents as found:
            into.layout = layout.with_documents(found.names)
            return
        if moves:
            for op, row, was in zip(ops.decode(), rows, olds, strict=True):
                if self.drops_nulls:
                    self._fill(into, op, row, was)
                into.add(op, row, was)
                into.place += 1
            return
        if self.drops_nulls:
            into.shows_nulls = into.shows_nulls or any(map(shows_null, texts))
            into.lacked |= lacked_by_inserts(ops, dict(zip(layout.columns, texts, strict=True)))
            texts = with_nulls(layout, ops, wases, texts)
        into.add_columns(layout.columns, texts, ops, range(into.place, into.place + len(rows)))
        into.place += len(rows)


def image_of(
    op: str,
    now: Mapping[str, Raw],
    was: Mapping[str, Raw] | None,
    keys: tuple[str, ...],
    key_text: bytes,
) -> RowImage:
    """The image of a message whose columns have no declared types. ``key_text`` is the text in
    which the record names its key, ``keys`` the names in it."""
    names = tuple(dict.fromkeys((*now, *(was or ()))))
    return RowImage(op, now, was, RowShape(names, {}, keys, b"", key_text))
