"""The service: starts the actors, handles signals, returns an exit status. Runs on the main thread.

``daemon/app/startup.py`` is what happens before the actors start. ``supervisor.py`` is what the
main thread does while they run. ``edits.py`` changes one pipeline meanwhile.
"""

from __future__ import annotations

import glob
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.periodic import threads_watched
from actors.staging.collector import calm_collector
from actors.staging.folder import StagingFolder
from actors.staging.process import StageProcesses
from changes.model.printable import json_text
from daemon.admin.page.document import Sources
from daemon.admin.page.verified import LastVerified
from daemon.admin.recent_lines import RecentLines
from daemon.admin.service_manager import Notifier
from daemon.app.admin_endpoint import AdminEndpoint, AdminEndpointError
from daemon.app.collectors import make_collectors
from daemon.app.edits import EditRequested
from daemon.app.programs import Programs
from daemon.app.progress import Show
from daemon.app.signals import StopSignals, reloads_on_hang_up
from daemon.app.sinks_start import SinksStart
from daemon.app.startup import StartUp, Unusable
from daemon.app.supervisor import EventQueue, Supervisor
from daemon.app.topology import Topology
from daemon.config.config import Config, formats
from daemon.config.log_level import LogLevels
from daemon.config.pipeline_config import pipelines_of
from daemon.config.shown import shown as config_shown
from daemon.operations.engine.context import Daemon
from daemon.operations.engine.desk import Desk
from daemon.operations.engine.here import Lent
from daemon.operations.engine.source_targets import chosen
from daemon.operations.registry import operations
from daemon.operations.reload.reload import hang_up
from daemon.operations.service import JobsDesk
from daemon.state.edits import Change, Fate
from daemon.state.pauses import Pauses, PausesUnreadable
from daemon.tracing.opening import Tracing, missing_packages
from databases.base.errors import DatabaseError
from settings.exit import Exit
from settings.shell import quoted
from sparkwriter.sinks import SinkTier


