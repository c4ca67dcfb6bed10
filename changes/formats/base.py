"""What every format module offers. One instance serves one pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from changes.model import Changes, Ddl, Head, Mode, TableSchema


class TableDecoder(Protocol):
    """Decodes the records of one target in lane order; remembers the layout it saw last.

    Used by one thread at a time: its owner is the target's buffer in the processor.
    """

    @property
    def schema(self) -> TableSchema | None:
        """All columns seen so far (types only ever widen), None before the first row."""
        ...

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        """Decode records that ``peek`` called ROWS. None when they hold no row at all.

        Raises BadRecord with the place of the first record that can't be applied.
        """
        ...


class Format(Protocol):
    """A change format. ``peek`` is called by the fetcher for every message: keep it cheap."""

    name: str

    def peek(self, value: bytes | None) -> Head:
        """Tell what a message is without decoding its rows; raises BadMessage."""
        ...

    def ddl(self, value: bytes) -> tuple[Ddl, ...]:
        """Take a DDL message apart, one entry for each table it names; raises BadMessage."""
        ...

    def table_decoder(self, mode: Mode, keys: tuple[str, ...] | None) -> TableDecoder:
        """Make the decoder of one target. ``keys`` overrides what the messages name.

        With mode UPSERT and no key at all the decoder gives a changelog (mode APPEND).
        """
        ...
