"""Positions are reset on real tables: what is read again is applied once, whatever breaks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from typer.testing import CliRunner, Result

from actors.contract.ports import ResettableSink
from actors.contract.writes import TargetState
from changes.model.model import TargetName
from daemon.admin.logs import set_up_logs
from daemon.app.progress import Quiet
from daemon.app.service import Service
from daemon.app.startup import Unusable
from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.state.offset_file import OffsetFile
from offsets.position import TopicPartition
from offsets.snapshot import MarkMoves
from settings.exit import Exit
from sparkwriter.iceberg.sink import IcebergWriter
from tests.integration.rig import Rig, SharedSpark, canal
from tests.integration.test_group import Log, Member

pytestmark = pytest.mark.long

ROWS = [(1, "b", 2), (3, "c", 3)]
"""The keyed table after the first four messages."""


@pytest.fixture
def log(rig: Rig) -> Iterator[Log]:
    made = Log(rig.log_file)
    yield made
    made.close()


def config(rig: Rig, static: bool = False, **more: Any) -> Path:
    """A keyed table, and a changelog of all tables.

    A static member counts for a while after its end: the group takes a commit only as its.
    """
    member = {} if static else {"kafka": {"group.instance.id": ""}}
    routes = [
        {"target": f"lake.{rig.db}.{{table}}"},
        {"target": f"lake.{rig.db}.log", "mode": "append"},
    ]
    return rig.write_config(p=rig.pipeline(target=None, route=routes, **member), **more)


def other_pipeline(rig: Rig) -> dict[str, Any]:
    rig.create_topic(f"{rig.topic}-q")
    more = {"include": ["elsewhere.*"], "target": "lake.{database}.{table}"}
    return rig.pipeline(topics=[f"{rig.topic}-q"], group=f"q-{rig.db}", **more)


def change(rig: Rig, kind: str, key: int, name: str = "", **more: Any) -> bytes:
    return canal(f"{rig.db}.orders", kind, [{"id": key, "name": name, "qty": key}], **more)


def first_four(rig: Rig) -> None:
    """Inserts, an update and a delete."""
    rig.produce(
        change(rig, "INSERT", 1, "a"),
        canal(f"{rig.db}.orders", "INSERT", [{"id": 2, "name": "x", "qty": 2},
                                             {"id": 3, "name": "c", "qty": 3}]),
        canal(f"{rig.db}.orders", "UPDATE", [{"id": 1, "name": "b", "qty": 2}],
              old=[{"name": "a", "qty": 1}]),
        change(rig, "DELETE", 2, "x"),
    )  # fmt: skip


def offsets(rig: Rig) -> list[int]:
    """Of the changelog's rows, one for each message and row."""
    rows = rig.spark.sql(f"SELECT _offset, _index FROM lake.`{rig.db}`.log ORDER BY 1, 2")
    return [row[0] for row in rows.collect()]


ONCE = [0, 1, 1, 2, 3]


