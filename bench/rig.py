"""What the benchmarks share: messages of a known size, a topic full of them, the flow on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from actors.contract.addresses import Address
from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import (
    ActorCrashed,
    CaughtUp,
    Drained,
    PipelineFailed,
    SaveNow,
    SourceClosed,
    Staged,
    StageFailed,
    StopFetching,
)
from actors.contract.ports import BatchWriter, Stager
from actors.contract.raw_messages import Messages
from actors.contract.writes import StagedBatch, TargetState
from actors.runtime.shell import Perform
from actors.staging.collector import calm_collector
from actors.staging.folder import StagingFolder
from actors.staging.process import StageProcesses
from actors.staging.work import StageWork
from changes.formats import FORMATS
from changes.model.model import Mode, TargetName
from changes.routes.routing import TargetRoute
from daemon.app.supervisor import EventQueue
from daemon.app.topology import PipelineParts, Topology
from daemon.config.config import Config, formats
from daemon.config.file import load
from daemon.state.offset_file import FileStore
from daemon.state.spills.file import SpillFolder
from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import Snapshot
from sources.kafka.admin import Admin
from sources.kafka.source import KafkaSource
from sources.kafka.start_resolver import PositionResolver

STANDS_STILL_S = 120.0
"""Without any event of the actors."""

TYPES = {
    "id": "bigint(20)", "name": "varchar(64)", "email": "varchar(64)", "city": "varchar(32)",
    "amount": "decimal(10,2)", "qty": "int(11)", "created": "datetime",
}  # fmt: skip
SQL_TYPES = {"id": -5, "name": 12, "email": 12, "city": 12, "amount": 3, "qty": 4,
             "created": 93}  # fmt: skip


def row(number: int) -> dict[str, str]:
    """A row of seven columns, about 170 bytes of JSON."""
    return {
        "id": str(number), "name": f"customer {number}", "email": f"u{number}@example.com",
        "city": "Amsterdam", "amount": f"{number % 1000}.{number % 100:02}",
        "qty": str(number % 100), "created": "2026-01-01 12:00:00",
    }  # fmt: skip


def message(number: int, table: str, rows: int = 1) -> bytes:
    """A Canal message: one row is about 500 bytes. One in three is an update."""
    update = number % 3 == 2
    return msgspec.json.encode(
        {
            "data": [row(number * rows + i) for i in range(rows)], "database": "bench",
            "es": 1700000000000, "id": number, "isDdl": False, "mysqlType": TYPES,
            "old": [{"qty": "1"}] * rows if update else None, "pkNames": ["id"], "sql": "",
            "sqlType": SQL_TYPES, "table": table, "ts": 1700000000123,
            "type": "UPDATE" if update else "INSERT",
        }
    )  # fmt: skip


def messages(count: int, tables: int = 20, rows: int = 1) -> Iterator[bytes]:
    """Messages over so many tables, interleaved."""
    return (message(number, f"t{number % tables}", rows) for number in range(count))


def fill(bootstrap: str, topic: str, values: Iterator[bytes]) -> int:
    """Make a topic of one partition where there is none and write the messages; returns bytes."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if topic not in admin.list_topics(timeout=20).topics:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 1 << 20,
         "queue.buffering.max.messages": 1_000_000}
    )  # fmt: skip
    size = 0
    for number, value in enumerate(values):
        producer.produce(topic, value)
        size += len(value)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    return size


@dataclass
class Counted:
    """Tables that are counted and let go: net changes are made, nothing is written."""

    rows: int = 0
    _schemas: dict[str, pa.Schema] = field(default_factory=dict)

    def read(self, path: str) -> pa.Table:
        """What was staged behind a write has been counted: none of its rows are left."""
        return self._schemas[path].empty_table()

    def write(self, path: str, table: pa.Table) -> int:
        """Count."""
        self.rows += table.num_rows
        self._schemas[path] = table.schema
        return int(table.nbytes)


class InThread:
    """The other way: a processor's batches decoded by its own thread, in this process."""

    def __init__(self, settings: Config) -> None:
        kinds = {name: formats(settings)(name) for name in settings.pipeline}
        self._works = {
            (name, number): StageWork(FORMATS[kind](options), Counted())
            for name, (kind, options) in kinds.items()
            for number in range(settings.daemon.processors)
        }

    def of(self, pipeline: str, number: int) -> Stager:
        """The stager of a processor."""
        return _Local(self._works[pipeline, number])

    def remove(self, paths: tuple[str, ...]) -> None:
        """There are no files."""

    def close(self) -> None:
        """There is nothing to end."""


@dataclass(frozen=True, slots=True)
class _Local:
    work: StageWork

    def stage(self, request: Stage) -> Staged | StageFailed:
        return self.work.stage(request, "none")

    def remove(self, paths: tuple[str, ...]) -> None:
        """There are no files."""


