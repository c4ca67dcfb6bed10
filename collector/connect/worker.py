"""The worker of Kafka Connect that binlogd starts, as its keeper needs it.

It is a cluster of one, in distributed mode: only that mode writes records and their position in one
transaction. It listens on the loopback interface, and answers clients with a secret that is new
at each start. Its replacement after a ``kill -9`` begins at once: nothing waits for the dead one.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.runtime.jars import JarsError
from actors.runtime.java import JavaMissing, find_java
from actors.runtime.programs import HOST, Program, ProgramError, free_port
from changes.model.printable import reason_of
from collector.connect.clients import UnfitSettings, properties
from collector.connect.files import PROVIDER, WorkerFiles, write_private
from collector.connect.rest import ConnectError, ConnectLogin, ConnectRest
from collector.connect.section import ConnectSection
from sources.base.port import GroupMember, NotAnswered

NAME = "Kafka Connect"
_USER = "binlogd"

_SETTINGS = {
    "exactly.once.source.support": "enabled",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "plugin.discovery": "service_load",
    # The broker decides how often a record is kept.
    "config.storage.replication.factor": "-1",
    "offset.storage.replication.factor": "-1",
    "offset.storage.partitions": "1",
    "status.storage.replication.factor": "-1",
    "status.storage.partitions": "1",
    # By default five minutes, in which the tasks of a killed worker would wait for it.
    "scheduled.rebalance.max.delay.ms": "0",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "3000",
    "task.shutdown.graceful.timeout.ms": "10000",
    "rest.extension.classes": (
        "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
    ),
    "config.providers": PROVIDER,
    f"config.providers.{PROVIDER}.class": (
        "org.apache.kafka.common.config.provider.FileConfigProvider"
    ),
}

_JAAS = """\
KafkaConnect {{
  org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required
  file="{file}";
}};
"""


@dataclass(frozen=True, slots=True)
class WorkerJars:
    """``classpath``: of the worker itself. ``plugins``: a folder with jars for each connector."""

    classpath: str
    plugins: Mapping[str, Path]


class ConnectWorker:
    """A ``KeptProgram``. ``rest`` is any thread's, all else the keeper's."""

    start_within_s = 120.0
    """4 s on a free machine; a busy one, and a log to be read, take longer."""

    def __init__(
        self,
        files: WorkerFiles,
        section: ConnectSection,
        clients: Callable[[], Mapping[str, str]],
        jars: Callable[[], WorkerJars],
        members: Callable[[], Sequence[GroupMember]],
        client_id: Callable[[], str],
    ) -> None:
        """``clients``: the settings of its Kafka clients, called at each start; ``jars``: raises
        JarsError; ``members``: those of its group, raises NotAnswered. ``client_id``: by which
        the group knows this installation's."""
        self._files, self._section, self._members = files, section, members
        self._clients, self._jars, self._client_id = clients, jars, client_id
        self._lock = threading.Lock()
        self._rest: ConnectRest | None = None
        self.program = Program(NAME, files.log)

    @property
    def rest(self) -> ConnectRest | None:
        """Its REST API; None before its first start."""
        with self._lock:
            return self._rest

    def launch(self) -> None:
        """See ``KeptProgram``."""
        try:
            java, jars, port = find_java().java, self._jars(), free_port()
            self._files.open()
            self._check_alone()
            auth = f"{_USER}:{secrets.token_urlsafe(32)}"
            self._write(port, auth, jars)
        except (JavaMissing, JarsError, NotAnswered, UnfitSettings) as problem:
            raise ProgramError(reason_of(problem)) from problem
        with self._lock:
            self._rest = ConnectRest(ConnectLogin(f"http://{HOST}:{port}", auth))
        heap, scratch = self._section.heap_mb, self._files.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        self.program.launch([
            java, f"-Xmx{heap}m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            # One that has no memory left answers nobody, and does not end by itself.
            "-XX:+ExitOnOutOfMemoryError", "-Dfile.encoding=UTF-8",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            f"-Djava.security.auth.login.config={self._files.jaas}", f"-Djava.io.tmpdir={scratch}",
            "-cp", jars.classpath, "org.apache.kafka.connect.cli.ConnectDistributed",
            self._files.settings,
        ])  # fmt: skip

    def ask(self) -> None:
        """See ``KeptProgram``."""
        rest = self.rest
        assert rest is not None
        try:
            rest.version()
        except ConnectError as error:
            raise ProgramError(str(error)) from error

    def _check_alone(self) -> None:
        """Two workers of two daemons in one group would hand connectors to each other, on machines
        that don't reach each other. Raises ProgramError."""
        for member in self._members():
            if not member.client_id.startswith(self._client_id()):
                raise ProgramError(
                    f"the Connect group {self._section.group} has a member already "
                    f"({member.client_id} at {member.host}): another daemon's worker, with "
                    "collectors of its own. Stop that one, or give this one another group by "
                    "[connect] group"
                )

    def _write(self, port: int, auth: str, jars: WorkerJars) -> None:
        files, group = self._files, self._section.group
        user, _, password = auth.partition(":")
        login = files.folder / "rest.properties"
        write_private(login, properties({user: password}))
        write_private(files.jaas, _JAAS.format(file=login))
        plugins = [self._link(jars.plugins)]
        if self._section.plugins:
            plugins.append(Path(self._section.plugins))
        settings = {
            **self._clients(),
            **_SETTINGS,
            "client.id": self._client_id(),
            "group.id": group,
            "config.storage.topic": f"{group}-configs",
            "offset.storage.topic": f"{group}-offsets",
            "status.storage.topic": f"{group}-status",
            "listeners": f"http://{HOST}:{port}",
            "rest.advertised.host.name": HOST,
            "plugin.path": ",".join(map(str, plugins)),
            f"config.providers.{PROVIDER}.param.allowed.paths": str(files.secrets),
        }
        write_private(files.settings, properties(settings))

    def _link(self, plugins: Mapping[str, Path]) -> Path:
        """A folder that has the connectors' folders, and nothing else, in it."""
        folder = self._files.folder / "plugins"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, jars in plugins.items():
            (folder / name).symlink_to(jars)
        return folder


def worker_clients(clients: Mapping[str, str]) -> dict[str, str]:
    """The connection's settings for the worker itself, and for the producers, consumers and admin
    clients of its connectors, which take nothing from the worker's own."""
    found = dict(clients)
    for client in ("producer", "consumer", "admin"):
        found |= {f"{client}.{name}": value for name, value in clients.items()}
    return found