def reset(path: Path, *options: str) -> Result:
    done = CliRunner().invoke(
        app, ["offsets", "reset", "-c", str(path), "--pipeline", "p", *options]
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def spoil(rig: Rig) -> None:
    """Somebody has lost rows of the keyed table: reading again is to bring them back."""
    rig.spark.sql(f"DELETE FROM lake.`{rig.db}`.orders WHERE id = 3")


@pytest.mark.timeout(300)
def test_back_to_the_earliest_with_the_daemon_stopped(rig: Rig) -> None:
    """Rows come back, deleted ones stay away, the changelog has each change once."""
    first_four(rig)
    assert rig.run(config(rig, static=True)) is Exit.OK
    assert (rig.rows("orders"), offsets(rig)) == (ROWS, ONCE)
    spoil(rig)
    done = reset(config(rig, static=True), "--to", "earliest", "--execute")
    assert done.exit_code == 0, done.output
    assert "warning" not in done.output  # the group took the commit, as that of the member
    assert rig.run(config(rig, static=True)) is Exit.OK
    assert (rig.rows("orders"), offsets(rig)) == (ROWS, ONCE)
    assert rig.events("start_position")[-1]["offset"] == 0
    state = rig.snapshot().partitions[TopicPartition(rig.topic, 0)]
    assert (state.frontier, state.reset) == (4, False)  # confirmed: the group's word counts again
    assert all(mark.moves is None for mark in rig.snapshot().targets.values())


def until_recorded(rig: Rig, frontier: int) -> None:
    """Until all below that offset is written, and the offset file says so."""
    file, end = OffsetFile(rig.folder / "state", "p"), time.monotonic() + 90
    source = TopicPartition(rig.topic, 0)
    while (found := file.load().snapshot) is None or (
        source not in found.partitions or found.partitions[source].frontier != frontier
    ):
        assert time.monotonic() < end, found
        threading.Event().wait(0.1)


@pytest.mark.timeout(300)
def test_back_on_the_running_daemon(rig: Rig, log: Log) -> None:
    """Another pipeline of it goes on, and so does the session."""
    path = config(rig, static=True, q=other_pipeline(rig))
    set_up_logs(load(path).log)
    first_four(rig)
    member = Member(rig, path)
    log.of("p", "assigned")
    until_recorded(rig, 4)
    spoil(rig)
    dry = reset(path, "--to", "earliest")
    assert "what lies between is applied again" in dry.stdout
    done = reset(path, "--to", "earliest", "--execute")
    assert done.exit_code == 0, done.output
    assert f"lake.{rig.db}.log: mark 3 -> -1" in done.stdout
    assert "done; pipeline p runs again" in done.stdout
    rig.produce(change(rig, "INSERT", 4, "d"))
    log.of("p", "assigned", start=0)
    until_recorded(rig, 5)
    assert member.stop() is Exit.OK
    assert (rig.rows("orders"), offsets(rig)) == ([*ROWS, (4, "d", 4)], [*ONCE, 4])
    assert [event["pipeline"] for event in rig.events("assigned")].count("q") == 1


@pytest.mark.timeout(300)
def test_back_to_a_timestamp(rig: Rig) -> None:
    """Only what came since is applied again."""
    first_four(rig)
    assert rig.run(config(rig)) is Exit.OK
    since = datetime.fromtimestamp(time.time(), UTC).isoformat()
    rig.produce(change(rig, "INSERT", 4, "d"), change(rig, "INSERT", 5, "e"))
    assert rig.run(config(rig)) is Exit.OK
    done = reset(config(rig), "--to", "timestamp", "--at", since, "--execute")
    assert f"{rig.topic}:0: 6 -> 4" in done.stdout
    rig.spark.sql(f"DELETE FROM lake.`{rig.db}`.orders WHERE id IN (3, 5)")
    assert rig.run(config(rig)) is Exit.OK
    assert rig.rows("orders") == [(1, "b", 2), (4, "d", 4), (5, "e", 5)]
    assert offsets(rig) == [*ONCE, 4, 5]


@pytest.mark.timeout(300)
def test_one_table_goes_back_and_the_other_drops_what_comes_again(rig: Rig) -> None:
    """The changelog is not touched at all."""
    first_four(rig)
    assert rig.run(config(rig)) is Exit.OK
    spoil(rig)
    version = rig.version("log")
    target = f"lake.{rig.db}.orders"
    done = reset(config(rig), "--to", "earliest", "--table", target, "--execute")
    assert done.exit_code == 0, done.output
    assert rig.run(config(rig)) is Exit.OK
    assert (rig.rows("orders"), offsets(rig), rig.version("log")) == (ROWS, ONCE, version)


@pytest.mark.timeout(300)
def test_forward_is_refused_and_forced_skips_for_good(rig: Rig) -> None:
    """Not even reading again without a file brings back what was skipped."""
    first_four(rig)
    assert rig.run(config(rig)) is Exit.OK
    rig.produce(change(rig, "INSERT", 4, "d"), change(rig, "INSERT", 5, "e"))
    assert reset(config(rig), "--to", "latest", "--execute").exit_code == 2
    assert reset(config(rig), "--to", "latest", "--execute", "--force").exit_code == 0
    rig.produce(change(rig, "INSERT", 6, "f"))
    assert rig.run(config(rig)) is Exit.OK
    assert (rig.rows("orders"), offsets(rig)) == ([*ROWS, (6, "f", 6)], [*ONCE, 6])
    for file in (rig.folder / "state").glob("p.offsets*"):
        file.unlink()
    rewind_group(rig, 0)
    assert rig.run(config(rig)) is Exit.OK
    assert (rig.rows("orders"), offsets(rig)) == ([*ROWS, (6, "f", 6)], [*ONCE, 6])


def rewind_group(rig: Rig, to: int) -> None:
    consumer = Consumer({"bootstrap.servers": rig.broker.bootstrap, "group.id": f"g-{rig.db}"})
    consumer.commit(offsets=[KafkaPartition(rig.topic, 0, to)], asynchronous=False)
    consumer.close()


@pytest.mark.timeout(300)
def test_a_pipeline_that_was_refused_is_reset_while_the_other_runs(rig: Rig, log: Log) -> None:
    """Somebody rewound its group: the hint's command puts it right, in the same process."""
    first_four(rig)
    assert rig.run(config(rig)) is Exit.OK
    rewind_group(rig, 1)
    path = config(rig, q=other_pipeline(rig))
    member = Member(rig, path)
    failure = log.of("p", "pipeline_failed")["reason"]
    log.of("p", "pipeline_ended")
    command = f"`binlogd offsets reset --topic {rig.topic} --partition 0`"
    assert command in failure
    done = reset(
        path, "--topic", rig.topic, "--partition", "0", "--to", "offset", "--at", "1", "--execute"
    )
    assert done.exit_code == 0, done.output
    log.of("p", "assigned", start=1)
    log.wait_for("written")
    assert member.stop() is Exit.OK
    assert (rig.rows("orders"), offsets(rig)) == (ROWS, ONCE)


class Crash(Exception):
    """The process ends here."""


class Crashing(SharedSpark):
    """The process ends behind the moved marks of the n-th target."""

    def __init__(self, rig: Rig, after: int) -> None:
        super().__init__(rig.spark)
        self.left = after

    def sinks(self) -> Mapping[str, ResettableSink]:
        tier = self

        class CrashingWriter(IcebergWriter):
            def reset(self, target: TargetName, moves: MarkMoves) -> TargetState:
                state = super().reset(target, moves)
                tier.left -= 1
                if tier.left == 0:
                    raise Crash
                return state

        return {"lake": CrashingWriter(self._spark)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("after", [1, 2])
def test_a_crash_between_the_targets_or_before_the_record(rig: Rig, after: int) -> None:
    """The next start finds the moves recorded, and repeats them: nothing is lost, none doubled."""
    first_four(rig)
    assert rig.run(config(rig)) is Exit.OK
    assert reset(config(rig), "--to", "earliest", "--execute").exit_code == 0
    rewind_group(rig, 4)  # as it is where the process ended before the group's commit
    with pytest.raises(Crash):
        Service(load(config(rig)), True, Quiet(), Crashing(rig, after)).run()
    assert any(mark.moves is not None for mark in rig.snapshot().targets.values())
    assert rig.run(config(rig)) is Exit.OK
    assert (rig.rows("orders"), offsets(rig)) == (ROWS, ONCE)


@pytest.mark.timeout(300)
def test_a_table_that_has_nothing_to_read_is_moved_all_the_same(rig: Rig) -> None:
    """Its messages are gone from the log: no data would ever open it."""
    rig.produce(canal(f"{rig.db}.old", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    first_four(rig)
    assert rig.run(config(rig)) is Exit.OK
    done = reset(config(rig), "--to", "latest", "--execute")
    assert done.exit_code == 0
    assert "nothing to do" in done.stdout
    done = reset(config(rig), "--to", "offset", "--at", "4", "--execute")
    assert done.exit_code == 0, done.output
    target = f"lake.{rig.db}.old"
    assert rig.run(config(rig)) is Exit.OK
    only = reset(config(rig), "--to", "earliest", "--table", target, "--execute")
    assert only.exit_code == 0, only.output
    assert rig.run(config(rig)) is Exit.OK
    assert [event["target"] for event in rig.events("marks_moved")].count(target) == 1
    assert rig.rows("old") == [(1, "a", 1)]


@pytest.mark.timeout(300)
def test_a_target_that_can_not_be_moved_keeps_the_daemon_from_reading(rig: Rig) -> None:
    """Read on, its changes would be dropped by the old mark: refused, and the record stays."""
    first_four(rig)
    assert rig.run(config(rig)) is Exit.OK
    assert reset(config(rig), "--to", "earliest", "--execute").exit_code == 0
    name = f"lake.`{rig.db}`.orders"
    rig.spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('binlogd.mode')")
    with pytest.raises(Unusable, match=r"can't be carried out: .*was not made by binlogd"):
        rig.run(config(rig))
    rig.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('binlogd.mode' = 'upsert')")
    assert rig.run(config(rig)) is Exit.OK
    assert (rig.rows("orders"), offsets(rig)) == (ROWS, ONCE)
