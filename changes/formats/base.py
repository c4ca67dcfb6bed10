"""What every format module offers. One instance serves one pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from changes.model import Changes, Ddl, Head, Mode, TableName, TableSchema


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change as a person reads it. ``op`` is I, U or D; a key change is one U, by the new key.

    Images hold the columns that are known, as Python values: integers as int, DECIMAL as Decimal,
    other values as the lake's. ``before`` is None for I, ``after`` for D. ``ts_ms`` is when the
    change happened, in milliseconds since 1970, None where the message does not say.
    """

    table: TableName
    op: str
    key: Mapping[str, object]
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
    ts_ms: int | None
    misfit: str | None = None
    """What is wrong with a value that contradicts its declared type, and stands here as it came.
    The lake refuses such a row."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A DDL statement, or one table's part of it, as a person reads it."""

    table: TableName
    sql: str
    ts_ms: int | None


class TableDecoder(Protocol):
    """Decodes the records of one target in lane order; remembers the layout it saw last.

    Used by one thread at a time: its owner is the target's buffer in the processor.
    """

    @property
    def schema(self) -> TableSchema | None:
        """All columns seen so far (types only ever widen), None before the first row."""
        ...

    @property
    def positions(self) -> str | None:
        """The name of the positions that its rows carry (``changes.positions``), None: they don't.

        Never changes. Positions of one name compare with each other; they tell any two changes of
        one key apart, or stand for the same one; and every row is whole: a decoder that gives them
        refuses a row that carries only part of its columns, for which change of which column came
        last can't be told by one position a row.
        """
        ...

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        """Decode records that ``peek`` called ROWS. None when they hold no row at all.

        Raises BadRecord with the place of the first record that can't be applied.
        """
        ...


class Format(Protocol):
    """A change format. ``heads`` sees every message, on the fetcher's thread: keep it cheap."""

    name: str

    def peek(self, value: bytes | None) -> Head:
        """Tell what a message is without decoding its rows; raises BadMessage."""
        ...

    def heads(self, values: Iterable[bytes | None]) -> Iterator[Head]:
        """``peek`` at one after another: a call for each costs as much as the glance itself.

        Raises BadMessage when it comes to a bad one.
        """
        ...

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        """Take a DDL message apart, one entry for each table it names; raises BadMessage."""
        ...

    def explain(self, value: bytes | None) -> tuple[RowChange | Statement, ...]:
        """Tell all that a message says, for people: nothing for what has nothing to apply.

        Stands on one message alone, but reads values as a ``TableDecoder`` does. Raises BadMessage.
        """
        ...

    def table_decoder(self, mode: Mode, keys: tuple[str, ...] | None) -> TableDecoder:
        """Make the decoder of one target. ``keys`` overrides what the messages name.

        With mode UPSERT and no key at all the decoder gives a changelog (mode APPEND).
        """
        ...
