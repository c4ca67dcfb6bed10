"""One statement as one target sees it: the steps that it takes, by policy, and what stops it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from actors.contract.writes import Doubt, TargetState
from actors.target.divergence import WAY_OUT
from changes.formats.engine.untyped import as_declared
from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Ddl,
    DdlPolicy,
    DropColumn,
    DropTable,
    RenameColumn,
    RenameTable,
    TableName,
    TableStep,
    TakeName,
    TruncateTable,
)
from changes.sql.mysql.tokens import on_one_line

OF_LANES = " of a table whose rows come in several partitions"
"""Its other lanes may lag behind the statement's: what they still bring is older, and where rows
keep positions the tombstones name the table and its key."""


class NotFollowed(Exception):
    """A statement that stops the target. ``quarantine``: the configuration sends it there."""

    quarantine = False

    def __init__(self, statement: Ddl, reason: str) -> None:
        sql = on_one_line(statement.sql)
        shown = sql if len(sql) <= 200 else f"{sql[:200]}…"
        super().__init__(f"{statement.table}: {reason} is not followed: {shown}")


class Rewrites(NotFollowed):
    """A statement that may change stored rows."""

    def __init__(self, statement: Ddl, doubts: Sequence[Doubt], quarantine: bool) -> None:
        said = "; ".join(doubt.what.removeprefix(f"{statement.table}: ") for doubt in doubts)
        super().__init__(statement, f"{said}, which may change stored rows without a row of it,")
        self.args = (
            f'{self.args[0]}. ddl.lossy_change = "report" goes on and marks the target: {WAY_OUT}',
        )
        self.quarantine = quarantine


@dataclass(frozen=True, slots=True)
class StatementView:
    """One statement as one target sees it.

    ``merges``: the target holds other tables too; ``lanes``: the table may come in several
    partitions, ``by_key``: and its rows alone show when its columns change, each partition by
    itself. ``types`` are those that the configuration declares.
    """

    policy: DdlPolicy
    changelog: bool
    merges: bool
    lanes: bool
    statement: Ddl
    types: Mapping[str, pa.DataType]
    by_key: bool = False

    def table_steps(self, notes: list[str]) -> Iterator[TableStep]:
        """The steps that the target takes; what it does not is noted. Raises NotFollowed."""
        for step in self.statement.steps:
            match step:
                case AddColumn() | ChangeColumn() if self.by_key and not _renames(step):
                    continue
                case AddColumn():
                    yield self._add_column(step)
                case DropColumn():
                    yield from self._drop_column(step, notes)
                case RenameColumn():
                    yield from self._rename_column(step, notes)
                case ChangeColumn(old, column):
                    if old == column.name:
                        yield step
                    elif self.changelog:
                        yield self._add_column(AddColumn(column))
                    else:
                        yield from self._rename_column(step, notes)
                case TruncateTable():
                    yield from self._truncate(step, notes)
                case DropTable():
                    yield from self._drop_table(notes)
                case RenameTable() | TakeName():
                    continue

    def _add_column(self, step: AddColumn) -> AddColumn:
        declared = self.types.get(step.column.name.lower())
        if declared is not None:
            try:
                step = as_declared(step, declared)
            except ValueError as error:
                reason = f"ADD COLUMN {step.column.name}: {error}"
                raise NotFollowed(self.statement, reason) from error
        # Events of the past did not have the column: a changelog shows none there.
        return AddColumn(step.column) if self.changelog else step

    def check_named(self, keys: tuple[str, ...] | None) -> None:
        """Refuse that a column is renamed which the configuration names: as a key, by its type."""
        named = dict.fromkeys(self.types, "of a declared type")
        named |= dict.fromkeys((key.lower() for key in keys or ()), "a key of the route")
        for step in self.statement.steps:
            if isinstance(step, RenameColumn):
                old, new = step.old, step.new
            elif isinstance(step, ChangeColumn):
                old, new = step.old, step.column.name
            else:
                continue
            why = named.get(old.lower())
            if old.lower() != new.lower() and why is not None:
                raise NotFollowed(self.statement, f"renaming {old}, {why},")

    def _drop_column(self, step: DropColumn, notes: list[str]) -> Iterator[TableStep]:
        if self.policy.drop_column == "stop":
            raise NotFollowed(self.statement, f"DROP COLUMN {step.name}")
        stays = self.changelog or self.merges or self.lanes
        if stays or self.policy.drop_column == "keep":
            self._note(notes, f"column {step.name} was dropped and is kept")
            if not stays:
                yield DropColumn(step.name, keep=True)
        else:
            yield step

    def _rename_column(
        self, step: RenameColumn | ChangeColumn, notes: list[str]
    ) -> Iterator[TableStep]:
        if self.changelog:
            self._note(notes, f"column {step.old} was renamed: a changelog gets a new column")
        elif self.merges:
            raise NotFollowed(self.statement, f"renaming {step.old} in one of several tables")
        elif self.lanes:
            raise NotFollowed(self.statement, f"renaming {step.old}{OF_LANES}")
        else:
            yield step

    def _truncate(self, step: TruncateTable, notes: list[str]) -> Iterator[TableStep]:
        if self.policy.truncate == "stop":
            raise NotFollowed(self.statement, "TRUNCATE")
        if self.changelog or self.policy.truncate == "keep":
            self._note(notes, "was truncated, and what is stored is kept")
        elif self.merges:
            raise NotFollowed(self.statement, "TRUNCATE of one of several tables")
        elif self.lanes:
            raise NotFollowed(self.statement, f"TRUNCATE{OF_LANES}")
        else:
            yield step

    def _drop_table(self, notes: list[str]) -> Iterator[TableStep]:
        if self.policy.drop_table == "stop":
            raise NotFollowed(self.statement, "DROP TABLE")
        if self.changelog:
            self._note(notes, "was dropped, and what is stored is kept")
        elif self.merges and self.policy.drop_table == "follow":
            raise NotFollowed(self.statement, "DROP TABLE of one of several tables")
        elif self.merges:
            self._note(notes, "was dropped, its rows are kept among those of other tables")
        elif self.lanes:
            raise NotFollowed(self.statement, f"DROP TABLE{OF_LANES}")
        else:
            keep = self.policy.drop_table == "keep"
            self._note(notes, f"was dropped, and is {'kept' if keep else 'dropped here too'}")
            yield DropTable(keep)

    def _note(self, notes: list[str], what: str) -> None:
        notes.append(f"{self.statement.table} {what}")


def _renames(step: AddColumn | ChangeColumn) -> bool:
    return isinstance(step, ChangeColumn) and step.old.lower() != step.column.name.lower()


def judged(statement: Ddl, state: TargetState) -> Ddl:
    """The statement by what the target has: a table, none yet, or none any more."""
    if state.schema is not None:
        return Ddl(statement.table, statement.sql) if statement.unless_stored else statement
    if statement.refused_if_gone and state.hwms:
        return replace(statement, refused=statement.refused_if_gone, unread=None)
    return statement


def is_shadow(table: TableName, *, new: TableName, old: TableName) -> bool:
    """Whether the names are those that gh-ost, pt-online-schema-change and others give.

    ``new`` is the table that takes the place of ``table``, ``old`` what that becomes.
    """
    if not (table.database == new.database == old.database):
        return False
    name = re.escape(table.table)
    grown = (rf"_+{name}_(gho|new)", rf"lhmn_{name}")
    left = (rf"_+{name}(_\d+)?_(del|old)(_\d+)?", rf"lhma_[\d_]+_{name}")
    return any(
        re.fullmatch(a, new.table) and re.fullmatch(b, old.table)
        for a, b in zip(grown, left, strict=True)
    )