class Service:
    """One run of the daemon, from its configuration to its exit status."""

    def __init__(
        self,
        config: Config,
        until_end: bool,
        show: Show,
        tier: SinkTier,
        notifier: Notifier | None = None,
        levels: LogLevels | None = None,
        recent: RecentLines | None = None,
    ) -> None:
        """``levels``: the log's, if they may be changed. ``recent``: what the log keeps of it."""
        self._recent = recent or RecentLines()
        self._config = config
        self._notifier = notifier or Notifier(None)
        self._tier = tier
        self._show = show
        self._events = EventQueue()
        self._startup = StartUp(config, tier, until_end)
        self._sinks_start = SinksStart(config, tier, self._startup.end)
        self._programs = Programs(config)
        self._until_end = until_end
        self._pauses = Pauses(config.daemon.state_dir)
        self._admin: AdminEndpoint
        self._run_id = f"run-{uuid.uuid4().hex[:12]}"
        self._collectors = make_collectors(config, self._load)
        stores, read = lambda: self._startup.stores, self._collectors.position
        daemon = Daemon(config, tier, stores, self.edit, self._pauses, read)
        self._jobs = JobsDesk(daemon)
        runner, status = self._jobs.runner, lambda: self._admin.status()
        lent = Lent(daemon, self.edit, runner, self._pauses, status, levels)
        self._desk = Desk(lent, operations())
        lent.collectors = self._collectors

    def run(self) -> Exit:
        """Start everything, wait for the end, return how it ended. Raises Unusable."""
        calm_collector()
        with threads_watched(self._thread_died):
            return self._run()

    def _run(self) -> Exit:
        config, startup = self._config, self._startup
        signals = StopSignals(self._events.tell)
        begun, beside = self._sinks_start.begun(), self._programs.running()
        with signals.handled(), startup.claimed_state_dir(), begun, beside, startup.open_stores():
            self._open_jobs()
            self._load_pauses()
            self._check_tracing()
            stores = startup.stores
            self._collectors.prepare()
            recorded = {name: startup.recorded(name, store) for name, store in stores.items()}
            parts = [startup.parts(name, recorded[name], store) for name, store in stores.items()]
            self._admin = admin = self._admin_endpoint()
            folder = StagingFolder(config.daemon.staging_folder, self._run_id)
            stagers = StageProcesses(formats(config), folder, config.daemon.processors)
            status: Exit | None = None
            tracing = Tracing(config.tracing, self._run_id, config.redactor.text)
            watched = self._pauses.now, tracing.around
            topology = Topology(config, self._run_id, stagers, self._events, *watched)
            supervisor = self._supervisor(partial(self._watch, topology))
            try:
                self._collectors.open()
                self._sinks_start.finished()
                topology.start_writers(self._tier.sinks)
                for part in parts:
                    topology.start_pipeline(startup.settled(part, recorded[part.name]))
                self._watch(topology, config.pipeline)
                self._jobs.start()
                with signals.listening(), reloads_on_hang_up(partial(hang_up, self._desk)):
                    status = supervisor.run(topology)
            finally:
                if status is not Exit.KILLED:  # a second signal does not wait for a clean end
                    steps = self._jobs.stop, topology.stop, self._collectors.close, admin.close
                    others = self._tier.stop, stagers.close, folder.close, tracing.close
                    for step in (*steps, *others):
                        startup.end(step)
                else:
                    stores.clear()  # nor for a running set of a store
                    self._programs.abandon()
            return status

    def stop(self, reason: str) -> None:
        """Request the end, as a signal does. A second request ends the run at once. Any thread."""
        self._events.tell(msg.StopRequested(reason))

    def edit(self, pipeline: str, change: Change, fate: Fate = Fate.RUNS_AGAIN) -> Future[None]:
        """Stop a pipeline, change its snapshot, start it again. Any thread.

        The future is done when the pipeline runs again. It fails with EditRefused (nothing was
        changed, the pipeline goes on as before) or EditFailed. A pipeline that had failed runs
        again.
        """
        done: Future[None] = Future()
        self._events.tell(EditRequested(pipeline, change, done, fate))
        return done

    def _load(self, patterns: Sequence[str]) -> Mapping[str, str]:
        """Have tables loaded whose changes a collector has lost; by target why one is not. Where
        all together are refused, each goes by itself: one holds up no other."""
        done, lines = self._desk.carried_out("tables load", targets=list(patterns))
        if done.status is Exit.OK:
            return {}
        try:
            each = sorted(self._loadable(patterns))
        except DatabaseError as error:
            return dict.fromkeys(patterns, str(error))
        refused: dict[str, str] = {}
        for target in each:
            done, lines = self._desk.carried_out("tables load", targets=[glob.escape(target)])
            if done.status is not Exit.OK:
                refused[glob.escape(target)] = "; ".join(lines)
        return refused

    def _loadable(self, patterns: Sequence[str]) -> set[str]:
        """The targets of tables that match. Raises DatabaseError."""
        found = (chosen(each, patterns) for each in pipelines_of(self._config).values())
        return {str(one.target) for each in found for one in each.tables}

    def _thread_died(self, name: str, reason: str) -> None:
        """Each loop has a guard for what it handles; what passes that is a crash, by name."""
        self._events.tell(msg.ActorCrashed(Address("", f"thread {name}"), reason))

    def _open_jobs(self) -> None:
        try:
            self._jobs.open()
        except OSError as error:
            raise Unusable(f"the jobs' files can't be used: {error}") from error

    def _check_tracing(self) -> None:
        """Before anything is open that only the end of the run closes."""
        for missing in missing_packages(self._config.tracing):
            raise Unusable(missing)

    def _load_pauses(self) -> None:
        try:
            self._pauses.load()
        except (PausesUnreadable, OSError) as error:
            raise Unusable(str(error)) from error
        paused = sorted(self._pauses.now().keys() & self._config.pipeline.keys())
        if paused and self._until_end:
            raise Unusable(
                f"pipeline {paused[0]} is paused and reaches no end: "
                f"`binlogd resume {quoted(paused[0])}`"
            )

    def _prepare_stop(self) -> None:
        self._tier.prepare_stop()
        self._jobs.prepare_stop()
        self._desk.close()

    def _watch(self, topology: Topology, pipelines: Collection[str]) -> None:
        """These pipelines are there now: show them, ask their actors."""
        self._admin.follow(pipelines)
        self._admin.watch(topology.directory, topology.asked, self._events)
        self._desk.lent.watch(topology.directory, topology.asked)

    def _supervisor(self, changed: Callable[[Collection[str]], None]) -> Supervisor:
        return Supervisor(
            self._config,
            self._startup,
            self._prepare_stop,
            self._notifier,
            self._show,
            self._events,
            self._run_id,
            changed,
            stays=not self._until_end and not self._config.daemon.exit_when_stopped,
        )

    def _admin_endpoint(self) -> AdminEndpoint:
        answers = {**self._desk.answers, **self._jobs.answers}
        admin = AdminEndpoint(
            self._config,
            self._run_id,
            self._notifier,
            self._tier.session,
            answers,
            self._jobs.figures,
            self._pauses.now,
            self._collectors.figures,
            lambda: [*self._programs.figures(), *self._collectors.programs()],
            Sources(
                lambda: json_text(config_shown(self._config), indent=1),
                LastVerified(lambda: self._jobs.runner.jobs),
                self._recent.of,
            ),
            self._startup.room,
        )
        try:
            admin.open()
        except AdminEndpointError as error:
            raise Unusable(str(error)) from error
        return admin
