"""The embedded broker as its keeper sees it: start, health check, and its topics."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from actors.runtime.files import sync
from actors.runtime.programs import STOP_WITHIN_S, ProgramError, free_port, gist
from collector.broker.home import BrokerHome, BrokerUnusable, ClientSettings
from collector.broker.program import Broker
from collector.broker.properties import BrokerSecrets, BrokerSettings, bounded, durable
from collector.section import BrokerSection
from sources.base.port import NotAnswered
from sources.base.topics import Cluster

_ASK_WITHIN_S = 2.0

_LOOK_EVERY_S = 0.2

OpenCluster = Callable[[Mapping[str, str | int | float | bool], float], Cluster]
"""By a client's settings, and how long a question takes at most."""


class EmbeddedBroker:
    """See ``KeptProgram``. The home was made before. ``topics`` gives the names of those to be made
    where they are missing, each of one partition; ``open_cluster`` reaches the broker."""

    start_within_s = 180.0
    """2.5 s on a free machine; after a kill the newest files of the log are read first."""

    def __init__(
        self,
        section: BrokerSection,
        state_dir: Path,
        topics: Callable[[], Collection[str]],
        open_cluster: OpenCluster,
    ) -> None:
        """Raises BrokerUnusable."""
        self._home = BrokerHome(state_dir, section.port)
        secret = self._home.secret()
        if secret is None:
            raise BrokerUnusable(f"[broker] {self._home.folder}: there is no secret yet")
        megabytes = section.heap_bytes >> 20
        settings = BrokerSettings(
            BrokerSecrets(secret, secrets.token_hex(32)),
            (f"-Xms{min(128, megabytes)}m", f"-Xmx{megabytes}m", f"-Xmn{megabytes // 8}m"),
            {**bounded(section.max_bytes, section.max_age_s), **durable()},
        )
        self._broker = Broker(self._home.folder, settings)
        self.program = self._broker.program
        self._topics = topics
        self._cluster = open_cluster(self._home.client_settings(), _ASK_WITHIN_S)
        self._made: set[str] = set()

    @property
    def folder(self) -> Path:
        """Where its data and its log are."""
        return self._home.folder

    def launch(self) -> None:
        """See ``KeptProgram``."""
        port = self._home.port()
        self._made.clear()
        try:
            self._broker.launch(port)
        except ProgramError as problem:
            if str(problem).startswith(f"port {port} "):
                raise ProgramError(
                    f"{problem} by another program: end that one, or restart binlogd, which takes "
                    "another port (with [broker] port set: set another)"
                ) from problem
            raise

    def ask(self) -> None:
        """See ``KeptProgram``."""
        try:
            self._cluster.answers()
            for topic in sorted({*self._topics()} - self._made):
                self._cluster.make(topic, {})
                self._made.add(topic)
            # Kafka syncs a new topic's folder, and its name in here only a minute later.
            sync(self._broker.logs)
        except NotAnswered as problem:
            raise ProgramError(str(problem)) from problem
        except OSError as problem:
            raise ProgramError(f"the broker's data folder can't be synced: {problem}") from problem


@contextmanager
def broker_alone(
    section: BrokerSection, state_dir: Path, open_cluster: OpenCluster
) -> Iterator[ClientSettings]:
    """The broker without a daemon, under the state directory's lock: what clients need to reach
    it. It has a port that nobody else knows: no producer writes to it. Raises BrokerUnusable."""
    section = section.model_copy(update={"port": free_port()})
    home = BrokerHome(state_dir, section.port)
    if not home.logs.exists():
        raise BrokerUnusable(f"there is no log of an embedded broker in {home.folder}")
    home.make()
    broker = EmbeddedBroker(section, state_dir, tuple, open_cluster)
    try:
        _start(broker)
        yield home.client_settings()
    finally:
        broker.program.stop(STOP_WITHIN_S)


def _start(broker: EmbeddedBroker) -> None:
    """Return once it is up. Raises BrokerUnusable."""
    program, pause = broker.program, threading.Event()
    deadline = time.monotonic() + broker.start_within_s
    try:
        broker.launch()
        while True:
            try:
                return broker.ask()
            except ProgramError:
                if not program.runs or time.monotonic() > deadline:
                    raise
            pause.wait(_LOOK_EVERY_S)
    except ProgramError as problem:
        said = str(problem) if program.runs else gist(program.tail()) or str(problem)
        raise BrokerUnusable(f"[broker] does not start: {said}") from problem
