"""Cases of formats: what messages say, and the rows, statements or refusal that become of them.

Each format has a table of them (``ogg/cases.py`` and its like), which reads as the format's
documentation. ``test_cases.py`` has every case read in all ways in which messages are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import pyarrow as pa

from changes.formats import FORMATS
from changes.formats.engine.format import Format, Packed, TableDecoder, unpack
from changes.model.model import (
    FROM,
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    Changes,
    ColumnTypes,
    Ddl,
    FormatOptions,
    Mode,
)

Row = tuple[Any, ...]
"""The op (U or D by key; I, U or D in a changelog) and the values. A column that the row lacks is
left out; the end of a row has its key alone. Third, where the key changed: the key before."""

Value = bytes | None

NAMED = {"default_database": "d", "default_table": "t"}
"""The options of formats whose records name no table."""

NOT_SAID: Any = object()
"""In the place of what may be None."""


@dataclass(frozen=True)
class Case:
    """Messages as the format is given them, in their order, and what becomes of them.

    It is one of: ``rows`` by key, ``changelog`` rows, ``statements``, ``nothing`` to apply, or a
    refusal. ``unreadable``: no table can be told, so the message is refused when it is looked at.
    ``unfit``: the last message's rows are refused in its target. Both are a part of the reason.
    """

    says: str
    messages: Value | Sequence[Value]
    _: KW_ONLY
    rows: Sequence[Row] | None = None
    changelog: Sequence[Row] | None = None
    statements: Sequence[Ddl] | None = None
    nothing: bool = False
    unreadable: str | None = None
    unfit: str | None = None

    mode: Mode = Mode.UPSERT
    keys: tuple[str, ...] | None = None
    """The configured key."""
    types: ColumnTypes = ()
    options: FormatOptions | None = None
    """Others than the format's cases have."""
    table: str | None = None
    """Another than the format's cases have."""
    good: bytes | None = None
    """A message that may stand beside these, where that of the format's cases may not."""
    columns: Mapping[str, pa.DataType] | None = None
    """The table's, in their order, by name the type."""
    before: Any = NOT_SAID
    """The last message's row before, as people see it."""
    at_ms: Any = NOT_SAID
    """When the last message's change happened."""

    def __post_init__(self) -> None:
        told = (self.rows, self.changelog, self.statements, self.unreadable, self.unfit)
        assert sum(each is not None for each in told) + self.nothing == 1, self.says

    @property
    def values(self) -> list[Value]:
        """The messages."""
        one = self.messages is None or isinstance(self.messages, bytes)
        return [self.messages] if one else list(self.messages)  # type: ignore[list-item, arg-type]

    @property
    def refusal(self) -> str | None:
        """What is said of the last message, None where all are good."""
        return self.unfit or self.unreadable

    @property
    def by_itself(self) -> bool:
        """Whether what becomes of it needs no other message, and nothing of a route but types."""
        return len(self.values) == 1 and self.keys is None and self.mode is Mode.UPSERT


@dataclass(frozen=True)
class FormatCases:
    """A format's cases. ``good`` is a message of rows of ``table``, which may stand beside them."""

    format: str
    table: str
    good: bytes
    cases: Sequence[Case]
    options: FormatOptions = field(default_factory=FormatOptions)

    def made(self, case: Case) -> Format:
        """The format as the case has it configured."""
        options = case.options or self.options
        if case.types:
            options = replace(options, types=case.types)
        return FORMATS[self.format](options)

    def decoder(self, case: Case) -> TableDecoder:
        """A new decoder of the case's target."""
        return self.made(case).table_decoder(case.mode, case.keys, case.types)

    def record(self, value: Value) -> Packed:
        """The record that a message comes from."""
        if FORMATS[self.format].keyed and value:
            return unpack(value)
        return Packed(None, value)

    def records(self) -> list[Packed]:
        """All records of all cases."""
        return [self.record(value) for case in self.cases for value in case.values]


def seen(changes: Changes | None) -> list[Row]:
    """Decoded rows as a case has them."""
    if changes is None:
        return []
    if changes.mode is Mode.APPEND:
        names = [column.name for column in changes.schema.columns]
        rows = changes.table.to_pylist()
        return [(row["_op"], {name: row[name] for name in names}) for row in rows]
    return [_by_key(row, changes.schema.keys) for row in changes.table.to_pylist()]


def _by_key(row: dict[str, Any], keys: Sequence[str]) -> Row:
    was = {name: row[FROM_PREFIX + name] for name in keys if row.get(FROM) is not None}
    told = {
        name: value
        for name, value in row.items()
        if row.get(HAS_PREFIX + name, True) and not name.startswith("__binlogd_")
    }
    if row[OP] == "D":
        assert not any(value is not None for name, value in told.items() if name not in keys)
        told = {name: told[name] for name in keys}
    return (row[OP], told, was) if was else (row[OP], told)
