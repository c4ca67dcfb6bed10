"""Poison records on the real broker: stored and passed over, in a file or in a topic."""

from __future__ import annotations

import json
import shlex
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

from daemon.admin.logs import set_up_logs
from daemon.app.startup import Unusable
from daemon.cli.__main__ import app
from daemon.config.file import load
from offsets.position import TopicPartition
from settings.exit import Exit
from tests.integration.rig import MYSQL_TYPES, Rig, canal
from tests.integration.test_group import Log, Member

pytestmark = pytest.mark.long


def poisoned(rig: Rig) -> None:
    """Good rows with a record without a key and one that is no message between them."""
    t = f"{rig.db}.orders"
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(t, "INSERT", [{"name": "no key"}]),
        b"garbage",
        canal(t, "INSERT", [{"id": 2, "name": "b", "qty": 2}]),
    )


def letters(rig: Rig) -> list[dict[str, Any]]:
    path = rig.folder / "state" / "p.dead-letters.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_poison_records_are_stored_and_the_rest_goes_on(rig: Rig) -> None:
    """Those that name no table too; the frontier is behind all of them."""
    poisoned(rig)
    config = rig.write_config(p=rig.pipeline(on_bad_record="dead-letter"))
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1), (2, "b", 2)]
    assert sorted(letter["offset"] for letter in letters(rig)) == [1, 2]
    assert rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier == 4


def test_poison_records_go_to_a_topic_as_they_were(rig: Rig) -> None:
    """With their place and the reason as headers."""
    poisoned(rig)
    topic = f"{rig.topic}-dead"
    rig.create_topic(topic)
    config = rig.write_config(
        p=rig.pipeline(on_bad_record="dead-letter", dead_letters=f"topic:{topic}")
    )
    assert rig.run(config) is Exit.OK
    consumer = Consumer({"bootstrap.servers": rig.broker.bootstrap, "group.id": "reads-letters"})
    consumer.assign([KafkaPartition(topic, 0, 0)])
    found = consumer.consume(2, 20)
    consumer.close()
    by_offset = {dict(m.headers() or ())["binlogd.offset"]: m for m in found}
    assert by_offset.keys() == {b"1", b"2"}
    assert by_offset[b"2"].value() == b"garbage"
    assert b"not a Canal message" in dict(by_offset[b"2"].headers() or ())["binlogd.error"]


def test_too_many_bad_records_stop_the_pipeline(rig: Rig) -> None:
    """And nothing passes the one that was too many; a restart does not begin to count anew."""
    rig.produce(*[b"garbage"] * 5)
    section = rig.pipeline(on_bad_record="dead-letter", max_bad_records_per_hour=3)
    config = rig.write_config(p=section)
    for _ in range(2):
        assert rig.run(config) is Exit.PIPELINE_FAILED
        assert "too many bad records: more than 3 within an hour" in rig.stderr
        assert len(letters(rig)) == 3
        assert rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier == 3


def test_a_store_that_fails_stops_the_pipeline_and_nothing_is_lost(rig: Rig) -> None:
    """Named; when it is well again the record is stored, and what follows is applied."""
    poisoned(rig)
    path = rig.folder / "state" / "p.dead-letters.jsonl"
    path.parent.mkdir()
    path.symlink_to(rig.folder / "missing" / "file")
    config = rig.write_config(p=rig.pipeline(on_bad_record="dead-letter", dead_letter_retry_s=0.5))
    assert rig.run(config) is Exit.PIPELINE_FAILED
    assert "the dead-letter store has taken nothing for" in rig.stderr
    assert f"{path}: No such file or directory" in rig.stderr
    assert rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier == 1
    path.unlink()
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1), (2, "b", 2)]
    assert sorted(letter["offset"] for letter in letters(rig)) == [1, 2]


