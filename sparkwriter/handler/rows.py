"""A staged file as a handler reads it: the table's columns, and what happens to each row."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from changes.model import FROM, FROM_PREFIX, HAS_PREFIX, OP

SHOWN_OP = "_op"
"""``U``: the row is now this. ``D``: the key is gone, other columns are null. In a changelog: I, U
or D."""

ROWS_AT_ONCE = 10_000

_OURS = (HAS_PREFIX, FROM_PREFIX)


class CountedRows:
    """A reader of the file, and whether all of it was taken."""

    def __init__(self, path: str) -> None:
        self._file = pq.ParquetFile(path, memory_map=True)
        whole = self._file.schema_arrow
        self._names = [name for name in whole.names if name != FROM and not name.startswith(_OURS)]
        fields = [whole.field(name) for name in self._names]
        shown = [field.with_name(SHOWN_OP) if field.name == OP else field for field in fields]
        self.left = self._file.metadata.num_rows
        """Rows that nobody has taken yet."""
        self.reader = pa.RecordBatchReader.from_batches(pa.schema(shown), self._batches(shown))

    def _batches(self, shown: list[pa.Field]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema(shown)
        for part in self._file.iter_batches(ROWS_AT_ONCE, columns=self._names):
            self.left -= part.num_rows
            columns = [_shown(name, part.column(name)) for name in self._names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _shown(name: str, column: pa.Array) -> pa.Array:
    """A row that the filter leaves out is a delete to others."""
    return pc.if_else(pc.equal(column, "U"), "U", "D") if name == OP else column
