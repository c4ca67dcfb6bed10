"""Detects that a table was dropped and recreated by somebody else: its marks are of other rows.

A table's identity is PostgreSQL's oid, or in MySQL and MariaDB its time of creation, which an
ALTER TABLE changes, too. It counts beside the ledger's own: a database that was copied as a whole
has other identities, and its marks are still those of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import structlog

from changes.model.errors import LostRace
from changes.model.model import Mode, TargetName
from offsets.fence import Marks
from offsets.recovery import ways_out
from settings.shell import quoted_pattern
from sparkwriter.kit.marks_table.table_description import Entry, Made, Shows
from sparkwriter.sql.base.session import Session, rows_of
from sparkwriter.sql.base.tables import DbTable
from sparkwriter.sql.ledger import LEDGER, Ledger, LedgerRow

log: Any = structlog.get_logger(__name__)


def identified(entry: Entry, ledger: str, table: DbTable | None) -> Entry:
    """The entry of a target with its table's identity; without a table it tells of none.

    ``ledger``: the identity of the ledger's table.
    """
    if not isinstance(entry, Shows) or entry.made is None:
        return entry
    identity = "" if table is None or not table.identity else f"{ledger}/{table.identity}"
    return replace(entry, made=replace(entry.made, identity=identity))


def without_old(
    session: Session, target: TargetName, entry: LedgerRow | None, ledger: str, table: DbTable
) -> LedgerRow | None:
    """What the ledger has of the present table: nothing where its row is of another one. Where
    altering a table changes its identity, too, a table with rows is reported, and continues.
    Raises DatabaseError."""
    if entry is None or entry.made is None or not _differs(entry.made, ledger, table):
        return entry
    certain = _surely_another(session, target, table)
    what = "table_made_again" if certain else "table_altered_by_others"
    log.warning(what, target=str(target), compare=f"binlogd tables verify {quoted_pattern(target)}")
    return replace(entry, marks=Marks(), made=None) if certain else entry


def _differs(made: Made, ledger: str, table: DbTable) -> bool:
    of_ledger, known, identity = made.identity.partition("/")
    return bool(known) and of_ledger == ledger and identity != table.identity


def _surely_another(session: Session, target: TargetName, table: DbTable) -> bool:
    return session.lasting_identity or not has_rows(session, target, table)


def check_same(session: Session, target: TargetName, before: DbTable) -> None:
    """Raise LostRace where somebody has altered or recreated the table since the look.

    Checked inside the transaction, once a row is written: from then on nobody can alter it.
    Where an identity lasts, the next look finds it, too, and nothing is checked here. Raises
    DatabaseError.
    """
    if session.lasting_identity:
        return
    if session.identity(target) != before.identity:
        raise LostRace("somebody has altered or recreated the table meanwhile")


def unknown_marks(session: Session, target: TargetName, made: Made, table: DbTable) -> list[str]:
    """Why a table of which the ledger knows nothing can't be gone on with. Raises DatabaseError."""
    if made.mode is not Mode.APPEND or not has_rows(session, target, table):
        return []
    return [
        "it is a changelog with rows, and the ledger has no marks of them: what is read again would"
        f" be there twice; {ways_out('', str(target))}"
    ]


def shared(
    session: Session, ledger: Ledger, target: TargetName, entry: LedgerRow | None, table: DbTable
) -> list[str]:
    """Why a target that came second can't have the table: it is another target's already.

    ``entry``: what the ledger has of it. Versions begin at the clock, so the first has the lower.
    Raises DatabaseError.
    """
    made = None if entry is None else entry.made
    known = made is not None and not (
        _differs(made, ledger.identity, table) and _surely_another(session, target, table)
    )
    first = math.inf if entry is None or not known else int(entry.version)
    alike = ledger.named_alike(target) if session.folds_names else ()
    others = ledger.kept_by_others(target, again=first == math.inf)
    return [
        f"its table is that of the target {other}: with lower_case_table_names this server makes "
        "no difference of case. Give one of them another target"
        for other, version in alike
        if int(version) < first
    ] + kept_elsewhere(session, others, table, first)


def kept_elsewhere(
    session: Session, others: Iterable[tuple[str, str, Made]], table: DbTable, first: float
) -> list[str]:
    """Why a table is that of another ledger. ``first``: the version that ours has."""
    return [
        f"its table is kept by the ledger {schema} as well, of a sink with another ledger_schema, "
        "and two writers would undo each other's rows. Set "
        f'ledger_schema = "{schema}", or give one of them another target; if nobody writes by that '
        f"ledger any more, delete the table's row in {schema}.{LEDGER}"
        for schema, version, made in others
        if int(version) < first and not _is_of_before(session, made, table)
    ]


def _is_of_before(session: Session, made: Made, table: DbTable) -> bool:
    """Whether a ledger surely tells of another table, which had the name before."""
    _, known, identity = made.identity.partition("/")
    return bool(known) and session.lasting_identity and identity != table.identity


def has_rows(session: Session, target: TargetName, table: DbTable) -> bool:
    """Whether there is a row. Raises DatabaseError."""
    return bool(session.rows(f"SELECT 1 FROM {rows_of(session.dialect, target, table)} LIMIT 1"))


# Triggers of a target: those that decide what is written are refused (``DbTable.unsafe``), others
# are reported.


def unseen_triggers(session: Session, target: TargetName) -> list[str]:
    """Why a table of which the ledger knows nothing can't be taken over: its triggers were
    never checked. Raises DatabaseError."""
    if session.sees_triggers(target):
        return []
    return [
        "the user lacks the right TRIGGER, without which the server hides its triggers, and one "
        "that runs BEFORE would change what is written: GRANT TRIGGER on its table or schema"
    ]


class Triggers:
    """Looks at those of the targets of one writer, and warns once of each."""

    def __init__(self) -> None:
        self._reported: set[TargetName] = set()

    def check(
        self, session: Session, target: TargetName, table: DbTable, entry: LedgerRow | None
    ) -> list[str]:
        """Why the table can't be taken; what its triggers write, binlogd does not know.

        ``entry``: what the ledger has of it. Raises DatabaseError.
        """
        if entry is None or entry.made is None:
            return unseen_triggers(session, target)
        if target not in self._reported:
            self._reported.add(target)
            if table.fires:
                log.warning("triggers_run", target=str(target), triggers=list(table.fires))
            elif not session.sees_triggers(target):
                log.warning("triggers_unseen", target=str(target), right="TRIGGER")
        return []
