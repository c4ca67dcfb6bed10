"""The ledger: of each target columns, marks, version, in a table of the same database.

A target's row is changed in the transaction that changes its rows, and locked and compared in it
first: that is the whole of exactly once here. A version never comes twice, even where somebody
deleted the row.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from actors.contract.ports import LostRace, TargetRefused
from changes.model import TargetName
from offsets.fence import Marks
from sparkwriter.jdbc.session import Cause, DbError, Session, make_once
from sparkwriter.ledgered.made import Made, Row
from sparkwriter.ledgered.operations import Entry, Forgets, Frees, Shows

LEDGER = "__binlogd_targets"

NONE = ""
"""The version of a target that the ledger does not know."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What is stored of a target. ``step``: the stamped step that is under way."""

    version: str
    marks: Marks
    made: Made | None
    step: str | None


class Ledger:
    """The ledger through one connection. Writes are made inside its owner's transaction."""

    def __init__(self, session: Session, schema: str) -> None:
        """Make it where it is not there. Raises DbError."""
        self._session = session
        quote = session.dialect.quote
        self._table = f"{quote(schema)}.{quote(LEDGER)}".replace("%", "%%")
        self._unseen: set[TargetName] = set()
        if not session.has_schema(schema):
            make_once(session, f"CREATE SCHEMA IF NOT EXISTS {quote(schema)}")
        if session.describe(TargetName("", schema, LEDGER)) is None:
            table = self._table.replace("%%", "%")
            columns = session.dialect.ledger_columns
            make_once(session, f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        session.use(schema)

    def look(self, target: TargetName, lock: bool = False) -> LedgerRow | None:
        """What it says of a target. Raises TargetRefused where it can't be read."""
        found = self._session.rows(
            f"SELECT version, marks, made, step FROM {self._table}"
            f" WHERE namespace = %s AND name = %s{' FOR UPDATE' if lock else ''}",
            target[1:],
        )
        if not found:
            return None
        version, marks, made, step = found[0]
        try:
            parsed = None if made is None else Made.parse(made)
            return LedgerRow(str(version), Marks.parse(marks), parsed, step)
        except (ValueError, KeyError, TypeError) as error:
            raise TargetRefused(
                f"its row in {self._table.replace('%%', '%')} was changed by somebody else and "
                f"can't be read ({error}): `binlogd tables rebuild` reads the table again"
            ) from None

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
        whole = {"marks": Marks().text(), **values, "version": time.time_ns() // 1000}
        whole |= {"namespace": target.namespace, "name": target.table}
        try:
            self._session.run(
                f"INSERT INTO {self._table} ({', '.join(whole)})"
                f" VALUES ({', '.join(['%s'] * len(whole))})",
                tuple(whole.values()),
            )
        except DbError as error:
            if error.cause is Cause.UNIQUE:
                raise LostRace("another writer was first") from error
            raise
        self._unseen.discard(target)
