"""The jobs of a running daemon, put together: runner, notifications, signals, answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeVar

import structlog

from daemon.operations.automatic_loads import AutomaticLoads
from daemon.operations.engine.context import Daemon, DaemonLook
from daemon.operations.engine.record import Job
from daemon.operations.engine.runner import JobRunner
from daemon.operations.engine.store import JobStore
from daemon.operations.figures import (
    JobFigures,
    figures_of,
    in_full,
    notification,
    refused_figures,
    refused_in_full,
)
from daemon.operations.rebuild.kind import adopted, without_job
from daemon.operations.registry import kinds_of
from daemon.operations.signal_reader import SignalReader
from daemon.operations.signals import SignalDesk
from daemon.operations.verify_schedule import VerifySchedule
from daemon.state.control import Answer
from offsets.store import StoreError
from settings.shell import quoted
from sources.base.topics import Notifications
from sources.opening import open_topics

T = TypeVar("T")


class JobsDesk:
    """Main thread, except where it says otherwise."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        config = daemon.config
        self._config = config
        self._log: Any = structlog.get_logger().bind(actor="jobs")
        self._store = JobStore(config.daemon.state_dir)
        self._kinds = kinds_of(config.load)
        self.runner = JobRunner(self._store, self._kinds, daemon, self._send, config.jobs.keep)
        self._topic: Notifications | None = None
        self._signals: SignalReader | None = None
        self._asked_to_stop = False
        self._automatic = AutomaticLoads(self.runner, lambda: DaemonLook(daemon))
        self._schedule = VerifySchedule(
            self.runner, lambda: DaemonLook(daemon), self._automatic.comes
        )

    @property
    def answers(self) -> dict[str, Answer]:
        """Requests of the control socket, answered on its thread."""
        return {"jobs": self._listed, "jobs-show": self._shown}

    def figures(self) -> list[JobFigures]:
        """For the status document. Any thread."""
        refused = map(refused_figures, self._automatic.refused)
        return [*map(figures_of, self.runner.jobs), *refused]

    def open(self) -> None:
        """Read what is recorded, before the pipelines start. Raises OSError."""
        known = {job.id: job for job in self._store.load().jobs}
        now_ms = time.time_ns() // 1_000_000
        for name, store in self._daemon.stores().items():
            try:
                snapshot = store.get().snapshot
            except StoreError as error:
                # The pipeline's own start refuses, or recovers, by the same error.
                self._log.warning("rebuilds_not_looked_for", pipeline=name, reason=str(error))
                continue
            if snapshot is None:
                continue
            for target, lost in without_job(snapshot, known).items():
                way = f"binlogd tables rebuild {quoted(target)} --cancel --force"
                fields = {"pipeline": name, "target": target, "job": lost, "command": way}
                self._log.error("load_without_job", **fields)
            for job in adopted(snapshot, known, now_ms):
                if not self._store.has(job.id):  # one that can't be read stays as it is
                    self._store.save(job)
                    self._log.info("job_recorded", job=job.id, origin=job.wanted.origin)
        self.runner.open()

    def start(self) -> None:
        """The pipelines run: carry out the jobs, listen to signals."""
        section, topics = self._config.jobs, open_topics(self._config)
        if section.notifications_topic:
            self._topic = topics.notifications(section.notifications_topic)
        self.runner.start()
        self._schedule.start()
        self._automatic.start()
        if section.signals_topic:
            desk = SignalDesk(self.runner, self._kinds, lambda: DaemonLook(self._daemon))
            log = topics.log(section.signals_topic)
            self._signals = SignalReader(log, self._config.daemon.state_dir, desk.carry_out)
            self._signals.start()

    def prepare_stop(self) -> None:
        """A stop was requested. Returns at once."""
        self._asked_to_stop = True
        self._schedule.close()
        self._automatic.close()
        self.runner.prepare_stop()

    def stop(self) -> None:
        """End everything, within the drain's time since the stop was requested. Without a request,
        as after a crash, steps under way are left."""
        if self._signals is not None:
            self._signals.close()
        self.runner.stop(self._config.daemon.drain_timeout_s if self._asked_to_stop else 0.0)
        if self._topic is not None:
            self._topic.close()

    def _send(self, job: Job, type_: str, data: Mapping[str, str], unix_ms: int) -> None:
        document = self._config.redactor.deep(notification(job, type_, data, unix_ms))
        tell = self._log.debug if type_ == "IN_PROGRESS" else self._log.info
        tell("job_notification", notification=document)
        if self._topic is not None:
            self._topic.send(job.wanted.pipeline, document)

    def _listed(self, _: Mapping[str, Any]) -> list[JobFigures]:
        return self._redacted(self.figures())

    def _shown(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """One job in full, None if there is none."""
        id_ = request.get("job")
        found = [in_full(job) for job in self.runner.jobs if job.id == id_]
        refused = (refused_in_full(one) for one in self._automatic.refused)
        return self._redacted(next((one for one in (*found, *refused) if one["job"] == id_), None))

    def _redacted(self, found: T) -> T:
        redacted: T = self._config.redactor.deep(found)
        return redacted
