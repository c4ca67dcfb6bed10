"""What the sink asks of its handler's process, and what that answers. Both sides know only this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, LEFT, OP, TargetName

StatementKind = Literal["truncate", "drop", "rename"]


@dataclass(frozen=True, slots=True)
class StartHandler:
    """The first thing that a process hears: which function, found from where, with what."""

    entry: str
    path: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Started:
    """The module is there. ``statements``: it has a function for them; ``keeps_marks``: one that
    says up to where it has come."""

    statements: bool
    keeps_marks: bool


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a call is about; the user's ``Context`` shows it."""

    target: TargetName
    keys: tuple[str, ...]
    mode: str
    lanes: Mapping[str, tuple[int, int]]
    marks: str
    version: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Apply:
    """The rows of a staged file are to be applied."""

    about: CallContext
    file: str


@dataclass(frozen=True, slots=True)
class Carry:
    """A statement on the whole table. ``to``: its new name."""

    about: CallContext
    kind: StatementKind
    to: TargetName | None = None


@dataclass(frozen=True, slots=True)
class AskMarks:
    """Up to where has it come, by its own account?"""

    about: CallContext


Call = Apply | Carry | AskMarks


@dataclass(frozen=True, slots=True)
class CallDone:
    """It is done. ``marks``: the answer to ``AskMarks``. ``rejected``: rows that it can't take,
    each with the reason."""

    marks: str | None = None
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Raised:
    """It raised. ``lasting``: trying again won't help."""

    text: str
    lasting: bool = False


# A staged file as a handler reads it: the table's columns, and what happens to each row.

SHOWN_OP = "_op"
"""``U``: the row is now this. ``D``: the key is gone, other columns are null. In a changelog: I, U
or D."""

ROWS_AT_ONCE = 10_000

_OURS = (HAS_PREFIX, FROM_PREFIX)


class CountedRows:
    """A reader of the file, and whether all of it was taken."""

    def __init__(self, path: str, keys: Sequence[str]) -> None:
        self._keys = frozenset(keys)
        self._file = pq.ParquetFile(path, memory_map=True)
        whole = self._file.schema_arrow
        self._names = [name for name in whole.names if name != FROM and not name.startswith(_OURS)]
        fields = [whole.field(name) for name in self._names]
        shown = [field.with_name(SHOWN_OP) if field.name == OP else field for field in fields]
        self.left = self._file.metadata.num_rows
        """Rows that were not read yet."""
        self.reader = pa.RecordBatchReader.from_batches(pa.schema(shown), self._batches(shown))

    def _batches(self, shown: list[pa.Field]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema(shown)
        for part in self._file.iter_batches(ROWS_AT_ONCE, columns=self._names):
            shown = pa.RecordBatch.from_arrays(self._shown(part), schema=schema)
            self.left -= part.num_rows
            yield shown

    def _shown(self, part: pa.RecordBatch) -> list[pa.Array]:
        """A row that the filter leaves out is a delete to others, and nothing of it is shown."""
        columns = [part.column(name) for name in self._names]
        if OP not in self._names or pc.index(part.column(OP), LEFT).as_py() < 0:
            return columns
        lives = pc.equal(part.column(OP), "U")
        return [
            pc.if_else(lives, column, "D" if name == OP else pa.scalar(None, column.type))
            if name not in self._keys
            else column
            for name, column in zip(self._names, columns, strict=True)
        ]
