"""Triggers of a target: those that decide what is written are refused (``DbTable.unsafe``), others
are told."""

from __future__ import annotations

from typing import Any

import structlog

from changes.model import TargetName
from sparkwriter.jdbc.ledger import LedgerRow
from sparkwriter.jdbc.session import Session
from sparkwriter.jdbc.tables import DbTable

log: Any = structlog.get_logger(__name__)


def unseen_triggers(session: Session, target: TargetName) -> list[str]:
    """Why a table of which the ledger knows nothing can't be taken: nobody has looked at its
    triggers. Raises DbError."""
    if session.sees_triggers(target):
        return []
    return [
        "the user lacks the right TRIGGER, without which the server hides its triggers, and one "
        "that runs BEFORE would change what is written: GRANT TRIGGER on its table or schema"
    ]


class Triggers:
    """Looks at those of the targets of one writer, and warns once of each."""

    def __init__(self) -> None:
        self._told: set[TargetName] = set()

    def check(
        self, session: Session, target: TargetName, table: DbTable, entry: LedgerRow | None
    ) -> list[str]:
        """Why the table can't be taken; what its triggers write, binlogd does not know.

        ``entry``: what the ledger has of it. Raises DbError.
        """
        if entry is None or entry.made is None:
            return unseen_triggers(session, target)
        if target not in self._told:
            self._told.add(target)
            if table.fires:
                log.warning("triggers_run", target=str(target), triggers=list(table.fires))
            elif not session.sees_triggers(target):
                log.warning("triggers_unseen", target=str(target), right="TRIGGER")
        return []
