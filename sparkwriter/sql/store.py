"""Tables of PostgreSQL, MySQL and MariaDB as a sink. Docs: ``docs/sinks/jdbc.md``."""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from actors.contract.writes import StagedBatch
from changes.model.errors import LostRace, TargetRefused, WaitsForRows
from changes.model.model import TargetName
from databases.base.errors import DatabaseError
from databases.base.session import transaction
from sparkwriter.kit.marks_table.store import LedgeredStore
from sparkwriter.kit.marks_table.table_description import (
    Entry,
    Operation,
    Row,
    TakeAbove,
    WriteRows,
    is_statement,
    row_of,
)
from sparkwriter.kit.store import Absent
from sparkwriter.sql.base.session import LOCK_WITHIN_S, Session, for_port, target_name
from sparkwriter.sql.base.tables import DbTable, adopted, problems
from sparkwriter.sql.ddl import StampedSteps, carry_out, make_schemas
from sparkwriter.sql.identity import (
    Triggers,
    check_same,
    has_rows,
    identified,
    shared,
    unknown_marks,
    without_old,
)
from sparkwriter.sql.ledger import NONE, Ledger
from sparkwriter.sql.mysql.words import MySqlDialect
from sparkwriter.sql.mysql_ddl_redo import plan_step
from sparkwriter.sql.stored import has_null, stored_rows, undecidable
from sparkwriter.sql.write import RowWriter


