"""Decodes the rows of one target under ``format = "auto"``, by the format of its first record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy

from changes.formats.engine.column_changes import ColumnChange
from changes.formats.engine.format import TableDecoder, mark_in, marked_name
from changes.formats.engine.key_runs import KeyRuns, resumed
from changes.model.model import BadMessage, BadRecord, Changes, TableSchema


class AutoTableDecoder:
    """The ``TableDecoder`` of a target; all of its records must be of one format.

    ``decoder_of`` makes the decoder of a mark's format, ``plain`` removes the marks of records.
    Both raise BadMessage.
    """

    def __init__(
        self,
        decoder_of: Callable[[bytes], TableDecoder],
        plain: Callable[[bytes, Sequence[bytes]], Sequence[bytes]],
        positions: str | None,
    ) -> None:
        self._decoder_of = decoder_of
        self._plain = plain
        self._positions = positions
        self._mark = b""
        self._inner: TableDecoder | None = None
        self._stored: TableSchema | None = None
        self._runs: KeyRuns = {}

    def __copy__(self) -> AutoTableDecoder:
        """As it is now: what it decodes later does not change the copy."""
        made = AutoTableDecoder(self._decoder_of, self._plain, self._positions)
        made._mark, made._stored, made._runs = self._mark, self._stored, self._runs
        made._inner = copy(self._inner)
        return made

    @property
    def schema(self) -> TableSchema | None:
        return None if self._inner is None else self._inner.schema

    @property
    def positions(self) -> str | None:
        return self._positions

    @property
    def declared_types(self) -> Mapping[str, str]:
        return {} if self._inner is None else self._inner.declared_types

    def take_column_changes(self) -> tuple[ColumnChange, ...]:
        return () if self._inner is None else self._inner.take_column_changes()

    def use_stored_schema(self, stored: TableSchema) -> None:
        self._stored = stored

    @property
    def key_runs(self) -> KeyRuns:
        return self._runs if self._inner is None else self._inner.key_runs

    def use_key_runs(self, runs: KeyRuns) -> None:
        self._runs = runs

    def resume(self, partition: int, held: int, start: int) -> None:
        if self._inner is None:
            self._runs = resumed(self._runs, partition, held, start)
        else:
            self._inner.resume(partition, held, start)

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        if not values:
            return None
        try:
            if self._inner is None:
                mark = mark_in(values[0])
                self._inner = self._decoder_of(mark)
                self._mark = mark
                if self._stored is not None:
                    self._inner.use_stored_schema(self._stored)
                self._inner.use_key_runs(self._runs)
            for place, value in enumerate(values):
                if not value.startswith(self._mark):
                    raise BadRecord(place, self._other(value))
            plain = self._plain(self._mark, values)
        except BadMessage as bad:
            raise BadRecord(0, str(bad)) from bad
        return self._inner.decode(partition, offsets, plain)

    def _other(self, value: bytes) -> str:
        first, other = marked_name(self._mark), marked_name(mark_in(value))
        return f"a record of {other} in a table that was filled from {first}"
