"""Collectors as the daemon has them, beside a real broker and a real source: no Spark, no sink."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from actors.runtime.program_keeper import ProgramKeeper, ProgramTimes
from collector.collectors import Collectors
from collector.figures import CollectorFigures
from daemon.app.collectors import make_collectors
from daemon.config.config import Config
from demo.broker import DevBroker

FAST = ProgramTimes(look_every_s=0.1, ask_every_s=0.5)

_FILE = """
[kafka]
bootstrap.servers = "{broker}"
[daemon]
state_dir = "{state}"
[sink.copy]
kind = "sqlite"
path = "x.db"
[database.shop]
{database}
[connect]
group = "connect-{group}"
[collector.shop]
database = "shop"
heartbeat_s = 1
{collector}
[pipeline.shop]
collector = "shop"
include = ["{tables}"]
target = "copy.{{database}}.{{table}}"
"""


@dataclass
class Running:
    """``loads``: the patterns of tables that were to be loaded."""

    config: Config
    broker: DevBroker
    collectors: Collectors
    keeper: ProgramKeeper
    loads: list[tuple[str, ...]] = field(default_factory=list)

    def figures(self) -> CollectorFigures:
        return self.collectors.figures()[0]

    def until(
        self,
        state: str | None = None,
        when: Callable[[CollectorFigures], bool] = lambda _: True,
        within_s: float = 120.0,
    ) -> CollectorFigures:
        """Wait for a state, and for something to be so; fails with what there is instead."""
        deadline, pause = monotonic() + within_s, Event()
        while True:
            found = self.figures()
            if (state is None or found["state"] == state) and when(found):
                return found
            worker = self.keeper.figures()
            assert monotonic() < deadline, f"{found}\n{worker}"
            self.collectors.look_now()
            pause.wait(0.3)

    @property
    def rest(self) -> Any:
        worker: Any = self.collectors.worker
        return worker.rest

    def kill_worker(self) -> None:
        """kill -9 of the JVM's leash, and so of the JVM: the keeper replaces it."""
        import os
        import signal

        (worker,) = self.keeper.figures()
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)


@contextmanager
def running(
    folder: Path,
    broker: DevBroker,
    database: str,
    tables: str,
    collector: str = "",
    topic: str = "",
    group: str = "",
) -> Iterator[Running]:
    """Collectors of one daemon, until the end."""
    if topic:
        collector += f'\ntopic = "{topic}"'
    text = _FILE.format(
        broker=broker.bootstrap, state=folder / "state", database=database, tables=tables,
        collector=collector, group=group or topic or "own",
    )  # fmt: skip
    config = Config.model_validate(tomllib.loads(text))
    folder.joinpath("state").mkdir(parents=True, exist_ok=True)
    loads: list[tuple[str, ...]] = []

    def load(patterns: Any) -> dict[str, str]:
        loads.append(tuple(patterns))
        return {}

    collectors = make_collectors(config, load, FAST)
    collectors.prepare()
    collectors.open()
    try:
        yield Running(config, broker, collectors, collectors.keeper, loads)
    finally:
        collectors.close()


def records(broker: DevBroker, topic: str) -> list[Mapping[str, Any]]:
    """What a topic holds now, read committed, in its order: the values without their schemas."""
    return list(committed(broker.bootstrap, topic))


def committed(bootstrap: str, topic: str) -> Iterator[Mapping[str, Any]]:
    """The same, one by one."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "tests", "log_level": 0,
        "enable.auto.commit": False, "isolation.level": "read_committed",
        "enable.partition.eof": True,
    })  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(30.0)
            assert message is not None
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                return
            if message.value() is not None:
                yield json.loads(message.value())["payload"]
    finally:
        consumer.close()


def rows(broker: DevBroker, topic: str, table: str) -> list[Mapping[str, Any]]:
    """The changes of a table."""
    return [
        one for one in records(broker, topic)
        if "op" in one and one["source"].get("table") == table
    ]  # fmt: skip
