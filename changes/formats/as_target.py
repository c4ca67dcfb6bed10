"""Messages as people read them, with what a target of theirs would refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from changes.formats.engine.format import Format, RowChange, Statement, TableDecoder
from changes.model.model import BadMessage, BadRecord, Mode


class JudgedPart(NamedTuple):
    """What of a message one target gets."""

    target: str
    decoder: Callable[[], TableDecoder]
    """Makes a new one of the target's."""
    value: bytes


class AsTarget:
    """Explains messages in their order, and has their targets' decoders judge them."""

    def __init__(
        self, format_: Format, parts: Callable[[bytes], Iterable[JudgedPart]] | None = None
    ) -> None:
        """``parts``: the rows that each target gets of a message; raises BadMessage. None: each
        table is a target, without a key of the configuration's."""
        self._format = format_
        self._parts = parts
        self._decoders: dict[str, TableDecoder] = {}
        self._before: dict[str, bytes] = {}

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        """``Format.explain``, where ``misfit`` also tells why a target refuses a row as a whole."""
        changes = self._format.explain(value)
        rows = [change for change in changes if isinstance(change, RowChange)]
        if value is None or not rows or any(change.misfit for change in rows):
            return changes
        why = self._refusal(value, rows)
        if why is None:
            return changes
        place = changes.index(rows[0])
        told = replace(rows[0], misfit=why.removeprefix(f"{rows[0].table}: "))
        return (*changes[:place], told, *changes[place + 1 :])

    def _refusal(self, value: bytes, rows: Iterable[RowChange]) -> str | None:
        """Why the first target that does not take a message does not, None where all do."""
        try:
            parts = self._by_table(value, rows) if self._parts is None else self._parts(value)
            found = [self._judged(part) for part in parts]
        except BadMessage as bad:
            return str(bad)
        return next(filter(None, found), None)

    def _by_table(self, value: bytes, rows: Iterable[RowChange]) -> Iterable[JudgedPart]:
        table, *others = {str(row.table) for row in rows}
        if others:  # its entries go to a target each
            return []
        make = partial(self._format.table_decoder, Mode.UPSERT, None, self._format.types)
        return [JudgedPart(table, make, value)]

    def _judged(self, part: JudgedPart) -> str | None:
        """Why a target does not take its part: behind those before it, by itself, or behind the
        last one alone, as the second half of a change of keys."""
        target, value, refused = part.target, part.value, ""
        before = [self._before[target]] if target in self._before else []
        self._before[target] = value
        known = self._decoders.get(target)
        tries = [(part.decoder, [value]), (part.decoder, [*before, value])]
        if known is not None:
            tries.insert(0, (partial(copy, known), [value]))
        for make, values in tries:
            tried = make()
            try:
                tried.decode(0, range(len(values)), values)
            except BadRecord as error:
                refused = refused or error.reason
            else:
                self._decoders[target] = tried
                return None
        return refused
