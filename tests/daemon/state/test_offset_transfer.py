"""``binlogd offsets export`` and ``import``: what comes out goes in again, and what is refused."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.state.offset_file import OffsetFile, lock_state_dir
from demo.broker import DevBroker
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from offsets.snapshot_text import encode
from sources.base.port import NotAnswered
from sources.base.topic_selection import TopicSelection
from sources.kafka.commit_store import KafkaCommitStore
from sources.kafka.logs import KafkaLogs

NOWHERE = "127.0.0.1:1"
MESSAGES = 20


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One real Kafka for this file."""
    with DevBroker(tmp_path_factory.mktemp("transfer-broker")) as started:
        yield started


class World:
    """A state directory, a topic's name and a configuration."""

    def __init__(self, folder: Path, bootstrap: str = NOWHERE, stores: str = "") -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.topic = f"shop-{uuid.uuid4().hex[:8]}"
        self.group = f"g-{self.topic}"
        self.state = folder / "var" / "state"
        self.state.mkdir(parents=True)
        self.source = TopicPartition(self.topic, 0)
        (folder / "config.toml").write_text(
            f'[kafka]\nbootstrap.servers = "{bootstrap}"\n[sink.lake]\nkind = "iceberg"\n'
            f'[sink.lake.catalog]\ntype = "jdbc"\n[pipeline.shop]\ntopics = ["{self.topic}"]\n'
            f'format = "canal-json"\ngroup = "{self.group}"\ntarget = "lake.{{database}}.{{table}}"'
            f"\n{stores}\n"
        )

    def fill(self) -> None:
        """Make the topic, with offsets 0 to 19."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result(20)
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for n in range(MESSAGES):
            producer.produce(self.topic, str(n), partition=0)
        assert producer.flush(20) == 0

    def commit(self, at: int) -> None:
        settings = {"bootstrap.servers": self.bootstrap}
        store = KafkaCommitStore(settings, TopicSelection((self.topic,)), "shop", self.group, 30.0)
        store.start()
        batch = Snapshot("shop", self.group, {}, {self.source: PartitionState(at)})
        store.set(batch).result(30)
        store.stop()

    def snapshot(self, frontier: int, confirmed: int | None = None, hwm: int = 3) -> Snapshot:
        return Snapshot(
            "shop", self.group, {}, {self.source: PartitionState(frontier, confirmed)},
            {"lake.s.t": TargetMark("77", {self.source: hwm})},
        )  # fmt: skip

    def recorded(self) -> Snapshot | None:
        return OffsetFile(self.state, "shop").load().snapshot

    def put(self, text: str) -> Result:
        """Import a text."""
        file = self.folder / "in.json"
        file.write_text(text)
        return self.call("import", str(file))

    def call(self, *arguments: str) -> Result:
        config = str(self.folder / "config.toml")
        return CliRunner().invoke(app, ["offsets", *arguments, "--config", config])


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Without a broker: what the file says is all there is."""
    monkeypatch.setattr("sources.kafka.admin.CONNECT_TIMEOUT_S", 0.5)
    return World(tmp_path)


def test_what_is_exported_is_imported_again(alone: World) -> None:
    """Byte for byte; the file before is kept, and what changed is said."""
    OffsetFile(alone.state, "shop").save(alone.snapshot(5))
    exported = alone.call("export", "--pipeline", "shop")
    assert (exported.exit_code, exported.stdout) == (0, encode(alone.snapshot(5)))
    OffsetFile(alone.state, "shop").save(alone.snapshot(9))
    result = alone.put(exported.stdout)
    assert result.exit_code == 0
    assert f"{alone.source}: 9 -> 5\n" in result.stdout
    assert f"kept as {alone.state}/shop.offsets.previous.json" in result.stdout
    assert alone.recorded() == alone.snapshot(5)
    OffsetFile(alone.state, "shop").path.unlink()
    assert alone.recorded() == alone.snapshot(9)


def test_an_edited_file_gets_its_checksum_anew(alone: World) -> None:
    """A person changes a number and needs no tool for the rest."""
    result = alone.put(encode(alone.snapshot(5)).replace('"frontier": 5', '"frontier": 6'))
    assert result.exit_code == 0
    assert f"{alone.source}: nothing -> 6\n" in result.stdout
    assert alone.recorded() == alone.snapshot(6)


def test_a_broker_that_is_away_is_a_warning(alone: World) -> None:
    """The file may be wanted because of just that; what was not looked at is said."""
    result = alone.put(encode(alone.snapshot(5)))
    assert result.exit_code == 0
    assert result.stderr.startswith("binlogd: warning: not compared with the topics: no Kafka")


