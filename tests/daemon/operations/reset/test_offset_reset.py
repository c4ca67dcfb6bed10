"""``binlogd offsets reset`` offline: what it says, what it refuses, what is recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.reset import operation
from daemon.operations.reset.offset_reset import move_group, refuse_members
from daemon.state.edits import EditRefused
from daemon.state.offset_file import OffsetFile, lock_state_dir
from daemon.state.offset_stores import make_stores
from demo.broker import DevBroker
from offsets.snapshot import MarkMoves, PartitionState, Snapshot
from offsets.store import StoreError
from sources.base.topic_selection import TopicSelection
from sources.kafka.commit_store import KafkaCommitStore
from sources.opening import open_source
from tests.daemon.state.test_offset_transfer import MESSAGES, World


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """One real Kafka for this file."""
    with DevBroker(tmp_path_factory.mktemp("reset-broker")) as started:
        yield started


@pytest.fixture
def world(broker: DevBroker, tmp_path: Path) -> World:
    """A topic of 20 messages; frontier and group at 8, one target's mark at 7."""
    made = World(tmp_path, broker.bootstrap)
    made.fill()
    OffsetFile(made.state, "shop").save(made.snapshot(8, 8, hwm=7))
    made.commit(8)
    return made


def reset(world: World, *options: str) -> Result:
    config = str(world.folder / "config.toml")
    return CliRunner().invoke(app, ["offsets", "reset", "-c", config, *options])


def committed(world: World) -> int | None:
    settings = {"bootstrap.servers": world.bootstrap}
    store = KafkaCommitStore(settings, TopicSelection((world.topic,)), "shop", world.group, 30.0)
    store.start()
    try:
        found = store.get().snapshot
    finally:
        store.stop()
    return None if found is None else found.partitions[world.source].frontier


def moves(world: World) -> MarkMoves | None:
    recorded = world.recorded()
    assert recorded is not None
    return recorded.targets["lake.s.t"].moves


def state(world: World) -> PartitionState:
    recorded = world.recorded()
    assert recorded is not None
    return recorded.partitions[world.source]


def test_without_execute_it_only_says(world: World) -> None:
    """Each partition and each mark, from and to."""
    done = reset(world, "--to", "earliest")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        f"{world.source}: 8 -> 0, 8 offsets are read again",
        "  the group's commit 8 -> 0",
        "  lake.s.t: mark 7 -> -1, what lies between is applied again",
        "nothing was changed: --execute does it",
    ]
    assert (world.recorded(), committed(world)) == (world.snapshot(8, 8, hwm=7), 8)


def test_with_execute_file_marks_and_group_move(world: World) -> None:
    """The marks are to be moved by the next start; `offsets show` says so."""
    done = reset(world, "--to", "offset", "--at", "3", "--execute")
    assert done.exit_code == 0, done.output
    assert "recorded; the next start moves the targets' marks" in done.stdout
    assert state(world) == PartitionState(3, None, reset=True, reread=20, withdraws=3)
    assert moves(world) == MarkMoves(lower={world.source: 2})
    assert committed(world) == 3
    shown = (
        CliRunner().invoke(app, ["offsets", "show", "-c", str(world.folder / "config.toml")]).stdout
    )
    assert f"{world.source}=7 ({world.source} lowered to 2 at the next start)" in shown


def test_a_timestamp_is_looked_up_in_the_log(world: World) -> None:
    """The first message at or after it; the end where there is none."""
    done = reset(world, "--to", "timestamp", "--at", "2001-01-01T00:00:00Z")
    assert f"{world.source}: 8 -> 0" in done.stdout
    later = datetime.fromtimestamp(time.time() + 3600, UTC).isoformat()
    done = reset(world, "--to", "timestamp", "--at", later)
    assert done.exit_code == 2
    assert f"{world.source}: 8 -> {MESSAGES}" in done.stdout


def test_forward_is_refused_and_can_be_forced(world: World) -> None:
    """The refusal says what would be skipped."""
    done = reset(world, "--to", "latest", "--execute")
    assert done.exit_code == 2
    assert f"refused: {world.source}: 8 -> 20 goes forward" in done.stderr
    assert "--force accepts what is lost" in done.stderr
    assert world.recorded() == world.snapshot(8, 8, hwm=7)
    done = reset(world, "--to", "latest", "--execute", "--force")
    assert done.exit_code == 0, done.output
    assert "warning: " in done.stderr
    assert (state(world).frontier, committed(world)) == (20, 20)
    assert moves(world) == MarkMoves(lift={world.source: 19})


