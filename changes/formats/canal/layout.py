"""The layout of Canal's messages: a target's columns, and the structs that read them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from changes.formats.canal.message import HandleKey
from changes.formats.engine.layout import Layout


class CanalLayout(Layout):
    """The layout of Canal's rows: texts, in lists, with their types beside them."""

    def decode_lines(self, messages: memoryview) -> list[Any]:
        """Decode messages that stand one after another."""
        return self._lines(messages)

    def decoder(self, message: type[Struct]) -> Callable[[bytes], Any]:
        one = msgspec.json.Decoder(message)
        self._lines: Callable[[memoryview], list[Any]] = one.decode_lines
        return one.decode

    def message_type(self) -> type[Struct]:
        row: Any = self.row
        old: Any = self.old
        # In the order in which Canal writes them, which msgspec reads fastest.
        fields: list[tuple[str, Any, Any]] = [
            ("data", list[row] | None, None),
            ("mysqlType", Raw, Raw()),
            ("old", list[old | None] | None, None),
            ("pkNames", Raw, Raw()),
            ("type", str, ""),
            ("tidb", HandleKey | None, None),
            ("updateBefore", list[Any] | None, None),
            ("es", Any, None),
        ]
        names = {"tidb": "_tidb"}
        if not self.keys:
            # A changelog does not need these: they get names that no member has.
            names |= {"old": "old ", "updateBefore": "updateBefore "}
        return msgspec.defstruct("Message", fields, rename=names, gc=False)

    def names_key(self, olds: Sequence[Struct | None]) -> bool:
        """Whether any old image has a key column: most updates don't."""
        return olds.count(None) + olds.count(self.no_key) < len(olds)

    def any_moves(self, data: Sequence[Struct], olds: Sequence[Struct | None]) -> bool:
        """Whether any of a message's updates may have changed its key."""
        if not self.names_key(olds):
            return False
        pairs = zip(data, olds, strict=False)
        return any(old is not None and self.moves(old, row) for row, old in pairs)

    def keeps_keys(
        self,
        ops: Sequence[str | None],
        data: Sequence[Sequence[Struct]],
        olds: Sequence[Sequence[Struct | None] | None],
    ) -> bool:
        """Whether the updates among these messages certainly changed no key.

        False: each row has to be checked.
        """
        if not self.names_key(list(itertools.chain.from_iterable(filter(None, olds)))):
            return True
        # Some tools send the whole old row. Only where each row has one are they pairs.
        updates = [op == "U" for op in ops]
        after = list(itertools.compress(data, updates))
        before = [old or () for old in itertools.compress(olds, updates)]
        if list(map(len, before)) != list(map(len, after)):
            return False
        images = list(itertools.chain.from_iterable(before))
        if None in images:
            return False
        key = operator.attrgetter(*self.key_fields)
        return list(map(key, images)) == list(map(key, itertools.chain.from_iterable(after)))
