"""Carries out the effects of actors that fill tables of binlogd's own: stages their rows."""

from __future__ import annotations

import uuid
from pathlib import Path

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.staging.staged_tables import StagedTables
from changes.model import counts_table, cuts_table
from changes.model.printable import reason_of
from changes.routes.fold import key_bounds
from offsets.cuts import Cut


class OwnRowEffects:
    """The effects of who lists cuts and of who folds counts."""

    def __init__(self, tables: StagedTables, folder: Path) -> None:
        """``folder``: the run's, which ends with it."""
        self._tables, self._folder = tables, folder

    def __call__(self, effect: fx.OfOwnTables) -> object | None:
        """Carry out one effect."""
        if isinstance(effect, fx.RemoveStaged):
            for path in effect.paths:
                self._tables.remove(path)
            return None
        rows, staged = effect.rows, counts_table.staged_rows
        table, schema = cuts_table.staged_row(rows) if isinstance(rows, Cut) else staged(rows)
        path = str(self._folder / f"own-{uuid.uuid4().hex}.parquet")
        try:
            self._tables.write(path, table)
        except OSError as error:
            return msg.OwnNotStaged(reason_of(error))
        return msg.OwnStaged(path, key_bounds(table, schema.keys))
