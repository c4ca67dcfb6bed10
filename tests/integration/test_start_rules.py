"""Rules of the start that need a real broker: what it forgot, moved or cut; who else writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from structlog.testing import capture_logs
from typer.testing import CliRunner

from daemon.admin.logs import set_up_logs
from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.config.pipelines import PipelineSection
from offsets.position import TopicPartition
from offsets.store import Loaded
from settings.exit import Exit
from sources.kafka.start_resolver import PositionResolver
from tests.integration.rig import Rig, canal
from tests.integration.test_group import Log, Member, log  # noqa: F401  # a fixture


def insert(rig: Rig, *keys: int) -> list[bytes]:
    rows = ({"id": key, "name": f"n{key}", "qty": key} for key in keys)
    return [canal(f"{rig.db}.orders", "INSERT", [row]) for row in rows]


def leaving(rig: Rig) -> Path:
    """A daemon that leaves the group at its end, so that others may change what is committed."""
    return rig.write_config(p=rig.pipeline(kafka={"group.instance.id": ""}))


def admin(rig: Rig) -> AdminClient:
    return AdminClient({"bootstrap.servers": rig.broker.bootstrap})


def test_a_commit_that_expired_is_no_matter(rig: Rig) -> None:
    """The broker deletes the offsets of a group that was away for long: the file goes on."""
    rig.produce(*insert(rig, 1, 2))
    rig.run(leaving(rig))
    group = f"g-{rig.db}"
    client = admin(rig)  # without it the answer never comes
    client.delete_consumer_groups([group])[group].result(20)
    rig.produce(*insert(rig, 3))
    assert rig.run() is Exit.OK
    assert rig.events("start_position")[-1]["origin"] == "file"
    assert [row[0] for row in rig.rows("orders")] == [1, 2, 3]


def test_a_commit_above_the_frontier_is_taken_and_told(rig: Rig) -> None:
    """Another member or an operator moved the group on."""
    rig.produce(*insert(rig, 1))
    rig.run(leaving(rig))
    rig.produce(*insert(rig, 2, 3))
    consumer = Consumer({"bootstrap.servers": rig.broker.bootstrap, "group.id": f"g-{rig.db}"})
    consumer.commit(offsets=[KafkaPartition(rig.topic, 0, 2)], asynchronous=False)
    consumer.close()
    assert rig.run() is Exit.OK
    start = rig.events("start_position")[-1]
    assert (start["offset"], start["origin"], start["level"]) == (2, "broker", "warning")
    assert "commit 2 is ahead of the file's 1" in start["remark"]
    assert [row[0] for row in rig.rows("orders")] == [1, 3]


def test_a_log_cut_below_the_frontier_is_refused(rig: Rig) -> None:
    """Retention overtook the reader: both ends are named, nothing is skipped in silence."""
    rig.produce(*insert(rig, 1))
    rig.run()
    rig.produce(*insert(rig, 2, 3))
    cut = KafkaPartition(rig.topic, 0, 2)
    client = admin(rig)  # without it the answer never comes
    client.delete_records([cut])[cut].result(20)
    assert rig.run() is Exit.PIPELINE_FAILED
    assert f"{rig.topic}:0: the position 1 (file) is outside the log" in rig.stderr
    assert "2..3: the changes between are gone" in rig.stderr
    assert rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier == 1


def test_a_partition_first_seen_in_a_topic_that_the_group_reads_is_new(rig: Rig) -> None:
    """A member without a record of the topic gets a partition that was added: ``start = "latest"``
    must not skip what came into it before. Of a group that has read nothing it means what it says.
    """
    topic = f"{rig.topic}-two"
    rig.create_topic(topic, 2)
    rig.produce(*insert(rig, 1, 2), topic=topic, partition=1)
    section = PipelineSection.model_validate(rig.pipeline(topics=[topic], start="latest"))
    settings = {"bootstrap.servers": rig.broker.bootstrap}
    added = TopicPartition(topic, 1)

    def starts() -> dict[TopicPartition, int]:
        resolver = PositionResolver(
            settings, f"g-{rig.db}", section, lambda: Loaded(None), apply_force=False
        )
        return dict(resolver([added]).starts)

    assert starts() == {added: 2}
    consumer = Consumer({**settings, "group.id": f"g-{rig.db}"})
    consumer.commit(offsets=[KafkaPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    with capture_logs() as said:
        assert starts() == {added: 0}
    (event,) = [event for event in said if event["event"] == "start_position"]
    assert (event["origin"], event["log_level"]) == ("new partition", "warning")


def test_both_stores_lost_and_a_start_beyond_the_marks_stops_with_a_way_out(rig: Rig) -> None:
    """The marks say less than where reading would begin; the command that is named mends it."""
    rig.produce(*insert(rig, 1))
    assert rig.run(leaving(rig)) is Exit.OK
    for path in (rig.folder / "state").glob("p.offsets*.json"):
        path.unlink()
    group = f"g-{rig.db}"
    client = admin(rig)  # without it the answer never comes
    client.delete_consumer_groups([group])[group].result(20)
    rig.produce(*insert(rig, 2, 3))
    start = {"at": "offset", "offsets": {f"{rig.topic}:0": 2}}
    config = rig.write_config(p=rig.pipeline(start=start, kafka={"group.instance.id": ""}))
    assert rig.run(config) is Exit.PIPELINE_FAILED
    assert f"holds {rig.topic}:0 through 0, no position is recorded" in rig.stderr
    (event,) = [e for e in rig.events("start_position") if e["level"] == "warning"]
    assert "is passed over" in event["remark"]
    command = re.search(r"`binlogd (offsets reset [^`]*)`", rig.stderr)
    assert command is not None
    words = [*command[1].split(), "--execute", "--config", str(config)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert rig.run(config) is Exit.OK, rig.stderr
    assert [row[0] for row in rig.rows("orders")] == [1, 2, 3]


def patient(rig: Rig, name: str, group: str) -> Path:
    """A daemon that writes when three messages are there, not sooner."""
    text = rig.write_config(**{name: rig.pipeline(group=group)}).read_text()
    text = text.replace("max_age_s = 0.2", "max_age_s = 600\nmax_messages = 3")
    for folder in ("state", "staging"):
        text = text.replace(f"{rig.folder}/{folder}", f"{rig.folder}/{name}/{folder}")
    path = rig.folder / f"{name}.toml"
    path.write_text(text)
    return path


@pytest.mark.timeout(300)
def test_a_daemon_of_another_group_at_the_same_target_is_found_out(
    rig: Rig,
    log: Log,  # noqa: F811
) -> None:
    """Nothing is written twice, and who is overtaken says by how much, and where to look."""
    config = patient(rig, "one", f"g-{rig.db}")
    set_up_logs(load(config).log)
    one = Member(rig, config)
    log.of("one", "assigned")
    rig.produce(*insert(rig, 1, 2, 3))
    log.wait_for("written")
    rig.produce(*insert(rig, 4, 5))
    assert rig.run(patient(rig, "two", f"g2-{rig.db}")) is Exit.OK
    rig.produce(*insert(rig, 6))
    reason = log.of("one", "pipeline_ended")["failure"]
    for part in (f"lane {rig.topic}:0 stands at 4, expected 2", "offsets 3..5", f"g2-{rig.db}@"):
        assert part in reason
    assert one.ended() is Exit.PIPELINE_FAILED
    assert [row[0] for row in rig.rows("orders")] == [1, 2, 3, 4, 5]
