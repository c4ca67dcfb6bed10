"""Carries a changed configuration into the running daemon: all of it, or nothing.

Everything that can be refused is refused before the first pipeline is stopped. A pipeline that then
doesn't start with its new section gets its old one back, and so do those that were changed before.
Positions stay: a pipeline that comes back goes on where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import structlog

from changes.model.model import TargetName
from changes.routes.routing import Router
from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.config.log_level import LogLevels
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.checks import check
from daemon.operations.engine.desk import Desk
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option, Params
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import Job
from daemon.operations.reload.difference import Difference, difference, notes
from daemon.operations.reload.steps import (
    ReloadStep,
    clashes,
    left_behind,
    orphans,
    refused,
    refused_removal,
    steps,
)
from daemon.operations.targets.discard import Discard
from daemon.state.dead_letters.index import Unreadable, read_index
from daemon.state.edits import Change, EditFailed, EditRefused, Fate
from offsets.snapshot import Snapshot
from settings.exit import Exit
from sources.base.port import NotAnswered, TopicMissing

Edit = Callable[[str, Change, Fate], Future[None]]


@dataclass(frozen=True, slots=True)
class Running:
    """What a reload asks of the daemon. Any thread may call each."""

    config: Config
    status: Callable[[], Mapping[str, Any]]
    jobs: Callable[[], Iterable[Job]]
    edit: Edit
    levels: LogLevels | None


class Reload:
    """One reload, on a thread of its own. ``discard``: targets, or pipelines, that are given up."""

    def __init__(self, running: Running, discard: Collection[str] = ()) -> None:
        self._running = running
        self._config = running.config
        self._discard = frozenset(discard)
        self._log = structlog.get_logger().bind(actor="reload")

    def plan(self) -> tuple[Config, Difference]:
        """The file's configuration, and what differs. Raises EditRefused."""
        path = self._config.file
        if path is None:
            raise EditRefused("the daemon was started without a configuration file")
        fresh = self._read(path)
        self._config.redactor.learn(fresh.secrets)
        found = difference(self._config, fresh)
        lines = [f"{key}: takes a restart; nothing was changed" for key in found.restart]
        lines += [f"{path}: {problem}" for problem in check.problems(fresh)]
        lines = lines or [*check.connect_problems(fresh, tuple)]  # the sinks run, as they are
        status = {p["pipeline"]: p for p in self._running.status()["pipelines"]}
        lines += clashes(self._config, steps(self._config, fresh, found))
        lines += self._unfit_removal(found, status)
        lines += self._orphaned(fresh, found, status)
        if lines:
            raise EditRefused(*lines)
        try:
            told = tuple(notes(self._config, fresh, found, status))
        except (NotAnswered, TopicMissing) as error:
            raise EditRefused(f"where the log begins is unknown: {error}") from error
        return fresh, replace(found, lines=found.lines + told)

    def carry_out(self) -> tuple[str, ...]:
        """Do it, and return what differed, a line each. Raises EditRefused, EditFailed."""
        fresh, found = self.plan()
        config = self._config
        done: list[ReloadStep] = []
        gates = config.gates
        config.adopt_gates(fresh.gates)  # of which lives that begin take what tables are to say
        for step in steps(config, fresh, found):
            try:
                self._carry_out(step, fresh)
            except (EditRefused, EditFailed) as error:
                half = [] if isinstance(error, EditRefused) else step.half_done
                config.adopt_gates(gates)
                undone = self._put_back([*done, *half])
                raise EditRefused(f"{error}; {undone or 'nothing was changed'}") from error
            done.append(step)
        if found.level is not None and self._running.levels is not None:
            self._running.levels.set(found.level)
            config.adopt_log(fresh.log)
        self._give_up(found.pipelines)
        fields = {"added": list(found.added), "removed": list(found.removed)}
        self._log.info("reloaded", pipelines=list(found.pipelines), **fields, level=found.level)
        return found.lines

    def _read(self, path: Path) -> Config:
        try:
            return load(path)
        except ConfigError as error:
            raise EditRefused(*error.problems) from error

    def _unfit_removal(
        self, found: Difference, status: Mapping[str, Mapping[str, Any]]
    ) -> list[str]:
        """A daemon in which no pipeline runs has ended."""
        running = {name for name, each in status.items() if each["stage"] == "running"}
        if not found.removed or running - set(found.removed):
            return []
        names = ", ".join(f"pipeline.{name}" for name in found.removed)
        return [f"{names}: removed, and no other pipeline runs: that takes a restart"]

    def _orphaned(
        self, fresh: Config, found: Difference, status: Mapping[str, Mapping[str, Any]]
    ) -> list[str]:
        lines: list[str] = []
        for name in (*found.pipelines, *found.removed):
            try:
                letters = read_index(PipelineConfig(self._config, name))
            except Unreadable as error:
                return [f"pipeline {name}: its dead letters can't be read: {error}"]
            jobs = tuple(self._running.jobs())
            if name in found.removed:
                left = left_behind(fresh, status[name], jobs, letters)
                lines += refused_removal(name, left, jobs, self._discard)
            else:
                lines += refused(orphans(fresh, status[name], jobs, letters), self._discard)
        return lines

    def _carry_out(self, step: ReloadStep, fresh: Config) -> None:
        """Raises EditRefused, EditFailed."""
        name, config = step.pipeline, self._config
        if step.fate is Fate.GOES:
            self._running.edit(name, self._leave(name), Fate.GOES).result()
            config.drop(name)
            return
        if step.fate is Fate.RUNS_AGAIN:
            self._running.edit(name, self._adopt(name, fresh), step.fate).result()
            return
        config.adopt(name, fresh.pipeline[name])
        try:
            self._running.edit(name, lambda snapshot: snapshot, Fate.BEGINS).result()
        except (EditRefused, EditFailed):
            config.drop(name)
            raise

    def _leave(self, name: str) -> Change:
        """The last look at a pipeline that goes, when it stands still."""

        def change(snapshot: Snapshot) -> Snapshot:
            if snapshot.rebuilds:
                raise EditRefused(f"pipeline {name}: {min(snapshot.rebuilds)} is being rebuilt")
            kept = snapshot.spills.keys() - self._discard
            if kept and name not in self._discard:
                raise EditRefused(f"pipeline {name}: {min(kept)} is in quarantine")
            return snapshot

        return change

    def _adopt(self, name: str, fresh: Config) -> Change:
        """The pipeline stands still when this is called."""

        def change(snapshot: Snapshot) -> Snapshot:
            router = Router(fresh.routes(name))
            kept = {**snapshot.spills, **snapshot.rebuilds}
            gone = [t for t in kept if not router.reaches(TargetName.parse(t))]
            for target in gone:
                if target in snapshot.rebuilds or target not in self._discard:
                    raise EditRefused(f"{target} has no route any more, and something is kept")
            self._config.adopt(name, fresh.pipeline[name])
            return snapshot

        return change

    def _put_back(self, done: list[ReloadStep]) -> str:
        """Undo steps, the last one first; what did not work, in one line, else empty."""
        problems: list[str] = []
        for step in (each.undone for each in reversed(done)):
            try:
                self._undo(step)
            except (EditRefused, EditFailed) as error:
                self._log.error("reload_not_undone", pipeline=step.pipeline, reason=str(error))
                problems.append(f"and pipeline {step.pipeline} does not run as before: {error}")
        return "; ".join(problems)

    def _undo(self, step: ReloadStep) -> None:
        name, section = step.pipeline, step.after

        def change(snapshot: Snapshot) -> Snapshot:
            if section is not None:
                self._config.adopt(name, section)
            return snapshot

        if step.fate is Fate.BEGINS and section is not None:
            self._config.adopt(name, section)
        self._running.edit(name, change, step.fate).result()
        if section is None:
            self._config.drop(name)

    def _give_up(self, pipelines: Iterable[str]) -> None:
        """What was kept for the targets that were named; their routes are gone now."""
        for name in pipelines:
            for target in sorted(self._discard):
                try:
                    discard = Discard(PipelineConfig(self._config, name), target)
                    self._running.edit(name, discard, Fate.RUNS_AGAIN).result()
                except EditRefused as error:  # nothing was kept for it here
                    self._log.info("nothing_discarded", target=target, reason=str(error))


