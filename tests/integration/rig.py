"""What the integration tests share: topics, Canal messages, configurations, runs of the daemon."""

from __future__ import annotations

import io
import itertools
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from actors.contract.ports import ResettableSink
from daemon.app.progress import Quiet
from daemon.app.service import Service
from daemon.config.config import Config
from daemon.config.file import load
from daemon.state.offset_file import OffsetFile
from demo.broker import DevBroker
from offsets.snapshot import Snapshot
from settings.exit import Exit
from sources.kafka.admin import Admin
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.keeper import SessionFigures

T = TypeVar("T")

MYSQL_TYPES = {"id": "int(11)", "name": "varchar(255)", "qty": "bigint(20)"}

JVM = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""Spark's settings, as those of the default configuration: the JVM starts faster."""

_names = itertools.count(1)


class SharedSpark:
    """The test run's Spark session in place of one of the daemon's own: 10 s a test saved."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def start(self, config: Config) -> None:
        """It runs already."""

    def sinks(self) -> Mapping[str, ResettableSink]:
        """As the real tier makes them."""
        return {"lake": IcebergWriter(self._spark)}

    def session(self) -> SessionFigures:
        """Nobody keeps it: it lives as long as the test run."""
        return SessionFigures(pid=1)

    def with_spark(self, act: Callable[[SparkJvm], T]) -> T:
        """See ``SinkTier``."""
        return act(SparkJvm(self._spark))

    def prepare_stop(self) -> None:
        """What compacts is its writers' own."""

    def stop(self) -> None:
        """The next test needs it."""


