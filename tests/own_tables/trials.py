"""Trials for as long as is said, each table with a seed of its own."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.own_tables.tables import catalogue_of
from tests.own_tables.trial import Trial
from tests.sparkwriter.databases import running


def trials(kind: str, seconds: float, first: int) -> int:
    """Run them from a seed on; 1 where one was wrong."""
    ends, seed, taking, refusing, wrong = time.monotonic() + seconds, first, 0, 0, 0
    with running(kind) as server, tempfile.TemporaryDirectory() as folder:
        session = server.connect()
        if kind != "postgres":
            # Nothing of it needs to outlive the machine.
            session.run("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
            session.run("SET GLOBAL sync_binlog = 0")
        catalogue = catalogue_of(kind, session.rows)  # type: ignore[arg-type]
        session.close()
        while time.monotonic() < ends:
            trial = Trial(kind, server.connect, catalogue, Path(folder))  # type: ignore[arg-type]
            outcome = trial.run(seed)
            taking += outcome.taken > 0
            refusing += bool(outcome.refused)
            if outcome.silent:
                wrong += 1
                print(f"seed {seed}:", *outcome.own.statements, *outcome.silent, sep="\n  ")
                sys.stdout.flush()
            for file in Path(folder).iterdir():
                file.unlink()
            seed += 1
    print(f"{kind}: {seed - first} tables, {taking} took rows, {refusing} refused, {wrong} silent")
    return 1 if wrong else 0