def test_outside_the_log_is_refused_though_forced(world: World) -> None:
    """After retention cut the beginning: both ends are named."""
    client = AdminClient({"bootstrap.servers": world.bootstrap})
    cut = KafkaPartition(world.topic, 0, 5)
    client.delete_records([cut])[cut].result(20)
    done = reset(world, "--to", "offset", "--at", "2", "--execute", "--force")
    assert done.exit_code == 2
    assert f"{world.source}: 2 is outside the log, which holds 5..20" in done.stderr
    assert reset(world, "--to", "earliest").exit_code == 0


def test_a_rewound_group_is_put_back_by_to_frontier(world: World) -> None:
    """No target's mark moves for it."""
    world.commit(2)
    done = reset(world, "--to", "frontier", "--execute")
    assert done.exit_code == 0, done.output
    assert f"{world.source}: 8 -> 8\n  the group's commit 2 -> 8\n" in done.stdout
    assert (committed(world), moves(world)) == (8, None)


def test_what_is_so_already_is_left_alone(world: World) -> None:
    """Neither file nor group is written."""
    done = reset(world, "--to", "frontier", "--execute")
    assert (done.exit_code, done.stdout) == (0, "nothing to do: all is at that position already\n")
    assert world.recorded() == world.snapshot(8, 8, hwm=7)


def test_one_table_goes_back(world: World) -> None:
    """One that is not recorded is named, and can be forced."""
    done = reset(world, "--to", "earliest", "--table", "lake.s.t", "--execute")
    assert done.exit_code == 0, done.output
    again = reset(world, "--to", "earliest", "--table", "lake.s.t", "--execute")
    assert again.exit_code == 2
    assert "an earlier reset of lake.s.t is recorded and not carried out" in again.stderr


def test_an_unknown_table_is_refused(world: World) -> None:
    """The recorded ones are named."""
    done = reset(world, "--to", "earliest", "--table", "lake.s.x")
    assert done.exit_code == 2
    assert "lake.s.x is not recorded (lake.s.t)" in done.stderr


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("orders", "--table: not a target's name, sink.namespace.table: 'orders'"),
        ("laek.s.t", "laek.s.t: its mark can't be moved, for the configuration has no sink 'laek'"),
    ],
)
def test_a_table_that_no_sink_has_is_refused_whatever_is_forced(
    world: World, table: str, said: str
) -> None:
    """The next start could not move its mark, and would end there."""
    done = reset(world, "--to", "earliest", "--table", table, "--force", "--execute")
    assert (done.exit_code, said in done.stderr) == (2, True), done.output
    assert world.recorded() == world.snapshot(8, 8, hwm=7)


def test_a_target_whose_sink_was_taken_out_is_refused(world: World) -> None:
    """It stays recorded, and the next start would end at its mark."""
    gone = replace(world.snapshot(8, 8, hwm=7), targets={})
    mark = world.snapshot(8, hwm=7).targets["lake.s.t"]
    OffsetFile(world.state, "shop").save(replace(gone, targets={"old.s.t": mark}))
    done = reset(world, "--to", "earliest", "--execute")
    assert done.exit_code == 2
    assert "old.s.t: its mark can't be moved" in done.stderr


def test_a_group_with_members_is_refused(world: World) -> None:
    """They would go on from where they are, over marks that were lowered."""
    consumer = joined(world, "classic")
    done = reset(world, "--to", "earliest", "--execute")
    consumer.close()
    assert done.exit_code == 2, done.output
    assert f"group {world.group!r} has members that read (rdkafka at " in done.stderr
    assert world.recorded() == world.snapshot(8, 8, hwm=7)


def test_a_daemon_that_starts_meanwhile_is_an_obstacle(world: World) -> None:
    """It holds the state directory, and does not serve yet."""
    with lock_state_dir(world.state):
        done = reset(world, "--to", "earliest", "--execute")
    assert done.exit_code == 2
    assert "is used by another binlogd" in done.stderr


def test_a_crash_before_the_groups_commit_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file says reset: its frontier is taken though the group's commit is far above."""

    def crash(*_: object) -> None:
        raise StoreError("kafka-commit: gone")

    monkeypatch.setattr(operation, "move_group", crash)
    done = reset(world, "--to", "earliest", "--execute")
    assert done.exit_code == 0
    assert "warning: the group's commit is not moved yet: kafka-commit: gone" in done.stderr
    assert (state(world), committed(world)) == (
        PartitionState(0, None, reset=True, reread=20, withdraws=0),
        8,
    )


@pytest.mark.long
def test_no_broker_no_reset(tmp_path: Path) -> None:
    """Nothing can be said of the log."""
    world = World(tmp_path)
    OffsetFile(world.state, "shop").save(world.snapshot(8))
    done = reset(world, "--to", "earliest", "--execute")
    assert done.exit_code == 2
    assert "no Kafka broker answers" in done.stderr
    assert world.recorded() == world.snapshot(8)


