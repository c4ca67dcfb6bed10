"""The running process: signals in, actors joined, an exit status out. The main thread's code.

What comes before the actors is ``daemon/runtime/startup.py``, what the main thread does while they
run is ``supervisor.py``, how one pipeline is changed meanwhile is ``edits.py``.
"""

from __future__ import annotations

import uuid
from concurrent.futures import Future

from actors.contract import messages as msg
from daemon.commands.progress import Show
from daemon.config.pipelines import Config
from daemon.observe.admin_endpoint import AdminEndpoint, AdminEndpointError
from daemon.observe.control import Answer
from daemon.observe.notify import Notifier
from daemon.operate.discard import ASK, DiscardAnswer
from daemon.operate.rebuild_answer import RebuildAnswer
from daemon.operate.running_resets import RunningResets
from daemon.runtime.edits import Change, EditRequested
from daemon.runtime.lifecycle import Exit
from daemon.runtime.startup import StartUp, Unusable
from daemon.runtime.stop_signals import StopSignals
from daemon.runtime.supervisor import EventQueue, Supervisor
from daemon.runtime.topology import Topology
from daemon.sinks.tier import SinkTier
from daemon.staging.collector import calm_collector
from daemon.staging.folder import StagingFolder
from daemon.staging.process import StageProcesses, formats


class Service:
    """One run of the daemon, from its configuration to its exit status."""

    def __init__(
        self,
        config: Config,
        until_end: bool,
        show: Show,
        tier: SinkTier,
        notifier: Notifier | None = None,
    ) -> None:
        self._config = config
        self._notifier = notifier or Notifier(None)
        self._tier = tier
        self._show = show
        self._events = EventQueue()
        self._startup = StartUp(config, tier, until_end)
        self._run_id = f"run-{uuid.uuid4().hex[:12]}"

    def run(self) -> Exit:
        """Start everything, wait for the end, say how it ended. Raises Unusable."""
        config, startup = self._config, self._startup
        calm_collector()
        signals = StopSignals(self._events.tell)
        with signals.handled(), startup.claimed_state_dir(), startup.open_stores():
            startup.check_staging()
            stores = startup.stores
            recorded = {name: startup.recorded(name, store) for name, store in stores.items()}
            parts = [startup.parts(name, recorded[name], store) for name, store in stores.items()]
            admin = self._admin_endpoint()
            folder = StagingFolder(config.daemon.staging_folder, self._run_id)
            stagers = StageProcesses(formats(config), folder, config.daemon.processors)
            status: Exit | None = None
            supervisor = self._supervisor()
            topology = Topology(config, self._run_id, stagers, self._events)
            try:
                startup.start_sinks()
                topology.start_writers(self._tier.sinks)
                for part in parts:
                    topology.start_pipeline(startup.settled(part, recorded[part.name]))
                admin.watch(topology.directory, topology.asked, self._events)
                with signals.listening():
                    status = supervisor.run(topology)
            finally:
                if status is not Exit.KILLED:  # whoever asks twice does not wait for a clean end
                    steps = topology.stop, admin.close, self._tier.stop
                    for step in (*steps, stagers.close, folder.close):
                        startup.end(step)
                else:
                    stores.clear()  # nor for a set that is under way
            return status

    def stop(self, reason: str) -> None:
        """Ask the run to end as a signal would; a second time: at once. From any thread."""
        self._events.tell(msg.StopRequested(reason))

    def edit(self, pipeline: str, change: Change) -> Future[None]:
        """Stop a pipeline, change what is recorded of it, start it again. From any thread.

        The future is done when it runs again; it fails with EditRefused (nothing was changed, the
        pipeline goes on as it was) or EditFailed. A pipeline that has failed before runs again.
        """
        done: Future[None] = Future()
        self._events.tell(EditRequested(pipeline, change, done))
        return done

    def _supervisor(self) -> Supervisor:
        return Supervisor(
            self._config,
            self._startup,
            self._tier,
            self._notifier,
            self._show,
            self._events,
            self._run_id,
        )

    def _admin_endpoint(self) -> AdminEndpoint:
        answers: dict[str, Answer] = {
            **RunningResets(self._config, self.edit).answers,
            ASK: DiscardAnswer(self._config, self.edit),
            "tables-rebuild": RebuildAnswer(self._config, lambda: self._startup.stores, self.edit),
        }
        admin = AdminEndpoint(
            self._config, self._run_id, self._notifier, self._tier.session, answers
        )
        try:
            admin.open()
        except AdminEndpointError as error:
            raise Unusable(str(error)) from error
        return admin
