"""What records say beside their rows, as a format reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from changes.formats.base import Format, RowChange
from changes.model import BadMessage, TableName
from changes.shaping.refused import ShapeRefused


class FormatRecords:
    """``changes.shaping.decoder.Records`` of one format."""

    def __init__(self, format_: Format, now_s: Callable[[], float]) -> None:
        """``now_s``: seconds since 1970."""
        self._format = format_
        self._now_s = now_s

    def now_ms(self) -> int:
        """By the clock."""
        return int(self._now_s() * 1000)

    def tables(self, values: Sequence[bytes]) -> list[TableName | None]:
        """By a glance at each, as the fetcher has it."""
        try:
            return [head.table for head in self._format.heads(values)]
        except BadMessage as error:
            raise ShapeRefused(f"shard: {error}") from error

    def times(self, values: Sequence[bytes]) -> list[int | None]:
        """By reading each one whole, which costs as much again as decoding it."""
        try:
            return [self._time(value) for value in values]
        except BadMessage as error:
            raise ShapeRefused(f"the time of a record: {error}") from error

    def images(self, value: bytes) -> Sequence[RowChange]:
        """By reading it whole."""
        try:
            found = self._format.explain(value)
        except BadMessage as error:
            raise ShapeRefused(f"filter: {error}") from error
        return [each for each in found if isinstance(each, RowChange)]

    def _time(self, value: bytes) -> int | None:
        return next((each.ts_ms for each in self._format.explain(value)), None)
