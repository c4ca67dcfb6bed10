"""The dev broker: a real Kafka (KRaft, one node) as a child process, for the demo and the tests.

``python -m demo.broker --port P --data DIR`` runs one until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType, TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from actors.runtime.programs import HOST, ProgramError, free_port
from collector.broker.program import Broker
from collector.broker.properties import BrokerSettings

CLUSTER_ID = "binlogd-dev-broker-001"
"""That every dev broker has the same one harms nobody."""

_START_WITHIN_S = 60.0
"""2.5 s on a free machine; two JVMs starting beside it on one core took 15."""
_STOP_WITHIN_S = 20.0
"""An orderly stop flushes and checkpoints, 1 s; after this it is killed, which loses nothing."""

HEAP_MB = 512
"""Logs live in the page cache: a small heap is enough, and a small young part of it stays small.
Thousands of partitions need more."""


class BrokerError(Exception):
    """The broker can't start or went away: what and why, with the end of its log."""


class DevBroker:
    """One broker on one data folder: start, stop, kill and start again, with its data kept.

    Port 0 chooses a free one, which stays the same over restarts. It listens on 127.0.0.1 only
    and ends with this process, however that ends. Not for use by two threads at once.
    """

    def __init__(self, data: Path, port: int = 0, heap_mb: int = HEAP_MB) -> None:
        """Name the data folder (made if it isn't there) and the port; nothing runs yet.
        ``heap_mb``: what its JVM may use."""
        heap = ("-Xms128m", "-Xmn64m", f"-Xmx{heap_mb}m")
        self._broker = Broker(data, BrokerSettings(heap=heap, cluster_id=CLUSTER_ID))
        self.data = self._broker.data
        self.log = self._broker.program.log
        self._port = port
        self._chosen = port == 0

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
        if self._broker.program.runs:
            raise BrokerError(f"the broker on {self.bootstrap} runs already")
        deadline = time.monotonic() + _START_WITHIN_S
        if self._port == 0:
            self._port = free_port()
        try:
            self._broker.launch(self._port)
            self._await_answer(deadline)
        except BaseException as problem:
            self.kill()
            if self._chosen:
                self._port = 0
            if isinstance(problem, ProgramError):
                raise BrokerError(str(problem)) from None
            raise

    def stop(self) -> None:
        """End it in good order (killed when it takes too long); does nothing when it's down."""
        self._broker.program.stop(_STOP_WITHIN_S)

    def kill(self) -> None:
        """End it as a power cut would, by SIGKILL; its data stays, ``start`` brings it back."""
        self._broker.program.kill()

    def wait(self) -> int:
        """Block until it ends by itself; gives its exit code."""
        return self._broker.program.wait()

    def log_tail(self, lines: int = 15) -> str:
        """Give the end of the broker's log."""
        return self._broker.program.tail(lines)

    def _await_answer(self, deadline: float) -> None:
        """Ask for metadata until it comes, with the broker in it."""
        # Refused connections while it starts are no news: the client's own log is off.
        client = AdminClient(
            {"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200}
        )
        while self._broker.program.runs:
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
            f"the broker ended with code {self._broker.program.code} while it started;"
            f" the end of {self.log}:\n{self.log_tail()}"
        )


def _is_transport(error: KafkaException) -> bool:
    return error.args[0].name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT")


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
