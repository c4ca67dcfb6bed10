"""Carries out a repair: rows are read while the pipeline runs, and written while it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from actors.contract.ports import ResettableSink
from actors.contract.writes import TargetState
from daemon.jobs.moments import frontiers_of
from daemon.jobs.port import Control
from daemon.jobs.record import Job
from daemon.jobs.thread import AWAY
from daemon.jobs.verify.columns import NotComparable
from daemon.jobs.verify.lookout import Interrupted, not_following
from daemon.jobs.verify.looks import NotPassed
from daemon.jobs.verify.opening import Open
from daemon.jobs.verify.repair.parts import written
from daemon.jobs.verify.repair.rows import Rows, Writing, check
from daemon.jobs.verify.repair.rule import calm_keys, made_ready, places, stands_behind
from daemon.jobs.verify.repair.story import Story
from daemon.jobs.verify.report import Repaired
from daemon.jobs.verify.run import TableRun
from daemon.jobs.verify.work import Table
from daemon.runtime.edits import EditRefused
from offsets.snapshot import Snapshot, TargetMark


class Repair:
    """Writes the rows of one table as the source has them. The job's thread begins it, and the
    pipeline's edit carries it out on one of its own."""

    def __init__(self, job: Job, control: Control, run: TableRun, table: Table) -> None:
        self._job = job
        self._control = control
        self._run = run
        self._table = table
        self._sinks: Mapping[str, ResettableSink] = {}
        self._failure: Exception | None = None
        self._done = Repaired()

    def carried_out(self) -> Repaired:
        """Read the rows, stop the pipeline, write, start it again. Repeating it is harmless.

        Raises EditFailed, Interrupted, and what is away.
        """
        self._sinks = self._control.sinks()
        pipeline = self._job.wanted.pipeline
        try:
            with self._run.opened(self._control.snapshot(pipeline)) as here:
                check(here)
                since = {} if self._table.trail is None else self._table.trail.at
                ready = made_ready(self._table.found, since, self._run.lookout(here))
                there = [key for key, row in ready.rows.items() if row is not None]
                rows = Rows(here, ready, here.values.single(there))
            self._control.edit(pipeline, lambda snapshot: self._edited(snapshot, rows))
        except (NotPassed, NotComparable) as why:
            return Repaired(notes=(f"not repaired: {why}",))
        except EditRefused as refused:
            if isinstance(self._failure, (*AWAY, Interrupted)):
                raise self._failure from refused
            return Repaired(notes=(f"not repaired: {refused}",))
        return self._done

    def _edited(self, snapshot: Snapshot, rows: Rows) -> Snapshot:
        """The edit. Whatever goes wrong leaves rows that were written, and those are right."""
        target = str(self._run.compared.target)
        try:
            if (why := not_following(snapshot, target)) is not None:
                raise EditRefused(why)
            with self._run.opened(snapshot) as here:
                state = self._written(snapshot, here, rows)
        except EditRefused:
            raise
        except Exception as error:
            self._failure = error
            raise EditRefused(str(error) or type(error).__name__) from error
        if state is None:
            return snapshot
        mark = TargetMark(state.version, dict(state.hwms), rows_may_differ=state.rows_may_differ)
        return replace(snapshot, targets={**snapshot.targets, target: mark})

    def _written(self, snapshot: Snapshot, here: Open, rows: Rows) -> TargetState | None:
        rows.check_same(here)
        ready = rows.ready
        at = places(ready, frontiers_of(snapshot), here.state.hwms)
        if stands_behind(ready, at):
            raise EditRefused("the pipeline's positions went back meanwhile")
        torn = set(rows.lacking())
        keys = [key for key in calm_keys(ready, at, self._run.lookout(here)) if key not in torn]
        before = here.target.rows(keys)
        wrong = [key for key in keys if before.get(key) != ready.rows[key]]
        kept = {key for key in wrong if ready.rows[key] is None} if here.shape.deleted else set()
        wrong = [key for key in wrong if key not in kept]
        writing = Writing(self._control, self._sinks, self._run.compared, self._job.id, here)
        ended = written(wrong, lambda some: writing.write(rows.staged(here, some, before)))
        stored = here.target.rows(ended.done)
        target = str(self._run.compared.target)
        story = Story(self._job.id, target, here.shape, ready, before, stored)
        self._done = story.told(keys, kept, ended, len(self._table.found) - len(keys))
        return writing.state