def test_a_store_that_can_not_be_opened_keeps_the_daemon_from_starting(rig: Rig) -> None:
    """A topic in which letters would replace each other."""
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    made = NewTopic(f"{rig.topic}-dead", 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([made])[made.topic].result(20)
    section = rig.pipeline(on_bad_record="dead-letter", dead_letters=f"topic:{rig.topic}-dead")
    with pytest.raises(Unusable, match=r"^pipeline\.p\.dead_letters: topic .* cleanup\.policy"):
        rig.run(rig.write_config(p=section))


def order(rig: Rig, key: int, kind: str = "INSERT", day: str = "2026-01-02") -> bytes:
    row = {"id": key, "name": "a", "qty": key, "day": day}
    return canal(f"{rig.db}.orders", kind, [row], mysqlType=MYSQL_TYPES | {"day": "date"})


def commands(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["dead-letters", *arguments, "--config", str(config)])


GOOD_DAY = date(2026, 1, 2)


@pytest.mark.parametrize("store", ["file", "topic"])
def test_a_letter_is_replayed_after_a_fix(rig: Rig, store: str) -> None:
    """The others went on; then the table is as if the record had never been bad."""
    rig.produce(
        order(rig, 1), order(rig, 2, day="0000-00-00"), order(rig, 3), order(rig, 1, "DELETE")
    )
    where = "file" if store == "file" else f"topic:{rig.topic}-dead"
    bad = rig.pipeline(on_bad_record="dead-letter", dead_letters=where, zero_dates="error")
    config = rig.write_config(p=bad)
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(3, "a", 3, GOOD_DAY)]
    refused = commands(config, "replay", "--all", "--execute")
    assert refused.exit_code == 2
    assert "it can't be applied yet" in refused.stderr
    rig.write_config(p=bad | {"zero_dates": "null"})
    done = commands(config, "replay", "--all", "--execute")
    assert (done.exit_code, done.stderr) == (0, "")
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(2, "a", 2, None), (3, "a", 3, GOOD_DAY)]
    assert commands(config, "replay", "--all", "--execute").exit_code == 2


def test_a_letter_that_may_not_be_replayed_is_read_again_in_its_order(rig: Rig) -> None:
    """By the command that the refusal names: a later change of one column stays."""
    t = f"{rig.db}.orders"
    rig.produce(
        order(rig, 1), order(rig, 1, "UPDATE", "0000-00-00"), order(rig, 2),
        canal(t, "UPDATE", [{"id": 1, "qty": 5}], old=[{"qty": 1}]),
    )  # fmt: skip
    bad = rig.pipeline(on_bad_record="dead-letter", zero_dates="error")
    config = rig.write_config(p=bad)
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(1, "a", 5, GOOD_DAY), (2, "a", 2, GOOD_DAY)]
    rig.write_config(p=bad | {"zero_dates": "null"})
    refused = commands(config, "replay", "--all", "--execute")
    assert refused.exit_code == 2
    assert "its row 1 changed since, offset 3" in refused.stderr
    named = shlex.split(refused.stderr.splitlines()[-1])[2:]
    assert named[:2] == ["offsets", "reset"]
    reset = CliRunner().invoke(app, [*named, "--execute", "--config", str(config)])
    assert reset.exit_code == 0, reset.output
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(1, "a", 5, None), (2, "a", 2, GOOD_DAY)]


@pytest.mark.timeout(300)
def test_a_letter_is_replayed_while_the_daemon_runs(rig: Rig) -> None:
    """Its record goes the way of any other; letters are listed meanwhile, too."""
    rig.produce(order(rig, 2, day="0000-00-00"), order(rig, 3))
    bad = rig.pipeline(on_bad_record="dead-letter", zero_dates="error")
    assert rig.run(rig.write_config(p=bad)) is Exit.OK
    config = rig.write_config(p=bad | {"zero_dates": "null"})
    log = Log(rig.log_file)
    set_up_logs(load(config).log)
    member = Member(rig, config)
    try:
        log.wait_for("written")  # by the first run
        log.of("p", "assigned")
        assert "1 dead letter" in commands(config, "list", "--state", "open").stdout
        assert commands(config, "replay", "--all", "--execute").exit_code == 0
        log.wait_for("written")
    finally:
        assert member.stop() is Exit.OK
        log.close()
    assert rig.rows("orders") == [(2, "a", 2, None), (3, "a", 3, GOOD_DAY)]
    assert "1 dead letter" in commands(config, "list", "--state", "replayed").stdout
