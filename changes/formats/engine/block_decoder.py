"""The ``TableDecoder`` of formats whose rows are read as blocks: Canal protobuf, Tencent DTS.

A format defines how many messages are read at once, how one is read alone, and which tables they
are of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from changes.formats.engine.configured_types import ConfiguredTypes
from changes.formats.engine.flat_rows import BulkBackoff, Leftover
from changes.formats.engine.format import DecoderDefaults
from changes.formats.engine.key_runs import KeyRun
from changes.formats.engine.layout import Refused, Unfit
from changes.formats.engine.row_blocks import BlockLayout, RowBlocks
from changes.model.model import (
    BadMessage,
    BadRecord,
    Changes,
    ColumnTypes,
    FormatOptions,
    Mode,
    TableSchema,
)
from changes.sql.convert import Converter


class BlockDecodePass(ABC):
    """Reads the messages of one ``decode`` call."""

    def __init__(self, blocks: RowBlocks, backoff: BulkBackoff) -> None:
        self._about = ""
        """The table whose rows are being read, as the beginning of an error."""
        self._blocks = blocks
        self._backoff = backoff

    def add_all(self, values: Sequence[bytes]) -> BadRecord | None:
        """Read messages up to the first bad one; returns its error."""
        for start, some in self._backoff.left_over(values, self._add_many):
            for place, value in enumerate(some, start):
                try:
                    self._add_message(value, place)
                except (Refused, BadMessage) as refused:
                    unfit = isinstance(refused, Unfit)
                    return BadRecord(place, f"{self._about}{refused}", of_table=unfit)
        return None

    @abstractmethod
    def _add_many(self, values: Sequence[bytes], start: int) -> Iterator[Leftover] | None:
        """Read messages at once where all of their rows are alike, else none of them."""

    @abstractmethod
    def _add_message(self, value: bytes, place: int) -> None:
        """Read one message; raises Refused, BadMessage."""


class BlockTableDecoder(DecoderDefaults, ABC):
    """The ``TableDecoder`` of one target.

    A call that raises does not change the layout, so the records before the bad one can be decoded
    again without it.
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
        self._layout = BlockLayout({}, keys, {}, configured=ConfiguredTypes.of(types))
        self._run = KeyRun()
        self._seen = False
        self._backoff = BulkBackoff()

    @property
    def schema(self) -> TableSchema | None:
        return self._layout.schema if self._seen else None

    @property
    def positions(self) -> str | None:
        return None

    @property
    def declared_types(self) -> Mapping[str, str]:
        return self._layout.declared_types

    def decode(
        self, partition: int, offsets: Sequence[int], values: Sequence[bytes]
    ) -> Changes | None:
        blocks = RowBlocks(self._layout, self._fixed, self._run.begun(partition, offsets))
        bad = self._decode_pass(blocks).add_all(values)
        converter = Converter(self._zone, self._options.zero_dates)
        try:
            changes = blocks.changes(converter, partition, offsets)
        except BadRecord as misfit:
            table = self._last_table(values[misfit.index])
            raise BadRecord(misfit.index, f"{table}: {misfit.reason}") from misfit
        if bad is not None:
            raise bad
        if changes is not None:
            self._layout, self._seen = blocks.layout, True
            self._run = blocks.run.ended(blocks.count)
        return changes

    @property
    def _zone(self) -> str:
        """The zone of the points in time that the converter gets."""
        return self._options.time_zone

    @abstractmethod
    def _decode_pass(self, blocks: RowBlocks) -> BlockDecodePass:
        """Make the reader of one call's messages."""

    @abstractmethod
    def _last_table(self, value: bytes) -> object:
        """The table of a message's last rows, for an error."""
