"""Bad input: one clear line saying what and where, and nothing of what came before it is lost."""

from __future__ import annotations

import pytest

from daemon.app.startup import Unusable
from offsets.position import TopicPartition
from settings.exit import Exit
from tests.integration.rig import Rig, canal, ddl


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"\xff\xfe garbage", "not a Canal message"),
        (b'{"database": "x"', "not a Canal message"),
        (b'{"type": "INSERT", "database": "{db}"}', "table"),
        (None, "orders"),
    ],
    ids=["bytes", "json", "table", "key"],
)
def test_a_bad_record_stops_its_pipeline_with_its_place(
    rig: Rig, bad: bytes | None, reason: str
) -> None:
    """What came before it is applied and committed up to it; it is named by its place."""
    t = f"{rig.db}.orders"
    if bad is None:
        bad = canal(t, "INSERT", [{"name": "no key"}])
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        bad.replace(b"{db}", rig.db.encode()),
        canal(t, "INSERT", [{"id": 2, "name": "b", "qty": 2}]),
    )
    assert rig.run() is Exit.PIPELINE_FAILED
    assert f"p: {rig.topic}:0 offset 1: " in rig.stderr
    assert reason in rig.stderr
    assert len(rig.stderr.splitlines()) == 1
    assert rig.rows("orders") == [(1, "a", 1)]
    assert rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier == 1


def test_a_value_that_does_not_fit_names_table_column_and_value(rig: Rig) -> None:
    """A declared type may contradict the data; nothing is rounded or guessed."""
    t = f"{rig.db}.orders"
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(t, "INSERT", [{"id": "A101", "name": "b", "qty": 2}]),
    )
    assert rig.run() is Exit.PIPELINE_FAILED
    for part in (f"{rig.topic}:0 offset 1", f"{rig.db}.orders", "id", "A101", "int(11)"):
        assert part in rig.stderr
    assert rig.rows("orders") == [(1, "a", 1)]


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("RENAME", "RENAME TABLE orders TO elsewhere.orders"),
        ("ALTER", "ALTER TABLE orders DROP PRIMARY KEY"),
        ("ALTER", "ALTER TABLE orders TRUNCATE PARTITION p0"),
    ],
)
def test_a_ddl_that_is_not_followed_stops_the_pipeline(rig: Rig, kind: str, sql: str) -> None:
    """Never ignored: table and offset are named, what came before is written."""
    t = f"{rig.db}.orders"
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        ddl(t, kind, sql),
        canal(t, "INSERT", [{"id": 2, "name": "b", "qty": 2}]),
    )
    assert rig.run() is Exit.PIPELINE_FAILED
    assert f"{rig.topic}:0 offset 1: {rig.db}." in rig.stderr
    assert "orders" in rig.stderr
    assert sql in rig.stderr
    assert rig.rows("orders") == [(1, "a", 1)]


def test_a_bad_pipeline_leaves_the_other_one_running(rig: Rig) -> None:
    """The other ends caught up; the process says that one failed."""
    other = f"{rig.topic}-other"
    rig.create_topic(other)
    rig.produce(b"garbage")
    rig.produce(
        canal(f"{rig.db}b.orders", "INSERT", [{"id": 1, "name": "a", "qty": 1}]), topic=other
    )
    config = rig.write_config(
        bad=rig.pipeline(),
        good=rig.pipeline(topics=[other], group=f"g2-{rig.db}", include=[f"{rig.db}b.*"]),
    )
    assert rig.run(config) is Exit.PIPELINE_FAILED
    ended = {event["pipeline"]: event.get("failure") for event in rig.events("pipeline_ended")}
    assert ended["good"] is None
    assert "offset 0" in ended["bad"]