def test_topics_that_may_not_be_seen_refuse_it(
    alone: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker is there: what could not be looked at is no reason to go on."""

    def refused(_: KafkaLogs) -> dict[str, str]:
        raise NotAnswered("topic 't': no right to describe it", away=False)

    monkeypatch.setattr(KafkaLogs, "topic_ids", refused)
    result = alone.put(encode(alone.snapshot(5)))
    assert result.exit_code == 2
    assert "no right to describe it" in result.stderr
    assert not OffsetFile(alone.state, "shop").path.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version 2, this binlogd reads 1"),
        ({"body": {"group": "other"}}, "it is of group 'other'; pipeline shop is group 'g-shop-"),
        ({"body": {"pipeline": "x"}}, "it is of pipeline 'x'; the configuration has: shop"),
        ({"body": {"partitions": {"t:0": 5}}}, "a member is missing, unknown or has the wrong ty"),
    ],
)
def test_a_file_that_is_not_this_pipelines_is_refused(
    alone: World, change: dict[str, Any], said: str
) -> None:
    """Status 2, one line with the file's name, and nothing is touched."""
    OffsetFile(alone.state, "shop").save(alone.snapshot(9))
    document = json.loads(encode(alone.snapshot(5)))
    body = document["body"] | change.get("body", {})
    result = alone.put(json.dumps(document | change | {"body": body}))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"binlogd: {alone.folder}/in.json: {said}")
    assert alone.recorded() == alone.snapshot(9)


def test_a_running_daemon_refuses_an_import(alone: World) -> None:
    """It would write over it within seconds."""
    with lock_state_dir(alone.state):
        result = alone.put(encode(alone.snapshot(5)))
    assert result.exit_code == 2
    assert "is used by another binlogd" in result.stderr
    assert "an import is for a stopped daemon" in result.stderr
    assert alone.recorded() is None


def test_stores_that_keep_no_snapshot_refuse_an_import(tmp_path: Path) -> None:
    """The group's commit alone has a command of its own."""
    world = World(tmp_path, stores='offset_stores = ["kafka-commit"]')
    result = world.put(encode(world.snapshot(5)))
    assert result.exit_code == 2
    assert "has no store that keeps a snapshot" in result.stderr


def test_a_disk_that_is_full_is_status_1(alone: World) -> None:
    """It may have begun to write: not the same as refused."""
    (alone.state / "shop.offsets.json.new").mkdir()
    result = alone.put(encode(alone.snapshot(5)))
    assert (result.exit_code, "binlogd: file: " in result.stderr) == (1, True)


def test_nothing_recorded_is_status_1(alone: World) -> None:
    """A script must not take an empty file for an export."""
    result = alone.call("export")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "binlogd: pipeline shop: nothing recorded\n"


def test_an_unknown_pipeline_is_named(alone: World) -> None:
    """With those that are known."""
    result = alone.call("export", "--pipeline", "x")
    expected = "binlogd: --pipeline x: unknown; the configuration has: shop\n"
    assert (result.exit_code, result.stderr) == (2, expected)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("frontier", "confirmed", "committed", "said"),
    [
        (21, None, None, "the position 21 (file) is outside the log, which holds 0..20"),
        (5, None, 8, "a start would read from 8. `binlogd offsets reset` moves the group as well"),
        (9, 9, 4, "the group was rewound: the broker's commit is 4"),
    ],
)
def test_what_the_next_start_would_not_follow_is_refused(
    broker: DevBroker, tmp_path: Path, frontier: int, confirmed: int, committed: int, said: str
) -> None:
    """Better now, with nothing written, than at the start."""
    world = World(tmp_path, broker.bootstrap)
    world.fill()
    if committed is not None:
        world.commit(committed)
    result = world.put(encode(world.snapshot(frontier, confirmed)))
    assert result.exit_code == 2
    assert said in result.stderr
    assert world.recorded() is None


@pytest.mark.integration
def test_marks_beyond_the_log_and_other_topics_are_refused(
    broker: DevBroker, tmp_path: Path
) -> None:
    """Such marks would drop new changes as old ones."""
    world = World(tmp_path, broker.bootstrap)
    world.fill()
    result = world.put(encode(world.snapshot(5, hwm=30)))
    assert "lake.s.t holds changes up to 30, but the log ends at 20" in result.stderr
    strange = Snapshot("shop", world.group, {world.topic: "another"}, {})
    result = world.put(encode(strange))
    assert "was deleted and recreated since the last run" in result.stderr
    assert (result.exit_code, world.recorded()) == (2, None)


@pytest.mark.integration
def test_a_topic_is_exported_and_imported_too(broker: DevBroker, tmp_path: Path) -> None:
    """Positions move from one store to another, or to a new cluster's topic."""
    topic = f"offsets-{uuid.uuid4().hex[:8]}"
    stores = f'offset_stores = ["kafka-topic", "kafka-commit"]\noffset_topic = "{topic}"'
    world = World(tmp_path, broker.bootstrap, stores)
    world.fill()
    result = world.put(encode(world.snapshot(5)))
    assert (result.exit_code, world.recorded()) == (0, None)
    assert world.call("export").stdout == encode(world.snapshot(5))
    assert f"{world.source}  5" in " ".join(world.call("show").stdout.split("\n"))
