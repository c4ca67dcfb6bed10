"""Rows of protobuf messages: many messages are read at once where their rows are alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

from msgspec import UNSET, Struct

from changes.formats.engine.assemble import Misfit, Text
from changes.formats.engine.flat_rows import (
    FEWEST_BYTES,
    BulkBackoff,
    FlatRows,
    Leftover,
    moved_records,
)
from changes.formats.engine.image_rows import ImageRows
from changes.formats.engine.images import RowImage, RowShape
from changes.formats.engine.layout import Refused
from changes.formats.engine.rows import Pass
from changes.model.model import BadMessage, TableName

AtOnce = tuple[RowShape, FlatRows, Callable[[], Sequence[Text] | None]]
"""What rows are like, the rows as cells, and what makes columns of them: None where a cell has to
be read by itself."""


class BulkRows(ImageRows):
    """The ``ImageRows`` of messages that may hold many entries, each of rows of one table."""

    def __init__(self) -> None:
        self._backoff = BulkBackoff()
        self.reading: TableName | str | None = None
        """The table whose rows ``images`` is reading."""

    @abstractmethod
    def at_once(self, values: Sequence[bytes]) -> AtOnce | None:
        """Read messages whose rows are all alike; None where they are not. Raises Refused,
        BadMessage."""

    @abstractmethod
    def last_table(self, value: bytes) -> TableName | str:
        """The table of a message's last rows, for an error."""

    def table_of(self, value: bytes, error: Exception) -> TableName | str | None:
        return self.last_table(value) if isinstance(error, Misfit) else self.reading

    def structs(self, into: Pass, image: RowImage) -> tuple[Struct, Struct | None]:
        keys, now, was = into.layout.keys or (), image.now, image.was or {}
        # Most updates keep their key: then the old row says nothing.
        for key in keys:
            if was.get(key, UNSET) not in (UNSET, now.get(key, UNSET)):
                return super().structs(into, image)
        fields = into.layout.fields
        return into.layout.row(**{fields[name]: cell for name, cell in now.items()}), None

    def block(self, into: Pass) -> bool:
        def take(values: Sequence[bytes], start: int) -> Iterator[Leftover] | None:
            return self._take(into, values, start)

        for start, some in self._backoff.left_over(into.values, take):
            for place, value in enumerate(some, start):
                # Many rows in one message are likely to be alike.
                rest = take([value], place) if len(value) >= FEWEST_BYTES else iter([(place, some)])
                for _ in iter([(place, some)]) if rest is None else rest:
                    into.read_one()
        return True

    def _take(self, into: Pass, values: Sequence[bytes], start: int) -> Iterator[Leftover] | None:
        """Add messages that can be read at once; gives those between that can't."""
        try:
            found = self.at_once(values)
            if found is None:
                return None
            shape, flat, texts_of = found
            into.learn(shape)
        except (Refused, BadMessage):
            return None  # reading one by one finds the record
        moved = moved_records(flat, shape.names, into.layout.keys or ())
        texts = None if moved is None else texts_of()
        if moved is None or texts is None:
            return None
        return self._added(into, shape, texts, flat, moved, values, start)

    def _added(
        self,
        into: Pass,
        shape: RowShape,
        texts: Sequence[Text],
        flat: FlatRows,
        moved: Sequence[int],
        values: Sequence[bytes],
        start: int,
    ) -> Iterator[Leftover]:
        for place in into.add_flat(shape.names, texts, flat, moved):
            into.place = place
            yield place, [values[place - start]]
        into.place = start + len(values)
