"""``binlogd offsets where`` on a real broker: what makes a message look applied that is not."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.state.dead_letters.files import FileLetters, add_mark, letters_path
from daemon.state.offset_file import OffsetFile
from demo.broker import DevBroker
from demo.produce import create_topic
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from sources.base.letter import LetterId, Mark
from sources.kafka.topics import KafkaTopics
from tests.daemon.state.dead_letters.letters import ROW, dead, maker

TARGET = "lake.db.t"


class World:
    """A topic of four records, of which by the record all are applied."""

    def __init__(self, folder: Path, broker: DevBroker) -> None:
        self.config, self.state = folder / "config.toml", folder / "state"
        self.broker, self.topic = broker.bootstrap, f"where-{uuid.uuid4().hex[:8]}"
        self.source = TopicPartition(self.topic, 0)
        self.config.write_text(
            f'[daemon]\nstate_dir = "state"\n[kafka]\nbootstrap.servers = "{self.broker}"\n'
            '[sink.lake]\nkind = "sqlite"\npath = "lake.db"\n'
            f'[pipeline.p]\ntopics = ["{self.topic}"]\nformat = "canal-json"\n'
            'target = "lake.{database}.{table}"\ninclude = ["db.*"]\n'
            '[pipeline.other]\ntopics = ["others"]\nformat = "canal-json"\n'
            'target = "lake.{database}.{table}"\ninclude = ["others.*"]\n'
        )
        self.state.mkdir()
        self.fill()

    def fill(self) -> None:
        create_topic(self.broker, self.topic)
        producer = Producer({"bootstrap.servers": self.broker})
        for _ in range(4):
            producer.produce(self.topic, ROW, partition=0)
        assert producer.flush(20) == 0

    def record(self, frontier: int = 4) -> None:
        id_ = KafkaTopics({"bootstrap.servers": self.broker}).log(self.topic).describe()[0]
        OffsetFile(self.state, "p").save(
            Snapshot(
                "p", "binlogd-p", {self.topic: id_}, {self.source: PartitionState(frontier)},
                {TARGET: TargetMark("1", {self.source: frontier - 1})},
            )
        )  # fmt: skip

    def where(self, offset: int, *more: str) -> Result:
        words = ("offsets", "where", f"{self.topic}:0:{offset}", *more, "-c", str(self.config))
        return CliRunner().invoke(app, words)

    def stages(self, offset: int) -> tuple[int, list[str], str]:
        done = self.where(offset, "--json")
        return (
            done.exit_code,
            [each["stage"] for each in json.loads(done.stdout)["targets"]],
            done.stderr,
        )

    def letter_id(self, offset: int) -> LetterId:
        return LetterId("p", self.source, offset, TARGET)


@pytest.fixture
def world(tmp_path: Path, store_broker: DevBroker) -> World:
    made = World(tmp_path, store_broker)
    made.record()
    return made


def test_a_letter_that_was_removed_is_known_by_its_mark(world: World) -> None:
    """Discarded, then removed by its age: its row is still missing, and the marks beyond it."""
    assert world.stages(2) == (0, ["applied"], "")
    add_mark(world.state, Mark.now(world.letter_id(2), None))
    add_mark(world.state, Mark.now(world.letter_id(3), f"{world.topic}:0:9"))
    assert world.stages(2) == (1, ["dead letter"], "")
    assert world.stages(3) == (0, ["dead letter"], "")
    assert world.stages(1) == (0, ["applied"], "")


def test_a_damaged_letter_is_told(world: World) -> None:
    """It may be the one of this message."""
    FileLetters(world.state, "p", maker()).keep(dead(2))
    with letters_path(world.state, "p").open("ab") as file:
        file.write(b'{"offset": 2, "crc32": 1}\n')
    assert world.stages(2)[2].endswith("p.dead-letters.jsonl:2: is damaged\n")


def test_a_topic_that_was_made_again_holds_other_messages(world: World) -> None:
    admin = AdminClient({"bootstrap.servers": world.broker})
    admin.delete_topics([world.topic])[world.topic].result(20)
    while world.topic in admin.list_topics(timeout=20).topics:
        admin.poll(0.05)
    world.fill()
    done = world.where(2)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "was deleted and recreated since the last run" in done.stderr


def test_a_log_that_ends_below_what_is_recorded_holds_other_messages(world: World) -> None:
    """It was cut, or restored from a copy."""
    world.record(frontier=9)
    done = world.where(2)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "ends at 4, the committed position is 9: the log was cut or replaced" in done.stderr


def test_a_pipeline_that_does_not_read_the_topic_is_refused(world: World) -> None:
    """Its targets would wait for ever."""
    done = world.where(2, "--pipeline", "other")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"pipeline other does not read '{world.topic}'" in done.stderr