def canal(table: str, kind: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> bytes:
    """A Canal JSON message of table ``shop.<table>``-like names, as Canal writes it."""
    database, _, name = table.partition(".")
    data = [{k: None if v is None else str(v) for k, v in row.items()} for row in rows]
    message = {
        "id": 1, "database": database, "table": name, "pkNames": ["id"], "isDdl": False,
        "type": kind, "es": 1700000000000, "ts": 1700000000123, "sql": "",
        "sqlType": {"id": 4, "name": 12, "qty": -5}, "mysqlType": MYSQL_TYPES,
        "data": data, "old": None,
    } | more  # fmt: skip
    return json.dumps(message, ensure_ascii=False).encode()


def ddl(table: str, kind: str, sql: str) -> bytes:
    """A Canal JSON DDL message."""
    nothing = dict.fromkeys(("data", "old", "mysqlType", "sqlType", "pkNames"))
    return canal(table, kind, [], isDdl=True, sql=sql, **nothing)


class Rig:
    """One test's world. Databases and topics have names of their own, so tests don't meet.

    ``spark`` gives the run's session: it is started by the first test that looks into a table,
    and never where only daemons of their own are run.
    """

    def __init__(
        self,
        broker: DevBroker,
        spark: Callable[[], SparkSession],
        lake: Mapping[str, str],
        folder: Path,
        write: str = "merge",
    ) -> None:
        self.write = write
        self.broker = broker
        self._spark = spark
        self.lake = dict(lake)
        self.folder = folder
        self.db = f"shop{next(_names)}_{uuid.uuid4().hex[:6]}"
        self.topic = f"binlog-{self.db}"
        self.stderr = ""
        self.kafka: dict[str, int] = {}
        """Further settings of the consumer."""
        self.settings: list[tuple[str, str]] = []
        """What is replaced in the configuration's text, for daemons of their own."""
        self.create_topic(self.topic)

    compacts = True
    """Whether the sink compacts its tables."""

    @property
    def spark(self) -> SparkSession:
        """The run's session, apart from those of the daemons."""
        return self._spark()

    def select(self, table: str, columns: Sequence[str], order: str) -> list[tuple[Any, ...]]:
        """Rows of one of this test's tables."""
        chosen = ", ".join(f"`{column}`" for column in columns)
        name = f"lake.`{self.db}`.`{table}`"
        found = self.spark.sql(f"SELECT {chosen} FROM {name} ORDER BY `{order}`")
        return [tuple(row) for row in found.collect()]

    # --- Kafka

    def create_topic(self, name: str, partitions: int = 1) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(20)
        # The answer is the controller's: what the broker tells clients may lag behind.
        end = time.monotonic() + 30
        while len(admin.list_topics(name, 20).topics[name].partitions) < partitions:
            assert time.monotonic() < end

    def log_ends(self, topic: str) -> dict[str, int]:
        """Where a topic's partitions end."""
        ends = Admin({"bootstrap.servers": self.broker.bootstrap}).topic_ends([topic])
        return {str(place): end for place, end in ends.items()}

    def make_again(self, name: str) -> None:
        """Delete a topic and make another of its name."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        admin.delete_topics([name])[name].result(20)
        end = time.monotonic() + 60
        while True:
            try:
                return self.create_topic(name)
            except KafkaException:  # the old one is being removed still
                assert time.monotonic() < end
                threading.Event().wait(0.1)

    def produce(self, *messages: bytes, topic: str | None = None, partition: int = 0) -> None:
        """Write messages to one partition, in order, and wait until the broker has them."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for message in messages:
            producer.produce(topic or self.topic, message, partition=partition)
        assert producer.flush(30) == 0

    def produce_in_transaction(self, *messages: bytes, abort: bool = False) -> None:
        """Write messages to partition 0 in one transaction, then its marker behind them."""
        settings = {"bootstrap.servers": self.broker.bootstrap, "transactional.id": self.db}
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        for message in messages:
            producer.produce(self.topic, message, partition=0)
        assert producer.flush(30) == 0
        if abort:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)

    # --- the daemon

    def write_config(self, **pipelines: Mapping[str, Any]) -> Path:
        """A configuration; without pipelines one named ``p`` into ``lake.{database}.{table}``."""
        sections = pipelines or {"p": self.pipeline()}
        lines = [
            "[daemon]", f'state_dir = "{self.folder}/state"',
            f'staging_dir = "{self.folder}/staging"', "commit_interval_s = 0.3",
            # Tests wait for the end of a daemon whose pipeline has stopped.
            "exit_when_stopped = true", "drain_timeout_s = 60",
            "[log]", 'level = "debug"', 'format = "json"', f'file = "{self.log_file}"',
            "[batch]", "max_age_s = 0.2", "[kafka]",
            f'"bootstrap.servers" = "{self.broker.bootstrap}"',
            *(f'"{key}" = {value}' for key, value in self.kafka.items()),
            "[spark]", "writers = 2",
            "warm_up = false", *(f'conf."{key}" = "{value}"' for key, value in JVM.items()),
            "[sink.lake]", 'kind = "iceberg"', "[sink.lake.catalog]",
            *(f'"{key}" = "{value}"' for key, value in self.lake.items()),
        ]  # fmt: skip
        for name, section in sections.items():
            lines.append(f"[pipeline.{name}]")
            lines += [f"{key} = {_toml(value)}" for key, value in section.items()]
        path = self.folder / "config.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def pipeline(self, **more: Any) -> dict[str, Any]:
        """The section of one pipeline on this test's topic."""
        section = {
            "topics": [self.topic], "format": "canal-json", "group": f"g-{self.db}",
            "include": [f"{self.db}.*"], "target": "lake.{database}.{table}",
        } | more  # fmt: skip
        if "route" in section:
            section["route"] = [{"write": self.write} | route for route in section["route"]]
        else:
            section.setdefault("write", self.write)
        return {key: value for key, value in section.items() if value is not None}

    def run(self, config: Path | None = None) -> Exit:
        """Run the daemon until caught up, in this process; raises Unusable."""
        said = io.StringIO()
        from daemon.admin.logs import set_up_logs

        settings = load(config or self.write_config())
        set_up_logs(settings.log)
        try:
            with redirect_stderr(said):
                return Service(settings, True, Quiet(), SharedSpark(self.spark)).run()
        finally:
            self.stderr = said.getvalue()

    # --- what came of it

    @property
    def log_file(self) -> Path:
        return self.folder / "log" / "binlogd.log"

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log's events of that name."""
        lines = self.log_file.read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def snapshot(self, pipeline: str = "p") -> Snapshot:
        """The offset file."""
        snapshot = OffsetFile(self.folder / "state", pipeline).load().snapshot
        assert snapshot is not None
        return snapshot

    def rows(self, table: str, order: str = "id") -> list[tuple[Any, ...]]:
        """A target's rows, ordered."""
        found = self.spark.sql(f"SELECT * FROM lake.`{self.db}`.`{table}` ORDER BY {order}")
        return [tuple(row) for row in found.collect()]

    def version(self, table: str) -> Any:
        """The snapshot id of a target."""
        refs = self.spark.sql(
            f"SELECT snapshot_id FROM lake.`{self.db}`.`{table}`.refs WHERE name = 'main'"
        )
        return refs.collect()[0][0]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_toml(inner)}' for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
