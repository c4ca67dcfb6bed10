"""``binlogd offsets import``: records an exported, perhaps edited file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from daemon.config.pipeline_config import pipelines_of
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option, Params
from daemon.operations.engine.port import Plan
from daemon.state.edits import EditRefused
from daemon.state.offset_transfer import import_snapshot


class ImportParams(Params):
    """Which file."""

    file: Annotated[str, Option("An exported file, - for stdin.", argument=True, metavar="FILE")]


class ImportOperation(Operation[ImportParams]):
    """Record an exported, perhaps edited file, with the daemon stopped. Status 2: refused."""

    words, params, example = "offsets import", ImportParams, "shop.json"
    own_process = True
    undone_by = "offsets import"

    def plan(self, params: ImportParams, here: Here) -> Plan:
        """What would be recorded, as the next start would check it."""
        self._imported(params, here, act=False)
        return Plan()

    def step(self, params: ImportParams, here: Here) -> Done:
        """Record it."""
        self._imported(params, here, act=True)
        return Done()

    def _imported(self, params: ImportParams, here: Here, act: bool) -> None:
        file = params.file
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EditRefused(f"{file} can't be read: {error}") from error
        try:
            for line in import_snapshot(pipelines_of(here.config), text, act):
                (here.note if line.startswith("warning: ") else here.say)(line)
        except EditRefused as error:
            raise EditRefused(*(f"{file}: {line}" for line in error.lines)) from error
