"""Carries out the effects of the actor that makes cuts: each cut is a staged file of one row."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import assert_never

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.staging.staged_tables import StagedTables
from changes.model.cuts_table import staged_row
from changes.model.printable import reason_of
from changes.routes.fold import key_bounds


class CutEffects:
    """The effects of who makes cuts: staged files of one row."""

    def __init__(self, tables: StagedTables, folder: Path) -> None:
        """``folder``: the run's, which ends with it."""
        self._tables, self._folder = tables, folder

    def __call__(self, effect: fx.OfCuts) -> object | None:
        """Carry out one effect."""
        match effect:
            case fx.StageCut(cut):
                table, schema = staged_row(cut)
                path = str(self._folder / f"cut-{uuid.uuid4().hex}.parquet")
                try:
                    self._tables.write(path, table)
                except OSError as error:
                    return msg.CutNotStaged(reason_of(error))
                return msg.CutStaged(path, key_bounds(table, schema.keys))
            case fx.RemoveStaged(paths):
                for path in paths:
                    self._tables.remove(path)
                return None
            case _:
                assert_never(effect)
