"""So many daemons of one group read one topic: what that takes of processor time, and of what."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from bench.compare.measure import family
from bench.rig import message
from bench.scaling.threads import task_seconds
from demo.broker import DevBroker
from tests.lake.daemons import Daemons, Record
from tests.lake.lakes import Lake

PARTITIONS = 8
GROUP = TOPIC = "load"
KAFKA = {"group.instance.id": "", "heartbeat.interval.ms": "500", "session.timeout.ms": "6000"}
WITHIN_S = 180.0
IDLE_S = 4.0
SETTLED_S = 1.0
KINDS = ("main", "jvm", "child")


@dataclass(frozen=True, slots=True)
class Run:
    """What a load took: processor seconds of all daemons, by kind of process and of thread."""

    daemons: int
    tables: int
    messages: int
    writes: int
    clock_s: float
    main_s: float
    jvm_s: float
    children_s: float
    threads: dict[str, float]

    @property
    def cpu_s(self) -> float:
        """In all."""
        return self.main_s + self.jvm_s + self.children_s


class Fleet:
    """The daemons that run. Whoever made it closes ``daemons``."""

    def __init__(self, lake: Lake, broker: DevBroker, folder: Path) -> None:
        section = {
            "topics": [TOPIC], "format": "canal-json", "group": GROUP, "include": ["bench.*"],
            "target": "lake.{database}.{table}", "kafka": KAFKA,
        }  # fmt: skip
        self.folder, self.names = folder, [f"d{number}" for number in range(4)]
        self.daemons = Daemons(lake, broker, folder, {"p": section}, measured=True)
        self.daemons.create_topic(TOPIC, PARTITIONS)
        self._kafka = {"bootstrap.servers": broker.bootstrap}
        self._sent = [0] * PARTITIONS
        self._loads = 0

    def start(self) -> None:
        """All of them; each has its partitions."""
        for name in self.names:
            self.daemons.start(name)
        for name in self.names:
            self.daemons.log(name).of("p", "assigned")

    def leave(self, count: int) -> None:
        """So many go on, and take over the others' partitions."""
        leaving, self.names = self.names[count:], self.names[:count]
        self.daemons.stop(*leaving)

    def load(self, tables: int, messages: int, rounds: int) -> Run:
        """So many times so many messages, each time until all are stored.

        The tables have the same keys in each load: after the first one their rows are replaced.
        """
        before, began = self._spent(), self._written()
        clock_s = 0.0
        for _ in range(rounds):
            records = list(self._records(tables, messages))
            begun = time.monotonic()
            self.daemons.produce(TOPIC, records)
            self._await_stored()
            clock_s += time.monotonic() - begun
        threading.Event().wait(SETTLED_S)  # its threads have told what they took
        spent = self._spent() - before
        threads = {name: s for name, s in spent.items() if name not in KINDS}
        writes = self._written() - began
        took = (clock_s, *(spent[kind] for kind in KINDS))
        return Run(len(self.names), tables, messages * rounds, writes, *took, threads=threads)

    def idle(self) -> float:
        """Processor seconds a second of one daemon that has nothing to do."""
        before = self._spent()
        threading.Event().wait(IDLE_S)
        spent = self._spent() - before
        return sum(spent[kind] for kind in KINDS) / IDLE_S / len(self.names)

    def parts(self) -> dict[str, dict[str, float]]:
        """What the first daemon's threads and writers have spent since it was started."""
        found: dict[str, dict[str, float]] = json.loads(self._figures(self.names[0]).read_text())
        return found

    def _written(self) -> int:
        return sum(len(self.daemons.events(name, "written")) for name in self.names)

    def _records(self, tables: int, messages: int) -> Iterator[Record]:
        self._loads += 1
        keys = random.Random(self._loads)
        for number in range(messages):
            table = number % tables
            partition = table % PARTITIONS
            self._sent[partition] += 1
            key = keys.randrange(max(1, messages // tables))
            yield partition, None, message(key, f"of_{tables}_{table}")

    def _await_stored(self) -> None:
        """The group's positions are at the ends."""
        admin, deadline = AdminClient(self._kafka), time.monotonic() + WITHIN_S
        places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        asked = [ConsumerGroupTopicPartitions(GROUP, places)]
        pause = threading.Event()
        while True:
            found = admin.list_consumer_group_offsets(asked)[GROUP].result(20).topic_partitions
            if [place.offset for place in found if place.offset >= 0] == [
                n for n in self._sent if n
            ]:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"stored {found} of {self._sent}")
            pause.wait(0.1)

    def _spent(self) -> Counter[str]:
        spent: Counter[str] = Counter()
        for name in self.names:
            root = self.daemons.pid(name)
            for process in family(root):
                kind = "jvm" if process.java else "main" if process.pid == root else "child"
                spent[kind] += process.cpu_s
                if process.java:
                    for thread, seconds in task_seconds(process.pid).values():
                        spent[f"jvm: {thread.rstrip('0123456789-# ')}"] += seconds
            figures = json.loads(self._figures(name).read_text())
            for thread, seconds in (figures["threads"] | figures["parts"]).items():
                spent[f"main: {thread}"] += seconds
        return spent

    def _figures(self, name: str) -> Path:
        return self.folder / f"{name}.figures"