# The operation, and SIGHUP.


class ReloadParams(Params):
    """What is given up."""

    discard: Annotated[
        list[str] | None,
        Option(
            "Give up what is kept for a target without a route; or end a pipeline nevertheless, "
            "and leave that where it is.",
            metavar="NAME",
        ),
    ] = None


class ReloadOperation(Operation[ReloadParams]):
    """Have the running daemon take its changed configuration file: all of it, or nothing.

    Status 2: refused, nothing was changed.
    """

    words, params, example = "reload", ReloadParams, "--dry-run"
    needs_daemon = "a daemon that starts reads its file"

    def __init__(self) -> None:
        self._one = threading.Lock()

    def plan(self, params: ReloadParams, here: Here) -> Plan:
        """What differs, and whether it can be taken."""
        lines = self._reload(params, here).plan()[1].lines
        return Plan(lines=lines or ("nothing differs",), nothing=not lines)

    def step(self, params: ReloadParams, here: Here) -> Done:
        """Take it; one at a time."""
        if not self._one.acquire(blocking=False):
            raise EditRefused("a reload is under way already")
        try:
            lines = self._reload(params, here).carry_out()
        finally:
            self._one.release()
        here.say(*(lines or ("nothing differs",)))
        return Done()

    def _reload(self, params: ReloadParams, here: Here) -> Reload:
        lent = here.daemon.lent
        running = Running(
            here.config, lent.status, lambda: lent.runner.jobs, lent.edit, lent.levels
        )
        return Reload(running, params.discard or ())


def hang_up(desk: Desk) -> None:
    """SIGHUP: reload, and report it in the log. Returns when it is done."""
    log = structlog.get_logger().bind(actor="reload")
    done, lines = desk.carried_out("reload")
    if done.status is Exit.OK:
        log.info("reload_done", changes=[] if lines == ["nothing differs"] else lines)
    else:
        # The sender of a signal reads the log alone.
        log.error("reload_refused", reason="; ".join(lines))