def test_a_bad_record_put_right_by_another_table_goes_on_after_the_restart(rig: Rig) -> None:
    """With the table excluded the same log goes on from the same place; nothing is lost."""
    rig.produce(
        canal(f"{rig.db}.good", "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(f"{rig.db}.bad", "INSERT", [{"name": "no key"}]),
        canal(f"{rig.db}.good", "INSERT", [{"id": 2, "name": "b", "qty": 2}]),
    )
    assert rig.run() is Exit.PIPELINE_FAILED
    config = rig.write_config(p=rig.pipeline(exclude=[f"{rig.db}.bad"]))
    assert rig.run(config) is Exit.OK
    assert rig.rows("good") == [(1, "a", 1), (2, "b", 2)]


def test_a_topic_that_is_not_there_is_named(rig: Rig) -> None:
    """Nothing is started."""
    config = rig.write_config(p=rig.pipeline(topics=["no-such-topic"]))
    with pytest.raises(Unusable, match="no-such-topic"):
        rig.run(config)


def test_a_topic_made_again_is_refused(rig: Rig) -> None:
    """Its offsets mean other messages now: only the topic's id tells."""
    message = canal(f"{rig.db}.orders", "INSERT", [{"id": 1, "name": "a", "qty": 1}])
    rig.produce(message, message)
    rig.run()
    rig.make_again(rig.topic)
    rig.produce(message, message, message)
    with pytest.raises(Unusable, match="deleted and recreated"):
        rig.run()


def test_a_position_outside_the_log_names_both(rig: Rig) -> None:
    """The recorded position is beyond the log's end: an error, never a silent reset."""
    rig.produce(canal(f"{rig.db}.orders", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    start = {"at": "offset", "offsets": {f"{rig.topic}:0": 77}}
    assert rig.run(rig.write_config(p=rig.pipeline(start=start))) is Exit.PIPELINE_FAILED
    assert "position 77" in rig.stderr
    assert "0..1" in rig.stderr


def test_a_forced_start_works_once_for_each_text(rig: Rig) -> None:
    """Forced back to the start, the targets' marks drop what they have; then file rules again."""
    rig.produce(canal(f"{rig.db}.orders", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    rig.run()
    config = rig.write_config(p=rig.pipeline(start={"at": "earliest", "force": "again-1"}))
    origins = []
    for _ in range(2):
        rig.run(config)
        origins.append(rig.events("start_position")[-1]["origin"])
    assert origins == ["configured: earliest", "file"]
    assert rig.rows("orders") == [(1, "a", 1)]


def test_a_rewound_group_is_refused_with_the_hint(rig: Rig) -> None:
    """The group alone can't be rewound: the targets' marks would skip what is read again."""
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as KafkaPartition

    message = canal(f"{rig.db}.orders", "INSERT", [{"id": 1, "name": "a", "qty": 1}])
    rig.produce(message, message)
    # A member that leaves at its end: only then may others commit.
    rig.run(rig.write_config(p=rig.pipeline(kafka={"group.instance.id": ""})))
    consumer = Consumer({"bootstrap.servers": rig.broker.bootstrap, "group.id": f"g-{rig.db}"})
    consumer.commit(offsets=[KafkaPartition(rig.topic, 0, 1)], asynchronous=False)
    consumer.close()
    assert rig.run() is Exit.PIPELINE_FAILED
    assert "rewound" in rig.stderr
    assert f"`binlogd offsets reset --topic {rig.topic} --partition 0`" in rig.stderr


def test_rows_with_keys_in_two_partitions_are_refused_by_name(rig: Rig) -> None:
    """Partitions have no order between them: which update is newer would be a guess."""
    two = f"{rig.topic}-two"
    rig.create_topic(two)
    message = canal(f"{rig.db}.orders", "INSERT", [{"id": 1, "name": "a", "qty": 1}])
    rig.produce(message)
    rig.produce(message, topic=two)
    config = rig.write_config(p=rig.pipeline(topics=[rig.topic, two]))
    assert rig.run(config) is Exit.PIPELINE_FAILED
    assert f"lake.{rig.db}.orders already holds changes of" in rig.stderr
