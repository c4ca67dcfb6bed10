"""Daemons as processes on one lake: their configurations, what they log, how they end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from demo.broker import DevBroker
from tests.integration.test_group import Log
from tests.integration.test_process import CHECKOUT, daemon, ended
from tests.lake.lakes import Lake

QUICK = "-XX:TieredStopAtLevel=1"
ENDED_WITHIN_S = 180.0
Record = tuple[int, bytes | None, bytes]
"""Partition, key, value."""


class Daemons:
    """Daemons of one configuration: each has a state directory and a log of its own."""

    def __init__(
        self,
        lake: Lake,
        broker: DevBroker,
        folder: Path,
        pipelines: Mapping[str, Mapping[str, Any]],
        *,
        spark: Mapping[str, str] | None = None,
        shared_staging: bool = False,
        measured: bool = False,
    ) -> None:
        """``spark``: settings of Spark, its master among them. ``measured``: with what each thread
        takes in ``NAME.figures``."""
        self._measured = measured
        self._lake, self._broker, self._folder = lake, broker, folder
        self._pipelines, self._shared = pipelines, shared_staging
        self._spark = {"spark.driver.extraJavaOptions": QUICK, **(spark or {})}
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._logs: dict[str, Log] = {}
        kafka = {"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 1_000_000}
        self._producer = Producer(kafka)

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic."""
        admin = AdminClient({"bootstrap.servers": self._broker.bootstrap})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(20)

    def produce(self, topic: str, records: list[Record]) -> None:
        """Write them, and wait until the broker has them."""
        for partition, key, value in records:
            self._producer.produce(topic, value, key, partition)
        assert self._producer.flush(60) == 0

    def start(self, name: str, *options: str) -> Log:
        """Start one, or start it again; what it logs from here on."""
        command = ("run", "--config", str(self._config(name)), *options)
        figures = self._folder / f"{name}.figures"
        self._processes[name] = measured(figures, *command) if self._measured else daemon(*command)
        log = self._logs.get(name) or Log(self._log_file(name))
        self._logs[name] = log
        return log

    def pid(self, name: str) -> int:
        """The process of one."""
        return self._processes[name].pid

    def log(self, name: str) -> Log:
        """What one logs, from where it was read to."""
        return self._logs[name]

    def kill(self, name: str) -> None:
        """kill -9. Its JVM ends by itself."""
        self._processes[name].kill()
        ended(self._processes.pop(name), ENDED_WITHIN_S)

    def stop(self, *names: str) -> None:
        """SIGTERM to all of them at once: each writes what it has in hand, and ends well."""
        processes = [self._processes.pop(name) for name in names]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            assert ended(process, ENDED_WITHIN_S) == (0, "")

    def catch_up(self, name: str) -> None:
        """Run one to the end of its topics."""
        self.start(name, "--until-caught-up")
        assert ended(self._processes.pop(name), ENDED_WITHIN_S) == (0, "")

    def events(self, name: str, event: str) -> list[dict[str, Any]]:
        """What one has logged under that name."""
        lines = map(json.loads, self._log_file(name).read_text().splitlines())
        return [line for line in lines if line["event"] == event]

    def close(self) -> None:
        """Nothing of them stays."""
        for process in self._processes.values():
            process.kill()
            process.communicate()
        for log in self._logs.values():
            log.close()

    def _log_file(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _config(self, name: str) -> Path:
        folder = self._folder / name
        conf = {**self._spark, **self._lake.conf}
        sections: dict[str, Mapping[str, Any]] = {
            "daemon": {
                "state_dir": str(folder / "state"), "commit_interval_s": 0.3, "processors": 1,
                "staging_dir": self._lake.staging if self._shared else str(folder / "staging"),
                "drain_timeout_s": 60,
            },
            "log": {"level": "debug", "format": "json", "file": str(self._log_file(name))},
            "batch": {"max_age_s": 0.5},
            "kafka": {"bootstrap.servers": self._broker.bootstrap},
            "spark": {
                "master": conf.pop("spark.master", "local[1]"), "writers": 2, "warm_up": False,
                "conf": conf,
            },
            "sink.lake": {"kind": "iceberg", "catalog": dict(self._lake.catalog)},
        }  # fmt: skip
        sections |= {f"pipeline.{name}": section for name, section in self._pipelines.items()}
        lines = []
        for section, values in sections.items():
            lines.append(f"[{section}]")
            lines += [f"{json.dumps(key)} = {toml(value)}" for key, value in values.items()]
        path = self._folder / f"{name}.toml"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)
        return path


def measured(figures: Path, *command: str) -> subprocess.Popen[str]:
    """Start a daemon that counts what its threads take."""
    return subprocess.Popen(
        [sys.executable, "-m", "bench.scaling.threads", str(figures), *command],
        cwd=CHECKOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def toml(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@contextmanager
def running(daemons: Daemons) -> Iterator[Daemons]:
    """Whatever happens, no process stays."""
    try:
        yield daemons
    finally:
        daemons.close()
