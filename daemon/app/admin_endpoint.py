"""Opens the ways to look at a running daemon: control socket, web port, systemd.

All of them show one document, made by asking the actors (``status.py``), without secrets.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import pykka
import structlog

from actors.contract.addresses import Address
from actors.contract.figures import Figures
from actors.runtime.program_keeper import ProgramFigures
from actors.runtime.shell import Directory, Endpoint
from collector.figures import CollectorFigures
from daemon.admin.events.watch import EventWatch
from daemon.admin.expiry import Expiry, credentials
from daemon.admin.minutes import MinuteLog
from daemon.admin.page.document import NO_SOURCES, Sources
from daemon.admin.service_manager import Monitor, Notifier
from daemon.admin.status import document as doc
from daemon.admin.status.first_seen import FirstSeen
from daemon.admin.status.observer import SUPERVISOR, Observer, Question
from daemon.admin.status.runbook import DOCS
from daemon.admin.status.status import About, AskLife, document
from daemon.admin.web import WebServer
from daemon.config.config import Config
from daemon.operations.figures import JobFigures
from daemon.state.control import Answer, ControlServer
from daemon.state.gates_shown import GateFiles
from daemon.state.pauses import Pause
from daemon.state.room import StateRoom
from sources.base.log_watch import LogWatch
from sources.opening import open_source
from sparkwriter.session.keeper import SessionFigures


class AdminEndpointError(Exception):
    """A socket or port can't be opened: one line."""


class AdminEndpoint:
    """The main thread opens it before anything slow starts, and closes it at the end."""

    def __init__(
        self,
        config: Config,
        run_id: str,
        notifier: Notifier,
        session: Callable[[], SessionFigures | None],
        answers: Mapping[str, Answer] | None = None,
        jobs: Callable[[], list[JobFigures]] = list,
        pauses: Callable[[], Mapping[str, Pause]] = dict,
        collectors: Callable[[], list[CollectorFigures]] = list,
        programs: Callable[[], Sequence[ProgramFigures]] = list,
        sources: Sources = NO_SOURCES,
        room: StateRoom | None = None,
    ) -> None:
        """``session`` returns the state of the sinks' session, ``jobs``, ``collectors`` and
        ``programs`` the document's members of these names, ``pauses`` the paused pipelines, all on
        any thread. ``answers`` are further handlers of the control socket, on its thread.
        ``sources``: what the page shows besides the document. ``room``: the state directory's."""
        self._about = About(
            run=run_id,
            pid=os.getpid(),
            groups={},
            processors=config.daemon.processors,
            stuck_after_s=config.daemon.stuck_after_s,
            docs=config.metrics.docs or DOCS,
        )
        self._redactor, self._listen = config.redactor, config.metrics
        self._session, self._jobs, self._pauses = session, jobs, pauses
        self._collectors, self._programs, self._sources = collectors, programs, sources
        self._observer, self._first_seen, self._begun = Observer(), FirstSeen(), time.monotonic()
        all_answers: dict[str, Answer] = {"status": lambda _: self.status(), **(answers or {})}
        self._control = ControlServer(config.daemon.state_dir, all_answers)
        self._web: WebServer | None = None
        self._monitor = Monitor(notifier, self.status)
        self._events = EventWatch(config.events, run_id, self.status)
        self._room = room or StateRoom(config.daemon.state_dir)
        self._minutes = MinuteLog(self.status, self._room.measure)
        self._config, self._open, self._gates = config, False, GateFiles(config.daemon.state_dir)
        self._logs: dict[str, LogWatch] = {}
        self.follow(config.pipeline)

    def open(self) -> None:
        """Serve from now on. Raises AdminEndpointError."""
        try:
            self._control.start()
        except OSError as error:
            raise AdminEndpointError(f"the control socket can't be made: {error}") from error
        if (address := self._listen.address) is not None:
            try:
                listen = self._listen
                self._web = WebServer(
                    address,
                    self.status,
                    listen.token,
                    tuple(listen.hosts),
                    listen.most,
                    self._sources,
                )
            except OSError as error:
                self._control.close()
                raise AdminEndpointError(
                    f"metrics.listen {self._listen.listen}: {error.strerror or error}"
                ) from error
            self._web.start()
            log = structlog.get_logger().bind(actor="web")
            if isinstance(address, tuple):
                host, port = self._web.address
                log.info("metrics", host=host, port=port)
            else:
                log.info("metrics", socket=str(address))
        self._monitor.start()
        self._events.start()
        self._minutes.start()
        self._open = True
        for watch in self._logs.values():
            watch.start()

    def follow(self, pipelines: Collection[str]) -> None:
        """Show these pipelines from now on. The main thread calls it."""
        config = self._config
        gone = self._logs.keys() - set(pipelines)
        for name in gone:
            self._logs[name].close()
        logs = {name: watch for name, watch in self._logs.items() if name not in gone}
        for name in set(pipelines) - logs.keys():
            logs[name] = LogWatch(open_source(config, name).probe())
            if self._open:
                logs[name].start()
        self._logs = logs  # other threads may be reading the former ones
        self._about = replace(self._about, groups={p: config.group(p) for p in pipelines})
        self._expiry = Expiry(credentials(config.kafka, config.pipeline, config.sink))

    def watch(
        self, directory: Directory, addresses: Iterable[Address], supervisor: Endpoint
    ) -> None:
        """Query these actors and the main thread from now on."""
        questions = {address: _question(directory, address) for address in addresses}
        self._observer.watch({**questions, SUPERVISOR: lambda: _ask_life(supervisor)})

    def close(self) -> None:
        """Stop serving."""
        for watch in self._logs.values():
            watch.close()
        self._monitor.close()
        self._events.close()
        self._minutes.close()
        if self._web is not None:
            self._web.close()
        self._control.close()

    def status(self) -> doc.Status:
        """The document. Any thread. Takes as long as the slowest actor, ANSWER_WITHIN_S at most."""
        answers = self._observer.look()
        uptime_s = time.monotonic() - self._begun
        now_ms = time.time_ns() // 1_000_000
        ends = {name: watch.figures() for name, watch in self._logs.items()}
        found = document(
            self._about,
            answers,
            now_ms,
            uptime_s,
            self._session(),
            ends,
            self._jobs(),
            self._expiry.figures(),
            self._pauses(),
            self._collectors(),
            self._programs(),
            self._room.figures(),
            self._gates.shown(self._config.gates, now_ms),
        )
        redacted: doc.Status = self._redactor.deep(self._first_seen.fill(found))
        return redacted


def _question(directory: Directory, address: Address) -> Question:
    return lambda: directory.question(address, Figures())


def _ask_life(supervisor: Endpoint) -> pykka.Future[object]:
    future: pykka.Future[object] = pykka.ThreadingFuture()
    supervisor.tell(AskLife(future))
    return future
