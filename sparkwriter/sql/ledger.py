"""The ledger: of each target columns, marks, version, in a table of the same database.

A target's row is changed in the transaction that changes its rows, and locked and compared in it
first: that is the whole of exactly once here. A version never comes twice, even where somebody
deleted the row. A checksum tells whether somebody else changed the row: marks that were moved by
hand would pass over changes, or bring them again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

from changes.model.errors import LostRace
from changes.model.model import TargetName
from databases.base.errors import Cause, DatabaseError
from offsets.fence import Marks
from offsets.recovery import ways_out
from sparkwriter.kit.marks_table.table_description import Entry, Forgets, Frees, Made, Row, Shows
from sparkwriter.sql.base.session import CHECKSUM, Session, make_once

LEDGER = "__binlogd_targets"

NONE = ""
"""The version of a target that the ledger does not know."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What is stored of a target. ``step``: the stamped step that is under way. ``wrong``: why
    marks and table are not to be had."""

    version: str
    marks: Marks
    made: Made | None
    step: str | None
    wrong: str = ""


class Ledger:
    """The ledger through one connection. Writes are made inside its owner's transaction."""

    def __init__(self, session: Session, schema: str) -> None:
        """Make it where it is not there. Raises DatabaseError."""
        self._session = session
        quote = session.dialect.quote
        self._table = _written(session, schema)
        self._unseen: set[TargetName] = set()
        self._schema = schema
        self._others: list[str] | None = None
        if not session.has_schema(schema):
            make_once(session, f"CREATE SCHEMA IF NOT EXISTS {quote(schema)}")
        self.identity = self._made(TargetName("", schema, LEDGER))
        """Of its table."""
        session.use(schema)

    def _made(self, name: TargetName) -> str:
        """Make the table, or give one of an earlier version its checksums. Its identity."""
        session, written = self._session, self._table.replace("%%", "%")
        table = session.describe(name)
        if table is None:
            columns = session.dialect.ledger_columns
            make_once(session, f"CREATE TABLE IF NOT EXISTS {written} ({columns})")
        elif table.find(CHECKSUM.split()[0]) is None:
            try:
                session.run(f"ALTER TABLE {written} ADD COLUMN {CHECKSUM}")
            except DatabaseError:
                there = session.describe(name)
                if there is None or there.find(CHECKSUM.split()[0]) is None:
                    raise  # nobody else has done it meanwhile
        else:
            return table.identity
        table = session.describe(name)
        assert table is not None
        return table.identity

    def named_alike(self, target: TargetName) -> list[tuple[TargetName, str]]:
        """Targets with a table whose names differ from the target's in case alone, with their
        versions."""
        found = self._session.rows(
            f"SELECT namespace, name, version FROM {self._table} WHERE made IS NOT NULL"
            " AND LOWER(namespace) = LOWER(%s) AND LOWER(name) = LOWER(%s)",
            target[1:],
        )
        alike = [(TargetName(target.sink, *name), str(version)) for *name, version in found]
        return [(name, version) for name, version in alike if name != target]

    def kept_by_others(self, target: TargetName, again: bool) -> list[tuple[str, str, Made]]:
        """See ``kept_by``. ``again``: look for ledgers that are new. Raises DatabaseError."""
        if again or self._others is None:
            self._others = other_ledgers(self._session, self._schema)
        return kept_by(self._session, self._others, target)

    def look(self, target: TargetName, lock: bool = False) -> LedgerRow | None:
        """What it says of a target."""
        found = self._session.rows(
            f"SELECT version, marks, made, step, checksum FROM {self._table}"
            f" WHERE namespace = %s AND name = %s{' FOR UPDATE' if lock else ''}",
            target[1:],
        )
        if not found:
            return None
        version, marks, made, step, checksum = found[0]
        if checksum is not None and checksum != checksum_of(target, marks, made):
            why = "its checksum is of other marks; if it is right as it is, make that NULL"
        else:
            try:
                parsed = None if made is None else Made.parse(made)
                return LedgerRow(str(version), Marks.parse(marks), parsed, step)
            except (ValueError, KeyError, TypeError) as error:
                why = f"it can't be read: {error}"
        wrong = (
            f"its row in {self._table.replace('%%', '%')} was changed by somebody else ({why}): "
            f"{ways_out('', str(target))}"
        )
        return LedgerRow(str(version), Marks(), None, step, wrong)

    def begin(self, seen: Iterable[Row]) -> None:
        """Lock the rows of targets, in one order for all. Raises LostRace where one is not as it
        was seen, or is amid a step."""
        self._unseen = set()
        for row in sorted(seen, key=lambda row: row.target):
            here = self.look(row.target, lock=True)
            version = NONE if here is None else here.version
            if version != row.version:
                raise LostRace(
                    f"version {row.version or 'none'} was seen, it is {version or 'none'} meanwhile"
                )
            if here is None:
                self._unseen.add(row.target)
            elif here.step is not None:
                raise LostRace("another writer changes it")

    def claim(self, target: TargetName) -> None:
        """Lock the row of a target that has no table, or make it, so that one alone makes that.
        After ``begin``. Raises LostRace."""
        here = self.look(target, lock=True)
        if here is None:
            self._unseen.add(target)
            self._put(target, {})
        elif here.step is not None:
            raise LostRace("another writer changes it")

    def version(self, target: TargetName) -> str:
        """The version that a target has."""
        here = self.look(target)
        return NONE if here is None else here.version

    def note(self, entry: Entry) -> None:
        """Have the target show what the entry says."""
        match entry:
            case Shows(target, marks, made):
                text = None if made is None else made.text()
                self._put(target, {"marks": marks.text(), "made": text, "step": None})
            case Frees(target, renaming):
                self._put(target, {"freed": renaming}, moves=False)
            case Forgets(target):
                self._session.run(
                    f"DELETE FROM {self._table} WHERE namespace = %s AND name = %s", target[1:]
                )

    def mark_step(self, target: TargetName, step: str) -> None:
        """Have the target show that a step is under way."""
        self._put(target, {"step": step}, moves=False)

    def clear_step(self, target: TargetName, step: str) -> None:
        """The step has ended."""
        self._session.run(
            f"UPDATE {self._table} SET step = NULL WHERE namespace = %s AND name = %s"
            " AND step = %s",
            (*target[1:], step),
        )

    def freed(self, target: TargetName) -> str | None:
        """The renaming that may take the name."""
        found = self._session.rows(
            f"SELECT freed FROM {self._table} WHERE namespace = %s AND name = %s", target[1:]
        )
        return found[0][0] if found else None

    def _put(self, target: TargetName, values: dict[str, str | None], moves: bool = True) -> None:
        whole = {"marks": Marks().text(), "made": None, **values}
        whole["checksum"] = checksum_of(target, str(whole["marks"]), whole["made"])
        if "marks" in values:
            values = {**values, "checksum": whole["checksum"]}
        sets = [f"{name} = %s" for name in values]
        if moves:
            sets.append("version = version + 1")
        if target not in self._unseen:
            found = self._session.run(
                f"UPDATE {self._table} SET {', '.join(sets)} WHERE namespace = %s AND name = %s",
                (*values.values(), *target[1:]),
            )
            if found:
                return
        row = {**whole, "version": time.time_ns() // 1000}
        row |= {"namespace": target.namespace, "name": target.table}
        try:
            self._session.run(
                f"INSERT INTO {self._table} ({', '.join(row)})"
                f" VALUES ({', '.join(['%s'] * len(row))})",
                tuple(row.values()),
            )
        except DatabaseError as error:
            if error.cause is Cause.UNIQUE:
                raise LostRace("another writer was first") from error
            raise
        self._unseen.discard(target)


def checksum_of(target: TargetName, marks: str, made: str | None) -> str:
    """Of what a target's row says of its marks and its table."""
    said = json.dumps([target.namespace, target.table, marks, made])
    return hashlib.sha256(said.encode()).hexdigest()


def other_ledgers(session: Session, schema: str) -> list[str]:
    """The schemas of the other ledgers in the database of one. Raises DatabaseError."""
    text = "SELECT table_schema FROM information_schema.tables WHERE table_name = %s"
    found = {str(other) for (other,) in session.rows(text, (LEDGER,))}
    return sorted(found - {schema})


def kept_by(
    session: Session, schemas: Iterable[str], target: TargetName
) -> list[tuple[str, str, Made]]:
    """The ledgers, by their schemas, that keep a table of the target's name: each with its version,
    and the table. One that the user may not read is not seen. Raises DatabaseError."""
    kept: list[tuple[str, str, Made]] = []
    for schema in schemas:
        try:
            rows = session.rows(
                f"SELECT version, made FROM {_written(session, schema)}"
                " WHERE namespace = %s AND name = %s AND made IS NOT NULL",
                target[1:],
            )
            kept += ((schema, str(version), Made.parse(made)) for version, made in rows)
        except (DatabaseError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, DatabaseError) and error.cause is not Cause.REFUSED:
                raise
    return kept


def _written(session: Session, schema: str) -> str:
    quote = session.dialect.quote
    return f"{quote(schema)}.{quote(LEDGER)}".replace("%", "%%")