@dataclass
class Swallow:
    """A sink that takes every batch at once."""

    states: dict[TargetName, TargetState] = field(default_factory=dict)

    def open(self, target: TargetName, recorded: object = None) -> TargetState:
        """As it was left."""
        return self.states.get(target, TargetState())

    def write(self, batch: StagedBatch) -> TargetState:
        """Remember the marks."""
        marks: Mapping[TopicPartition, int] = {s: span.through for s, span in batch.lanes.items()}
        assert all(span.through > NO_OFFSET for span in batch.lanes.values())
        state = TargetState(batch.schema, batch.mode, dict(marks), "1")
        self.states[batch.target] = state
        return state


CONFIG = """
[daemon]
state_dir = "{folder}/state"
processors = {processors}
[batch]
max_messages = 50_000
[kafka]
bootstrap.servers = "{bootstrap}"
[sink.lake]
kind = "iceberg"
catalog = {{}}
[pipeline.bench]
topics = ["{topic}"]
group = "{group}"
format = "canal-json"
target = "lake.{{database}}.{{table}}"
"""


def config(folder: Path, bootstrap: str, topic: str, group: str, processors: int) -> Config:
    """A configuration for one run of the flow."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state").mkdir(exist_ok=True)
    path = folder / "config.toml"
    path.write_text(
        CONFIG.format(
            folder=folder, bootstrap=bootstrap, topic=topic, group=group, processors=processors
        )
    )
    return load(path)


def run_flow(
    settings: Config,
    threads: bool = False,
    begun: Callable[[], None] = lambda: None,
    caught_up: Callable[[float], None] = lambda seconds: None,
    around: Callable[[Address, Perform], Perform] | None = None,
) -> float:
    """Fetch, route, decode and fold the topic of the first pipeline with the real actors, without
    a sink; seconds. The other pipelines run beside it.

    The processes are up before the clock starts, as they are in a daemon that has run a while;
    ``begun`` is called then, ``caught_up`` when it stops: before all that was started is ended.
    ``threads``: decode in the processors' threads instead. ``around``: see ``Topology``.
    """
    name, *others = settings.pipeline
    events = EventQueue()
    calm_collector()
    folder = StagingFolder(settings.daemon.staging_folder, "run-bench")
    count = settings.daemon.processors
    stagers = (
        InThread(settings)
        if threads
        else StageProcesses(formats(settings), folder, count, child="bench.count_child")
    )
    for number in range(count):
        warm_up(stagers.of(name, number))
    topology = Topology(settings, "run-bench", stagers, events, around=around)
    sink: BatchWriter = Swallow()
    topology.start_writers(lambda: {"lake": sink})
    for other in others:
        topology.start_pipeline(_parts(settings, other))
    parts = _parts(settings, name, Admin(settings.kafka).topic_ends(settings.pipeline[name].topics))
    begun()
    began = time.perf_counter()
    topology.start_pipeline(parts)
    try:
        _await(events, CaughtUp)
        seconds = time.perf_counter() - began
        caught_up(seconds)
        _leave(topology, events, [name, *others], count)
        return seconds
    finally:
        topology.stop()
        stagers.close()
        folder.close()


def _parts(
    settings: Config, name: str, until: Mapping[TopicPartition, int] | None = None
) -> PipelineParts:
    kafka, section = settings.kafka_of(name), settings.pipeline[name]
    recorded = Snapshot(name, settings.group(name))
    store = FileStore(settings.daemon.state_dir, name)
    store.start()
    spills = SpillFolder(settings.daemon.state_dir, name)
    resolver = PositionResolver(kafka, recorded.group, section, store.get, False)
    queue = {"queued.max.messages.kbytes": settings.queue_kbytes(name)}
    source = KafkaSource({**queue, **kafka}, section.topics, recorded.group, resolver, name)
    return PipelineParts(name, source, store, recorded, spills, until=until)


def _await(events: EventQueue, kind: type) -> None:
    """Wait for what the actors tell their supervisor."""
    end = time.monotonic() + STANDS_STILL_S
    while not isinstance(event := events.get(end - time.monotonic()), kind):
        assert time.monotonic() < end, "the flow stands still"
        assert not isinstance(event, PipelineFailed | ActorCrashed), event
        if event is not None:
            end = time.monotonic() + STANDS_STILL_S


def _leave(topology: Topology, events: EventQueue, pipelines: list[str], processors: int) -> None:
    """Have the consumers leave their groups, in the daemon's order. Not once the actors have ended:
    a revoke waits for the processors' word, which nobody would give then."""
    for pipeline in pipelines:
        topology.directory.tell(Address(pipeline, "fetcher"), StopFetching())
    for _ in range(processors * len(pipelines)):
        _await(events, Drained)
    for pipeline in pipelines:
        topology.directory.tell(Address(pipeline, "committer"), SaveNow())
    for _ in pipelines:
        _await(events, SourceClosed)


def warm_up(stager: Stager) -> None:
    """Have one batch staged: then the process is up."""
    route = TargetRoute(TargetName("lake", "bench", "warm"), Mode.UPSERT, None)
    lane = LaneMessages(TopicPartition("warm", 0), Messages.of([0], [message(0, "warm")]))
    stager.stage(Stage(route, (), (lane,)))