class JdbcStore(LedgeredStore):
    """Tables in a database: a step is a transaction, or stamped where statements commit."""

    def __init__(
        self,
        connect: Callable[[], Session],
        schema: str,
        timeout_s: float = math.inf,
        or_null: bool = False,
    ) -> None:
        """``connect``: a new session, or DatabaseError. ``schema``: of the ledger. ``timeout_s``:
        for one call. ``or_null``: a value that the database can't hold becomes null."""
        self._connect, self._schema = connect, schema
        self._timeout_s, self._or_null = timeout_s, or_null
        self._locks_s = min(LOCK_WITHIN_S, timeout_s / 2)  # the server's word comes first
        self._session: Session | None = None
        self._ledger: Ledger | None = None
        self._seen: tuple[TargetName, DbTable] | None = None
        self._triggers = Triggers()
        self._joined = self._reached = False

    def close(self) -> None:
        """Release the connection."""
        if self._session is not None:
            self._session.close()
        self._session = self._ledger = self._seen = None

    @contextmanager
    def call(self, target: TargetName) -> Iterator[None]:
        """The database's errors become the port's, and the port's name the target."""
        with self._deadline():
            try:
                yield
            except DatabaseError as error:
                said = for_port(error, away=not self._reached)
                if error.ends_session:
                    self.close()
                raise type(said)(f"{target}: {said}") from error
            except TargetRefused as error:
                raise TargetRefused(f"{target}: {error}") from error

    @contextmanager
    def _deadline(self) -> Iterator[None]:
        """Cut the connection when the time is over. The writer's thread then ends by itself."""
        if math.isinf(self._timeout_s):
            yield
            return
        timer = threading.Timer(self._timeout_s, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        if (session := self._session) is not None:
            session.cut()

    @property
    def session(self) -> Session:
        """The connection, made where there is none. Raises DatabaseError."""
        if self._session is None:
            self._reached = False
            session = self._connect()
            try:
                session.run(session.dialect.wait_for_locks(self._locks_s))
                self._ledger = Ledger(session, self._schema)
            except BaseException:
                session.close()
                raise
            self._session, self._reached = session, True
        return self._session

    @property
    def ledger(self) -> Ledger:
        """The ledger through that connection."""
        assert self.session
        assert self._ledger is not None
        return self._ledger

    @contextmanager
    def together(self, locks_s: float = math.inf) -> Iterator[None]:
        """One transaction. Where it fails its connection ends, and the server takes it back."""
        session, words = self.session, self.session.dialect
        session.run(words.wait_for_locks(min(locks_s, self._locks_s)))
        session.begin()
        self._joined = True
        try:
            for statement in words.checks_at_commit():
                session.run(statement)
            yield
            session.commit()
            session.run(words.wait_for_locks(self._locks_s))
        except BaseException:
            self.close()
            raise
        finally:
            self._joined = False

    @contextmanager
    def part(self) -> Iterator[None]:
        """What waits for another table's rows is taken back alone."""
        self.session.run("SAVEPOINT part")
        try:
            yield
        except WaitsForRows:
            self.session.run("ROLLBACK TO SAVEPOINT part")
            raise

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """That of a step, or a part of the one that is under way."""
        if self._joined:
            yield
        else:
            with transaction(self.session):
                yield

    def _check_alone(self) -> None:
        """Raise LostRace where a statement would end the transaction that is under way."""
        if self._joined:
            raise LostRace("another writer changes the table meanwhile")

    def look(self, target: TargetName) -> Row | Absent:
        """Ledger and catalog, which must agree."""
        here, wrong = self._found(target)
        if wrong:
            raise TargetRefused("; ".join(wrong))
        return here

    @property
    def exchanges_at_once(self) -> bool:  # type: ignore[override]
        """Where statements about tables are part of a transaction."""
        return self.session.transactional_ddl

    def shared(self, target: TargetName) -> Sequence[str]:
        """As ``look`` would find it."""
        if (table := self.session.describe(target)) is None:
            return ()
        return shared(self.session, self.ledger, target, self.ledger.look(target), table)

    def hanging(self, target: TargetName) -> Sequence[str]:
        """By the database's own catalog."""
        return self.session.dependents(target)

    def lacks(self, target: TargetName, into: TargetName, aside: TargetName) -> Sequence[str]:
        """As the database says."""
        return self.session.lacks(target, into, aside)

    def left_behind(self, target: TargetName) -> Sequence[str]:
        """By the database's own catalog."""
        with self.call(target):
            return self.session.left_behind(target)

    def replaced(self, target: TargetName) -> Row | Absent:
        """The same, whether they agree or not. Marks that can't be read are none."""
        return self._found(target)[0]

    def _found(self, target: TargetName) -> tuple[Row | Absent, list[str]]:
        target_name(self.session.dialect, target)
        entry = self.ledger.look(target)
        if entry is not None and entry.step is not None:
            self._check_alone()
            StampedSteps(self.session, self.ledger).finish(entry.step)
            entry = self.ledger.look(target)
        wrong = [entry.wrong] if entry is not None and entry.wrong else []
        table = self._describe(target)
        if table is None:
            # Without its table a ledger's row counts no more: the marks have gone with the rows.
            gone = entry is None or entry.made is not None
            return (Absent() if entry is None or gone else Absent(entry.marks)), wrong
        looked = entry
        entry = without_old(self.session, target, entry, self.ledger.identity, table)
        if entry is None or entry.made is None:
            if self.ledger.look(target) != looked:
                return self._found(target)  # another writer has made the table between the two
            made = adopted(table)
            wrong += unknown_marks(self.session, target, made, table)
        else:
            made = entry.made
        wrong += problems(table, made, target)
        wrong += shared(self.session, self.ledger, target, entry, table)
        wrong += self._triggers.check(self.session, target, table, entry)
        marks, version = (Absent().marks, NONE) if entry is None else (entry.marks, entry.version)
        return row_of(target, made, marks, version), wrong

    def _describe(self, target: TargetName) -> DbTable | None:
        table = self.session.describe(target)
        self._seen = None if table is None else (target, table)
        return table

    def _table(self, target: TargetName) -> DbTable:
        """As the last look found it."""
        if self._seen is not None and self._seen[0] == target:
            return self._seen[1]
        if (table := self._describe(target)) is None:
            raise LostRace("the table is gone meanwhile")
        return table

    def step(
        self,
        operations: Sequence[Operation],
        entries: Sequence[Entry],
        seen: Sequence[Row] = (),
        absent: TargetName | None = None,
    ) -> str:
        """A transaction; or, where it needs statements that commit, those, stamped."""
        tables = [one for one in operations if not isinstance(one, WriteRows | TakeAbove)]
        states = any(map(is_statement, tables))
        if states:
            self._check_alone()
            make_schemas(self.session, operations)
        if states and not self.session.transactional_ddl:
            self._stamped(operations, entries, seen, absent)
        else:
            self._in_transaction(operations, entries, seen, absent)
        return self.ledger.version(entries[0].target)

    def _in_transaction(
        self,
        operations: Sequence[Operation],
        entries: Sequence[Entry],
        seen: Sequence[Row],
        absent: TargetName | None,
    ) -> None:
        session = self.session
        files = {id(one): self._file(one) for one in operations if isinstance(one, WriteRows)}
        with self._transaction():
            self.ledger.begin(seen)
            self._check_absent(absent)
            for one in operations:
                if isinstance(one, WriteRows):
                    writer, file = files[id(one)]
                    writer.write(file)
                else:
                    carry_out(session, one, self._table)
            written = {one.seen.target for one in operations if isinstance(one, WriteRows)}
            for target in written:
                check_same(session, target, self._table(target))
            for entry in entries:
                if entry.target in written:
                    entry = identified(entry, self.ledger.identity, self._table(entry.target))
                self.ledger.note(entry)

    def _file(self, rows: WriteRows) -> tuple[RowWriter, pq.ParquetFile]:
        """What is done of a batch before its transaction."""
        seen, batch = rows.seen, rows.batch
        assert batch.path is not None
        file = pq.ParquetFile(batch.path, memory_map=True)
        writer = RowWriter(self.session, seen, batch, self._table(seen.target), self._or_null)
        if not self._joined and writer.free_keys(file):
            self._seen = None
        return writer, file

    def prepare(self, seen: Row, batch: StagedBatch) -> None:
        """Nulls in the key, where the batch brings the first."""
        if batch.path is not None:
            self._file(WriteRows(seen, batch))

    def _stamped(
        self,
        operations: Sequence[Operation],
        entries: Sequence[Entry],
        seen: Sequence[Row],
        absent: TargetName | None,
    ) -> None:
        session = self.session
        entries = [identified(entry, "", None) for entry in entries]
        token = uuid.uuid4().hex[:12]
        targets = [row.target for row in seen]
        words = session.dialect
        assert isinstance(words, MySqlDialect)
        planned = plan_step(words, operations, entries, targets, session.describe, token)
        text = planned.text()
        with transaction(session):
            self.ledger.begin(seen)
            self._check_absent(absent)
            for target in planned.targets:
                self.ledger.mark_step(target, text)
        self._seen = None
        StampedSteps(session, self.ledger).finish(text)

    def _check_absent(self, absent: TargetName | None) -> None:
        if absent is None:
            return
        self.ledger.claim(absent)
        if self.session.describe(absent) is not None:
            raise LostRace(f"{absent} is there meanwhile")

    def read_rows(self, seen: Row, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """By the key, as a write finds them. A value that became null would decide wrongly."""
        if self._or_null:
            raise undecidable()
        return stored_rows(self.session, seen, self._table(seen.target), keys, columns)

    def freed(self, target: TargetName) -> str | None:
        """What ``free`` noted."""
        return self.ledger.freed(target)

    def is_empty(self, seen: Row) -> bool:
        """Whether there is no row."""
        return not has_rows(self.session, seen.target, self._table(seen.target))

    def filled(self, seen: Row) -> frozenset[str]:
        """Those with a default that somebody else set."""
        return self._table(seen.target).filled

    def may_hold_null(self, seen: Row, column: str) -> bool:
        """Whether a row has a null there; a column that is not there has nothing but."""
        return has_null(self.session, seen.target, self._table(seen.target), column)
