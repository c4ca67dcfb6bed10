"""The dev broker: a real Kafka (KRaft, one node) as a child process, for the demo and the tests.

``python -m demo.broker --port P --data DIR`` runs one until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType, TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo.servers.program import HOST, free_port
from sparkwriter.session.jars import JarsError, kafka_classpath
from sparkwriter.session.java import JavaMissing, find_java

CLUSTER_ID = "binlogd-dev-broker-001"
"""Kafka wants 22 characters of base64; that every dev broker has the same one harms nobody."""

_START_WITHIN_S = 60.0
"""2.5 s on a free machine; two JVMs starting beside it on one core took 15."""
_STOP_WITHIN_S = 20.0
"""An orderly stop flushes and checkpoints, 1 s; after this it is killed, which loses nothing."""
_HEAP = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms128m", "-Xmx512m", "-Xmn64m")
"""Logs live in the page cache: a small heap is enough, and a small young part of it stays small."""

# Two of these are for speed. After a kill the new broker is let in when the old one's session has
# run out (Kafka's 9 s made a restart take 15 s; much lower, and a busy machine fences a live one).
# Groups start at once. Both rebalance protocols are on by default, saying so warns.
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
delete.topic.enable=true
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=33554432
num.network.threads=2
num.io.threads=4
"""


class BrokerError(Exception):
    """The broker can't start or went away: what and why, with the end of its log."""


class DevBroker:
    """One broker on one data folder: start, stop, kill and start again, with its data kept.

    Port 0 chooses a free one, which stays the same over restarts. It listens on 127.0.0.1 only
    and ends with this process, however that ends. Not for use by two threads at once.
    """

    def __init__(self, data: Path, port: int = 0) -> None:
        """Name the data folder (made if it isn't there) and the port; nothing runs yet."""
        self.data = data.absolute()
        self.log = self.data / "broker.log"
        self._port = port
        self._chosen = port == 0
        self._leash: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """What a client's ``bootstrap.servers`` needs."""
        return f"{HOST}:{self._port}"

    def __enter__(self) -> DevBroker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and return when it has answered a request; raises BrokerError."""
        if self._leash is not None:
            raise BrokerError(f"the broker on {self.bootstrap} runs already")
        deadline = time.monotonic() + _START_WITHIN_S
        if self._port == 0:
            self._port = free_port()
        elif not is_free(self._port):
            raise BrokerError(f"port {self._port} on {HOST} is in use")
        self._prepare()
        try:
            self._launch()
            self._await_answer(deadline)
        except BaseException:
            self.kill()
            if self._chosen:
                self._port = 0
            raise

    def stop(self) -> None:
        """End it in good order (killed when it takes too long); does nothing when it's down."""
        if self._leash is None:
            return
        pipe = self._leash.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):  # it ended by itself
            pipe.write(b"x")
            pipe.flush()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._leash.wait(_STOP_WITHIN_S)
        self.kill()

    def kill(self) -> None:
        """End it as a power cut would, by SIGKILL; its data stays, ``start`` brings it back."""
        if self._leash is None:
            return
        pipe = self._leash.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
        self._leash.wait()
        self._leash = None

    def wait(self) -> int:
        """Block until it ends by itself; gives its exit code."""
        if self._leash is None:
            raise BrokerError("the broker does not run")
        return self._leash.wait()

    def log_tail(self, lines: int = 15) -> str:
        """Give the end of the broker's log."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _prepare(self) -> None:
        """Write the settings, and format the data folder when it is a new one."""
        logs = self.data / "logs"
        try:
            # Libraries that a killed one unpacked.
            if self._scratch.exists():
                shutil.rmtree(self._scratch)
            self._scratch.mkdir(parents=True)
            self._settings.write_text(
                _SETTINGS.format(host=HOST, port=self._port, controller=free_port(), logs=logs)
            )
        except OSError as problem:
            raise BrokerError(f"the broker's data folder can't be written: {problem}") from None
        if (logs / "meta.properties").exists():
            return
        done = subprocess.run(
            [*_java("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"), "kafka.tools.StorageTool",
             "format", "--cluster-id", CLUSTER_ID, "--config", str(self._settings)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=_START_WITHIN_S,
        )  # fmt: skip
        if done.returncode:
            said = (done.stderr + done.stdout).strip()
            raise BrokerError(f"the broker's data folder can't be formatted: {said}")

    @property
    def _settings(self) -> Path:
        return self.data / "server.properties"

    @property
    def _scratch(self) -> Path:
        return self.data / "tmp"

    def _launch(self) -> None:
        """Start the JVM on its leash, in a session of its own: Ctrl-C is ours to handle."""
        command = [
            *_java(*_HEAP, f"-Djava.io.tmpdir={self._scratch}"),
            "kafka.Kafka",
            str(self._settings),
        ]
        with self.log.open("ab") as log:
            self._leash = subprocess.Popen(
                [sys.executable, "-I", str(Path(__file__).with_name("leash.py")), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _await_answer(self, deadline: float) -> None:
        """Ask for metadata until it comes, with the broker in it."""
        # Refused connections while it starts are no news: the client's own log is off.
        client = AdminClient(
            {"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200}
        )
        assert self._leash is not None
        while self._leash.poll() is None:
            if time.monotonic() > deadline:
                raise BrokerError(
                    f"the broker on {self.bootstrap} gave no answer in {_START_WITHIN_S:.0f} s;"
                    f" the end of {self.log}:\n{self.log_tail()}"
                )
            try:
                if client.list_topics(timeout=1.0).brokers:
                    return
            except KafkaException as error:
                if not error.args[0].retriable() and not _is_transport(error):
                    raise BrokerError(f"the broker on {self.bootstrap}: {error}") from error
        raise BrokerError(
            f"the broker ended with code {self._leash.returncode} while it started;"
            f" the end of {self.log}:\n{self.log_tail()}"
        )


def _is_transport(error: KafkaException) -> bool:
    return error.args[0].name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT")


def _java(*options: str) -> list[str]:
    """Give a Java command line with Kafka's class path, up to the main class."""
    try:
        java, path = find_java().java, kafka_classpath()
    except (JavaMissing, JarsError) as problem:
        raise BrokerError(str(problem)) from None
    config = Path(__file__).with_name("broker-log4j2.properties")
    return [str(java), *options, f"-Dlog4j2.configurationFile={config}", "-cp", path]


def is_free(port: int) -> bool:
    """Whether a server may take a port of the loopback interface."""
    with socket.socket() as probe:
        # As Kafka's own listener: connections of a broker that just ended don't hold the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def main() -> int:
    """Run one broker until a signal; exit code 1 with a line on stderr when it can't."""
    parser = argparse.ArgumentParser(prog="python -m demo.broker", description=__doc__)
    parser.add_argument("--port", type=int, default=9092, help="0 chooses a free one")
    parser.add_argument("--data", type=Path, required=True, help="data folder, kept")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        with DevBroker(options.data, options.port) as broker:
            print(f"broker ready on {broker.bootstrap}", flush=True)
            code = broker.wait()
            print(f"the broker ended with code {code}; see {broker.log}", file=sys.stderr)
    except BrokerError as problem:
        print(problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