def test_a_topic_made_again_is_refused(world: World) -> None:
    """Its offsets mean other messages: lowered marks would take the old ones' rows."""
    other = world.snapshot(8, 8)
    OffsetFile(world.state, "shop").save(replace(other, topic_ids={world.topic: "another"}))
    done = reset(world, "--to", "earliest", "--execute", "--force")
    assert done.exit_code == 2
    assert "was deleted and recreated" in done.stderr
    assert "name it in `exclude_topics`" in done.stderr


def test_looking_makes_nothing(world: World) -> None:
    """Before the first start there is no state directory, and no member that this one would be."""
    for file in world.state.iterdir():
        file.unlink()
    world.state.rmdir()
    done = reset(world, "--to", "earliest")
    assert done.exit_code == 0, done.output
    assert f"{world.topic}:0: 8 -> 0" in done.stdout
    assert not world.state.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--to", "start"), "--to start: one of earliest, latest, timestamp, offset, frontier"),
        (("--to", "offset"), "--to offset needs --at"),
        (("--to", "earliest", "--at", "3"), "--to earliest takes no --at"),
        (("--to", "offset", "--at", "x"), "--at x: an offset is a number"),
        (("--to", "offset", "--at", "9" * 5000), "of 19 digits at most"),
        (("--to", "timestamp", "--at", "1969-12-31T23:59:59.999Z"), "it is before 1970"),
        (("--to", "timestamp", "--at", "2026-01-01T00:00:00"), "a zone is required"),
        (("--to", "timestamp", "--at", "yesterday"), "--at yesterday"),
        (("--to", "latest", "--topic", "other"), "--topic other: the pipeline reads"),
        (("--to", "latest", "--partition", "4"), "has no partition 4"),
        (("--to", "latest", "--pipeline", "other"), "--pipeline other: unknown"),
    ],
)
def test_a_wish_that_makes_no_sense_is_one_line(
    world: World, options: tuple[str, ...], said: str
) -> None:
    """Status 2, and nothing was touched."""
    done = reset(world, *options, "--execute")
    assert done.exit_code == 2
    assert said in done.stderr
    assert world.recorded() == world.snapshot(8, 8, hwm=7)


def test_a_pipeline_that_remembers_nothing_is_refused(broker: DevBroker, tmp_path: Path) -> None:
    """Its marks are in the targets alone, and nothing could say that they are to be moved."""
    world = World(tmp_path, broker.bootstrap, 'offset_stores = ["kafka-commit"]')
    world.fill()
    done = reset(world, "--to", "earliest", "--execute")
    assert done.exit_code == 2
    assert "no store that keeps a snapshot" in done.stderr


def test_a_shared_topic_records_the_reset_too(broker: DevBroker, tmp_path: Path) -> None:
    """Frontier, its mark of a reset, and the moves come back from the compacted topic."""
    world = World(tmp_path, broker.bootstrap, 'offset_stores = ["kafka-topic", "kafka-commit"]')
    world.fill()
    config = load(world.folder / "config.toml")
    store = make_stores(PipelineConfig(config, "shop"))
    store.start()
    store.set(world.snapshot(8, 8, hwm=7)).result(30)
    store.stop()
    done = reset(world, "--to", "earliest", "--execute")
    assert done.exit_code == 0, done.output
    store = make_stores(PipelineConfig(config, "shop"))
    store.start()
    found = store.get().snapshot
    store.stop()
    assert found is not None
    assert found.partitions[world.source] == PartitionState(
        0, None, reset=True, reread=20, withdraws=0
    )
    assert found.targets["lake.s.t"].moves == MarkMoves(lower={world.source: -1})


def joined(world: World, protocol: str) -> Consumer:
    """A member that has its partitions."""
    settings = {
        "bootstrap.servers": world.bootstrap,
        "group.id": world.group,
        "group.protocol": protocol,
    }
    consumer = Consumer(settings)
    given: list[object] = []
    consumer.subscribe([world.topic], on_assign=lambda c, partitions: given.append(partitions))
    deadline = time.monotonic() + 40
    while not given and time.monotonic() < deadline:
        consumer.poll(0.1)
    assert given
    return consumer


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_either_protocol_are_seen_and_gone_when_they_have_left(
    broker: DevBroker, tmp_path: Path, protocol: str
) -> None:
    """And a group that is empty takes a commit from outside."""
    world = World(tmp_path, broker.bootstrap)
    world.fill()
    config = load(tmp_path / "config.toml")
    source = open_source(config, "shop")
    refuse_members(source, world.group)
    consumer = joined(world, protocol)
    with pytest.raises(EditRefused, match="has members that read"):
        refuse_members(source, world.group)
    refuse_members(source, world.group, own=1)
    consumer.close()
    refuse_members(source, world.group)
    at = {world.source: PartitionState(4, None, reset=True)}
    move_group(PipelineConfig(config, "shop"), Snapshot("shop", world.group, {}, at))
