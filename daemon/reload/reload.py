"""Carries a changed configuration into the running daemon: all of it, or nothing.

Everything that can be refused is refused before the first pipeline is stopped. A pipeline that then
doesn't start with its new section gets its old one back, and so do those that were changed before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from changes.model import TargetName
from changes.routing import Router
from daemon.config import check
from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.config.pipelines import PipelineSection
from daemon.jobs.record import Job
from daemon.letters.index import Unreadable, read_index
from daemon.observe.log_level import LogLevels
from daemon.operate.discard import Discard
from daemon.reload.difference import Difference, difference
from daemon.reload.orphans import orphans, refused
from daemon.runtime.edits import Change, EditFailed, EditRefused
from offsets.snapshot import Snapshot

Edit = Callable[[str, Change], Future[None]]


class ReloadRefused(Exception):
    """Nothing was changed: lines that say why."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("; ".join(self.lines))


@dataclass(frozen=True, slots=True)
class Running:
    """What a reload asks of the daemon. Any thread may call each."""

    config: Config
    status: Callable[[], Mapping[str, Any]]
    jobs: Callable[[], Iterable[Job]]
    edit: Edit
    levels: LogLevels | None


class Reload:
    """One reload, on a thread of its own. ``discard``: targets that are given up."""

    def __init__(self, running: Running, discard: Collection[str] = ()) -> None:
        self._running = running
        self._config = running.config
        self._discard = frozenset(discard)
        self._log = structlog.get_logger().bind(actor="reload")

    def plan(self) -> tuple[Config, Difference]:
        """The file's configuration, and what differs. Raises ReloadRefused."""
        path = self._config.file
        if path is None:
            raise ReloadRefused(["the daemon was started without a configuration file"])
        fresh = self._read(path)
        self._config.redactor.learn(fresh.secrets)
        found = difference(self._config, fresh)
        lines = [f"{key}: takes a restart; nothing was changed" for key in found.restart]
        lines += [f"{path}: {problem}" for problem in check.problems(fresh)]
        lines = lines or [*check.connect_problems(fresh, tuple)]  # the sinks run, as they are
        lines += self._orphaned(fresh, found)
        if lines:
            raise ReloadRefused(lines)
        return fresh, found

    def carry_out(self) -> tuple[str, ...]:
        """Do it, and return what differed, a line each. Raises ReloadRefused, EditFailed."""
        fresh, found = self.plan()
        before = {name: self._config.pipeline[name] for name in found.pipelines}
        done: list[str] = []
        for name in found.pipelines:
            try:
                self._running.edit(name, self._adopt(name, fresh)).result()
            except (EditRefused, EditFailed) as error:
                failed = not isinstance(error, EditRefused)
                undone = self._put_back(before, [*done, *([name] if failed else [])])
                raise ReloadRefused([f"{error}; {undone or 'nothing was changed'}"]) from error
            done.append(name)
        if found.level is not None and self._running.levels is not None:
            self._running.levels.set(found.level)
            self._config.adopt_log(fresh.log)
        self._give_up(found.pipelines)
        self._log.info("reloaded", pipelines=list(found.pipelines), level=found.level)
        return found.lines

    def _read(self, path: Path) -> Config:
        try:
            return load(path)
        except ConfigError as error:
            raise ReloadRefused(error.problems) from error

    def _orphaned(self, fresh: Config, found: Difference) -> list[str]:
        pipelines = {p["pipeline"]: p for p in self._running.status()["pipelines"]}
        lines: list[str] = []
        for name in found.pipelines:
            try:
                letters = read_index(self._config, name)
            except Unreadable as error:
                return [f"pipeline {name}: its dead letters can't be read: {error}"]
            left = orphans(fresh, pipelines[name], self._running.jobs(), letters)
            lines += refused(left, self._discard)
        return lines

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

    def _put_back(self, before: Mapping[str, PipelineSection], names: Iterable[str]) -> str:
        """Give pipelines their old sections; what did not work, in one line, else empty."""
        problems: list[str] = []
        for name in names:

            def change(snapshot: Snapshot, name: str = name) -> Snapshot:
                self._config.adopt(name, before[name])
                return snapshot

            try:
                self._running.edit(name, change).result()
            except (EditRefused, EditFailed) as error:
                self._log.error("reload_not_undone", pipeline=name, reason=str(error))
                problems.append(f"and pipeline {name} does not run as before: {error}")
        return "; ".join(problems)

    def _give_up(self, pipelines: Iterable[str]) -> None:
        """What was kept for the targets that were named; their routes are gone now."""
        for name in pipelines:
            for target in sorted(self._discard):
                try:
                    self._running.edit(name, Discard(self._config, name, target)).result()
                except EditRefused as error:  # nothing was kept for it here
                    self._log.info("nothing_discarded", target=target, reason=str(error))
