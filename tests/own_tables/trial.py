"""One trial: a random own table, hard values through the real sink, and what is stored then.

Either the table holds each row that was taken just as it was sent, or a row, or all of them, were
refused by name. A key of floating numbers is left out: databases take 0 and -0 for one key, and so
does the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import FROM, FROM_PREFIX, OP, Column, TableSchema, TargetName
from changes.sql.spark.schema import arrow_type
from databases.base.errors import DatabaseError
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.store import Absent
from sparkwriter.sql.base.session import Session
from sparkwriter.sql.store import JdbcStore
from sparkwriter.sql.stored import read_table
from tests.own_tables.tables import Kind, OwnTable, Sent, made, own_table
from tests.own_tables.values import TYPES, column, hard_value, texts
from tests.sparkwriter.conftest import Staging

SCHEMA = "owned"
ROWS = 14
KEY_TYPES = tuple(one for one in TYPES if one not in ("float", "double"))

Texts = tuple[str | None, ...]


@dataclass
class Outcome:
    """What came of a trial. ``silent``: differences that nobody was told of."""

    own: OwnTable
    silent: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    taken: int = 0


class Trial:
    """A table and its stream."""

    def __init__(
        self, kind: Kind, connect: Callable[[], Session], catalogue: Sequence[str], folder: Path
    ) -> None:
        """``folder``: of the staged files."""
        self._kind, self._connect, self._folder = kind, connect, folder
        self._catalogue = catalogue

    def run(self, seed: int) -> Outcome:
        """Make the table of the seed, write, compare."""
        rng = Random(seed)
        keys = [Sent(f"k{at}", rng.choice(KEY_TYPES)) for at in range(rng.choice((1, 1, 2)))]
        others = [Sent(f"v{at}", rng.choice((*TYPES, "string"))) for at in range(rng.randint(1, 4))]
        side = self._connect()
        try:
            if not side.has_schema(SCHEMA):
                side.run(f"CREATE SCHEMA {SCHEMA}")
            own, target = self._table(rng, seed, side, keys, others)
            stream = _Stream(self._connect, target, (*keys, *others), len(keys), self._folder)
            outcome = Outcome(own)
            try:
                stream.write(rng, outcome)
                stream.compare(side, outcome)
            finally:
                stream.close()
            side.run(f"DROP TABLE {SCHEMA}.{target.table}{self._cascade}")
            return outcome
        finally:
            side.close()

    @property
    def _cascade(self) -> str:
        return " CASCADE" if self._kind == "postgres" else ""

    def _table(
        self, rng: Random, seed: int, side: Session, keys: list[Sent], others: list[Sent]
    ) -> tuple[OwnTable, TargetName]:
        names = (f"t{seed}_{at}" for at in range(10_000))
        odd = rng.choice((0.05, 0.15, 0.4))
        name = ""

        def make() -> OwnTable:
            nonlocal name
            if name:
                side.run(f"DROP TABLE IF EXISTS {SCHEMA}.{name}{self._cascade}")
            name = next(names)
            sent, key = (*keys, *others), [one.name for one in keys]
            return own_table(rng, self._kind, SCHEMA, name, sent, key, self._catalogue, odd)

        own = made(make, side.run, DatabaseError)
        return own, TargetName("db", SCHEMA, name)


class _Stream:
    """Rows as a source sends them, and what the target is to hold of those that were taken."""

    def __init__(
        self,
        connect: Callable[[], Session],
        target: TargetName,
        sent: Sequence[Sent],
        keys: int,
        folder: Path,
    ) -> None:
        self._store = JdbcStore(connect, "binlogd")
        self._writer = LedgeredWriter(self._store)
        self._sent, self._keys = tuple(sent), keys
        columns = tuple(Column(one.name, arrow_type(one.type)) for one in sent)
        key = tuple(one.name for one in sent[:keys])
        self._staging = Staging(folder, target, TableSchema(columns, key))
        self._through = -1
        self._target = target
        self._held: dict[Texts, Texts] = {}
        self._values: dict[Texts, list[object]] = {}

    def close(self) -> None:
        self._store.close()

    def write(self, rng: Random, outcome: Outcome) -> None:
        """Rows one by one, so that one that is refused takes no other along; then some of them
        with fewer columns, under another key, deleted."""
        for _ in range(ROWS):
            row: list[object] = [hard_value(rng, one.type) for one in self._sent[: self._keys]]
            row += [
                None if rng.random() < 0.15 else hard_value(rng, one.type)
                for one in self._sent[self._keys :]
            ]
            if self._put(outcome, self._columns(row)):
                self._hold(row)
        held = list(self._values)
        for key in rng.sample(held, min(4, len(held))):
            row = list(self._values[key])
            at = rng.randrange(self._keys, len(row))
            row[at] = hard_value(rng, self._sent[at].type)
            names = [self._sent[n].name for n in (*range(self._keys), at)]
            if self._put(outcome, self._columns(row).select([OP, *names])):
                self._hold(row)
        for key in rng.sample(held, min(2, len(held))):
            self._move(rng, outcome, key)
        for key in rng.sample(list(self._held), min(2, len(self._held))):
            gone = self._columns(self._values[key]).set_column(0, OP, pa.array(["D"]))
            if self._put(outcome, gone):
                self._let_go(key)

    def _move(self, rng: Random, outcome: Outcome, key: Texts) -> None:
        if key not in self._held:
            return
        old = self._values[key]
        new = [hard_value(rng, one.type) for one in self._sent[: self._keys]]
        row = [*new, *old[self._keys :]]
        if self._texts(row)[: self._keys] in self._held:
            return
        both = pa.concat_tables([self._columns(old), self._columns(row)])
        both = both.set_column(0, OP, pa.array(["D", "U"]))
        both = both.append_column(FROM, pa.array([None, 0], pa.int64()))
        for one in self._sent[: self._keys]:
            at = self._sent.index(one)
            moved = column([None, old[at]], one.type)
            both = both.append_column(FROM_PREFIX + one.name, moved)
        if self._put(outcome, both):
            self._let_go(key)
            self._hold(row)

    def _put(self, outcome: Outcome, rows: pa.Table) -> bool:
        self._through += 1
        batch = self._staging.batch(rows, self._through, after=self._through - 1)
        try:
            self._writer.write(batch)
        except (TargetRefused, SinkUnavailable) as error:
            outcome.refused.append(str(error))
            self._through -= 1
            return False
        outcome.taken += 1
        return True

    def compare(self, side: Session, outcome: Outcome) -> None:
        """What is stored, through a connection that has written nothing."""
        store = JdbcStore(lambda: side, "binlogd")
        try:
            seen = store.look(self._target)
            assert not isinstance(seen, Absent)
            found = read_table(side, seen) if seen.table.fields else None
        except TargetRefused as error:
            outcome.refused.append(str(error))
            found = None
        except (ArithmeticError, TypeError, ValueError) as error:
            # What is stored is not even of the type that was taken.
            outcome.silent.append(f"can't be read back: {error}")
            return
        if found is None or not self._held:
            ((count,),) = side.rows(f"SELECT count(*) FROM {SCHEMA}.{self._target.table}")
            if count or self._held:
                outcome.silent.append(f"{count} rows are stored, {len(self._held)} were taken")
            return
        columns = [texts(found[one.name], one.type) for one in self._sent]
        there = Counter(zip(*columns, strict=True))
        wanted = Counter(self._held.values())
        outcome.silent += [f"missing: {row}" for row in wanted - there]
        outcome.silent += [f"not sent: {row}" for row in there - wanted]

    def _columns(self, row: Sequence[object]) -> pa.Table:
        named = {
            one.name: column([value], one.type) for one, value in zip(self._sent, row, strict=True)
        }
        return pa.table({OP: pa.array(["U"]), **named})

    def _hold(self, row: list[object]) -> None:
        key = self._texts(row)
        self._held[key[: self._keys]] = key
        self._values[key[: self._keys]] = row

    def _let_go(self, key: Texts) -> None:
        del self._held[key]
        del self._values[key]

    def _texts(self, row: Sequence[object]) -> Texts:
        pairs = zip(self._sent, row, strict=True)
        return tuple(texts(column([value], one.type), one.type)[0] for one, value in pairs)
