"""Which columns of a batch go where: the stage's columns, and the statements from it. Pure.

The stage is a temporary table of the batch's rows, in the columns of the target's own types. What
rows lack is completed in it first, from what is stored before this batch; then rows are deleted,
updated where they are, and the others inserted. A row that stays is never deleted, so that nothing
hangs on a row that goes and comes back: another table's foreign key, a column of the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP
from sparkwriter.sql.base.session import STAGE, SqlDialect
from sparkwriter.sql.base.tables import DbColumn


@dataclass(frozen=True, slots=True)
class BatchShape:
    """What of a table a batch's file carries.

    ``table`` is where rows are added, ``rows`` where they are found (``dialect.rows_of``).
    ``given`` are its columns that the file has, ``lacking`` the others; ``flagged`` those of the
    given that some rows lack. ``moved``: some rows come from another key. ``nullable``: the key's
    columns that have a null in this batch.
    """

    table: str
    rows: str
    keys: tuple[DbColumn, ...]
    given: tuple[DbColumn, ...]
    lacking: tuple[DbColumn, ...]
    flagged: tuple[str, ...] = ()
    moved: bool = False
    nullable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StageColumn:
    """A column of the stage: ``source`` is the file's, None where nothing is loaded into it."""

    name: str
    type: str
    source: str | None
    column: DbColumn | None = None


class WritePlan:
    """The statements of one batch of rows with a key."""

    def __init__(self, dialect: SqlDialect, shape: BatchShape, names: Sequence[str]) -> None:
        """``names``: the file's columns."""
        self._dialect, self._shape = dialect, shape
        self._file = {name.lower(): name for name in names}
        self._quote = dialect.quote
        self._key_names = [key.name for key in shape.keys]

    def columns(self) -> list[StageColumn]:
        """The stage's columns, in order."""
        shape, made = self._shape, [StageColumn("__binlogd_d", self._flag, OP)]
        made += [StageColumn(c.name, c.type, self._source(c.name), c) for c in shape.given]
        for at, name in enumerate(shape.flagged):
            source = HAS_PREFIX + self._source(name)
            made.append(StageColumn(f"__binlogd_h{at}", self._flag, source))
        if shape.moved:
            made.append(StageColumn("__binlogd_f", self._flag, FROM))
            for at, key in enumerate(shape.keys):
                source = FROM_PREFIX + self._source(key.name)
                made.append(StageColumn(f"__binlogd_k{at}", key.type, source, key))
            made += [StageColumn(c.name, c.type, None, c) for c in shape.lacking]
            made.append(StageColumn("__binlogd_done", self._flag, None))
        return made

    @property
    def _flag(self) -> str:
        return "smallint"

    def make(self) -> list[str]:
        """The statements that make the stage."""
        columns = [(column.name, column.type) for column in self.columns()]
        return self._dialect.stage(columns, self._key_names)

    def complete(self) -> Iterator[str]:
        """Fill in what rows lack."""
        shape, same = self._shape, self._match(self._key_names)
        sets = list(self._completions())
        if not sets:
            return
        if shape.moved:
            old = [f"__binlogd_k{at}" for at in range(len(shape.keys))]
            yield self._dialect.update(
                shape.rows,
                f"{self._match(old)} AND s.{self._quote('__binlogd_f')} = 1",
                [("__binlogd_done", "1"), *sets],
                "s",
            )
            # Without a row of the old key it was moved before: then it keeps what it has.
            same += f" AND s.{self._quote('__binlogd_done')} IS NULL"
        yield self._dialect.update(shape.rows, f"{same} AND {self._lives}", sets, "s")

    def delete(self) -> str:
        """Delete the rows that are gone."""
        same = self._match(self._key_names)
        return self._dialect.delete(self._shape.rows, f"{same} AND NOT ({self._lives})")

    def update(self) -> str | None:
        """Change the rows that are there, where they are; None where the key is all they have."""
        if not (sets := self._sets()):
            return None
        on = f"{self._match(self._key_names)} AND {self._lives}"
        return self._dialect.update(self._shape.rows, on, sets, "t")

    def insert(self) -> Iterator[str]:
        """Add the rows that are not there."""
        same, rows = self._match(self._key_names), self._shape.rows
        where = f"{self._lives} AND NOT EXISTS (SELECT 1 FROM {rows} AS t WHERE {same})"
        yield from self._inserts(where)

    def merge(self) -> Iterator[str]:
        """Both at once, by the primary key. Only where that is the one unique key."""
        sets = self._sets() or [(name, f"s.{self._quote(name)}") for name in self._key_names[:1]]
        for statement in self._inserts(self._lives):
            yield statement + self._dialect.or_update(sets)

    def replace(self) -> Iterator[str]:
        """Delete and insert all of the batch's rows: where unique values change places."""
        yield self._dialect.delete(self._shape.rows, self._match(self._key_names))
        yield from self._inserts(self._lives)

    def _inserts(self, where: str) -> Iterator[str]:
        """A row that moved has all columns; of others, those that the batch lacks are left to the
        table's defaults."""
        if not self._shape.moved:
            yield self._insert(self._shape.given, where)
            return
        done = f"s.{self._quote('__binlogd_done')}"
        yield self._insert(self._written, f"{where} AND {done} = 1")
        yield self._insert(self._shape.given, f"{where} AND {done} IS NULL")

    def _insert(self, columns: Sequence[DbColumn], where: str) -> str:
        names = ", ".join(self._quote(column.name) for column in columns)
        values = ", ".join(f"s.{self._quote(column.name)}" for column in columns)
        table = self._shape.table
        return f"INSERT INTO {table} ({names}) SELECT {values} FROM {STAGE} AS s WHERE {where}"

    def _sets(self) -> list[tuple[str, str]]:
        return [(c.name, f"s.{self._quote(c.name)}") for c in self._written if not self._is_key(c)]

    def _completions(self) -> Iterator[tuple[str, str]]:
        shape = self._shape
        for at, name in enumerate(shape.flagged):
            column, has = self._quote(name), self._quote(f"__binlogd_h{at}")
            yield name, f"CASE WHEN s.{has} = 1 THEN s.{column} ELSE t.{column} END"
        if shape.moved:
            for lacking in shape.lacking:
                yield lacking.name, f"t.{self._quote(lacking.name)}"

    @property
    def _written(self) -> tuple[DbColumn, ...]:
        shape = self._shape
        return (*shape.given, *shape.lacking) if shape.moved else shape.given

    @property
    def _lives(self) -> str:
        return f"s.{self._quote('__binlogd_d')} = 0"

    def _match(self, of_stage: Sequence[str]) -> str:
        pairs = []
        for key, name in zip(self._shape.keys, of_stage, strict=True):
            left, right = f"t.{self._quote(key.name)}", f"s.{self._quote(name)}"
            null = key.name in self._shape.nullable
            pairs.append(self._dialect.same(left, right) if null else f"{left} = {right}")
        return " AND ".join(pairs)

    def _is_key(self, column: DbColumn) -> bool:
        return column.name in self._key_names

    def _source(self, name: str) -> str:
        return self._file[name.lower()]
