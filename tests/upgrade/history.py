"""A small history that leaves one of each file in the state directory: the world of a release.

``python -m tests.upgrade.history FOLDER`` runs it with the binlogd at hand and keeps the log, the
state directory and the target. It is run once for each release, before it: what it made of a
release is never made again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from demo.broker import DevBroker
from sources.kafka.admin import Admin
from tests.integration.rig import MYSQL_TYPES, canal
from tests.integration.test_process import Follower, daemon, ended

TOPIC = "binlog-shop"
FILES_LEFT_OUT = ("lock", "control.sock", "jvm.log")

CONFIG = """
[daemon]
state_dir = "state"
staging_dir = "staging"
commit_interval_s = 0.2
processors = 1
[log]
level = "debug"
format = "json"
file = "binlogd.log"
[batch]
max_age_s = 0.1
[kafka]
"bootstrap.servers" = "{broker}"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.p]
topics = ["binlog-shop"]
format = "canal-json"
group = "g-shop"
include = ["shop.*"]
{more}on_bad_record = "dead-letter"
on_refused_target = "quarantine"
[[pipeline.p.route]]
target = "copy.{{database}}.{{table}}"
[[pipeline.p.route]]
tables = ["shop.t"]
target = "copy.{{database}}.{{table}}_log"
mode = "append"
"""


NO_ZERO_DATES = 'zero_dates = "error"\n'


def insert(table: str, *keys: int) -> list[bytes]:
    """Inserts, whose rows tell nothing but their key; ``u`` has the same name in each."""
    return [
        canal(f"shop.{table}", "INSERT", [{"id": key, "name": f"{table}-row", "qty": key}])
        for key in keys
    ]


class World:
    """A daemon with a file of SQLite as its target, in a folder, on a broker."""

    def __init__(self, folder: Path, broker: DevBroker) -> None:
        self.folder, self.broker = folder, broker
        self.config = folder / "config.toml"
        self.configure(NO_ZERO_DATES)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(20)
        self.topic_id = _id_of(admin)

    def configure(self, more: str) -> None:
        """Write the configuration, with more lines for the pipeline."""
        text = CONFIG.format(broker=self.broker.bootstrap, more=more)
        self.config.write_text(text)

    def produce(self, *messages: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for message in messages:
            producer.produce(TOPIC, message)
        assert producer.flush(30) == 0

    def end(self) -> int:
        """Where the log ends."""
        ends = Admin({"bootstrap.servers": self.broker.bootstrap}).topic_ends([TOPIC])
        return next(iter(ends.values()))

    @contextmanager
    def running(self) -> Iterator[tuple[subprocess.Popen[str], Follower]]:
        """A daemon, which is ended as an operator does, and what its log says from now on."""
        log = self.folder / "binlogd.log"
        log.unlink(missing_ok=True)
        follower = Follower(log)
        process = self.start("run")
        try:
            follower.wait_for("running")
            yield process, follower
        finally:
            if process.poll() is None:
                process.terminate()
            status, said = ended(process)
            follower.close()
        assert (status, said) in ((0, ""), (-9, "")), said

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command, as a process."""
        return daemon(*words, "--config", str(self.config))

    def remove(self) -> None:
        """Take the topic away: the next world has one of its name."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        admin.delete_topics([TOPIC])[TOPIC].result(20)

    def command(self, *words: str) -> str:
        """An operator's command, which succeeds; what it prints."""
        process = self.start(*words)
        out, said = process.communicate(timeout=120)
        assert process.returncode == 0, out + said
        return out

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        """In the target, by hand."""
        with sqlite3.connect(self.folder / "copy.db", timeout=60) as file:
            found = file.execute(statement).fetchall()
        file.close()
        return found


def _id_of(admin: AdminClient) -> str:
    """The id that the broker gave the topic. A broker may not know yet what it has just made."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return str(admin.describe_topics(_named(TOPIC))[TOPIC].result(20).topic_id)
        except KafkaException as error:
            unknown = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            if not unknown or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _named(*topics: str) -> object:
    from confluent_kafka import TopicCollection

    return TopicCollection(list(topics))


def make(world: World) -> None:
    """Rows; a bad record, another that is replayed; a target in quarantine with a spill."""
    row = {"id": 1, "name": "v", "qty": 1, "at": "0000-00-00 00:00:00"}
    types = MYSQL_TYPES | {"at": "datetime"}
    undated = canal("shop.v", "INSERT", [row], mysqlType=types)
    with world.running() as (_, log):
        world.produce(*insert("t", *range(30)), b"{bad", undated, *insert("u", 0))
        log.wait_for("dead_letter", times=2)
    world.configure("")
    with world.running() as (_, log):
        world.command("dead-letters", "replay", "--table", "shop.v", "--execute")
        log.wait_for("written")
    world.sql('CREATE UNIQUE INDEX one_name ON "shop.u" (name)')
    with world.running() as (_, log):
        world.produce(*insert("u", 1, 2))
        log.wait_for("quarantined")
        world.produce(*insert("u", 3, 4), *insert("t", 30))
        log.wait_for("written")


def keep(world: World, to: Path) -> None:
    """What a release leaves behind."""
    shutil.copytree(
        world.folder / "state", to / "state", ignore=shutil.ignore_patterns(*FILES_LEFT_OUT)
    )
    shutil.copyfile(world.folder / "copy.db", to / "copy.db")
    shutil.copyfile(world.config, to / "config.toml")
    lines = [json.dumps(record) + "\n" for record in _records(world)]
    (to / "log.jsonl").write_text("".join(lines))
    (to / "topic-id").write_text(f"{world.topic_id}\n")


def _records(world: World) -> Sequence[dict[str, object]]:
    """Every record with its offset: between them are the ends of transactions."""
    consumer = Consumer({"bootstrap.servers": world.broker.bootstrap, "group.id": "keep"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[dict[str, object]] = []
    while not found or found[-1]["offset"] != world.end() - 1:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        found.append({"offset": message.offset(), "value": message.value().decode()})
    consumer.close()
    return found


def main() -> None:
    """``python -m tests.upgrade.history FOLDER``."""
    to = Path(sys.argv[1])
    to.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder, DevBroker(Path(folder) / "broker") as broker:
        world = World(Path(folder), broker)
        make(world)
        keep(world, to)


if __name__ == "__main__":
    main()
