"""Every state that a target or a pipeline can be in has a command that leads out of it.

Each state is made for real, looked at as an operator would, and left by the commands that its
messages name; afterwards the pipeline runs and the tables are right. A state that the code knows
and that has no entry here fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from typer.testing import CliRunner, Result

from actors.target.target_state import Phase
from daemon.admin.logs import set_up_logs
from daemon.app.lifecycle import Stage
from daemon.app.startup import Unusable
from daemon.cli.__main__ import app
from daemon.config.file import load
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from settings.exit import Exit
from sparkwriter.iceberg import swap as iceberg_swap
from tests.integration.rig import Rig, canal
from tests.integration.test_group import Log, Member, log  # noqa: F401  # a fixture

pytestmark = pytest.mark.long


class World:
    """A table ``t`` that its sink refuses when it is told to, and ``good``, which must go on."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.target = f"lake.{rig.db}.t"
        self.source = TopicPartition(rig.topic, 0)
        self.good: list[int] = []
        self.path = self.configure()

    def configure(self, **more: Any) -> Path:
        """The configuration from now on."""
        section = {"on_refused_target": "quarantine", **more}
        self.path = self.rig.write_config(p=self.rig.pipeline(**section))
        return self.path

    def without_route(self) -> None:
        """The operator takes the table out of the configuration."""
        self.configure(exclude=[f"{self.rig.db}.t"])

    def insert(self, *keys: int, table: str = "t") -> None:
        rows = ({"id": key, "name": f"n{key}", "qty": key} for key in keys)
        self.rig.produce(*(canal(f"{self.rig.db}.{table}", "INSERT", [row]) for row in rows))

    def run(self) -> None:
        """A whole run, in which the other table gets a row."""
        self.good.append(len(self.good) + 1)
        self.insert(self.good[-1], table="good")
        assert self.rig.run(self.path) is Exit.OK, self.rig.stderr

    def command(self, *words: str, status: int = 0) -> Result:
        """``binlogd …``, for real."""
        done = CliRunner().invoke(app, [*words, "--config", str(self.path)])
        assert done.exit_code == status, done.output
        return done

    def sql(self, text: str) -> None:
        self.rig.spark.sql(text.format(t=f"lake.`{self.rig.db}`.t")).collect()

    def quarantined(self) -> None:
        """One row in the table, two in its spill."""
        self.insert(1)
        self.run()
        self.sql("ALTER TABLE {t} RENAME COLUMN qty TO kept")
        self.sql("ALTER TABLE {t} ADD COLUMN qty BOOLEAN")
        self.insert(2, 3)
        self.run()
        assert list(self.rig.snapshot().spills) == [self.target]

    def put_right(self) -> None:
        self.sql("ALTER TABLE {t} DROP COLUMN qty")
        self.sql("ALTER TABLE {t} RENAME COLUMN kept TO qty")

    def discarded(self) -> None:
        """What the command left: nothing kept, and a word that the table lacks rows."""
        snapshot = self.rig.snapshot()
        assert not snapshot.spills
        assert not list((self.rig.folder / "state" / "p.spill").glob("*.spill"))
        said = snapshot.targets[self.target].rows_may_differ
        assert said is not None
        assert "of its spill were discarded" in said

    def check(self, *keys: int | None) -> None:
        """After a last run: both tables, ``t`` with these keys (None: it is nobody's any more)."""
        self.run()
        assert self.rig.rows("good") == [(key, f"n{key}", key) for key in self.good]
        if keys != (None,):
            assert [row[0] for row in self.rig.rows("t")] == list(keys)


class Live:
    """The daemon of a world, running."""

    def __init__(self, world: World, log: Log) -> None:  # noqa: F811
        set_up_logs(load(world.path).log)
        before = len(world.rig.events("assigned"))
        self.member = Member(world.rig, world.path)
        for _ in range(before + 1):
            log.of("p", "assigned")

    def stop(self) -> None:
        assert self.member.stop() is Exit.OK


def a_quarantined_target_is_released(world: World, log: Log) -> None:  # noqa: F811
    world.quarantined()
    world.put_right()
    live = Live(world, log)
    world.command("tables", "retry", world.target)
    log.of("p", "released")
    live.stop()
    world.check(1, 2, 3)


def a_quarantined_target_is_read_again(world: World, log: Log) -> None:  # noqa: F811
    """Where its table can't be put right."""
    world.quarantined()
    world.command("tables", "rebuild", world.target)
    world.check(1, 2, 3)


def a_quarantined_target_is_given_up(world: World, log: Log) -> None:  # noqa: F811
    """Not while it is fed: then by the steps that the refusal names."""
    world.quarantined()
    refused = world.command("tables", "discard", world.target, "--execute", status=2)
    assert "behind a hole of 2 messages" in refused.stderr
    world.without_route()
    world.run()
    dry = world.command("tables", "discard", world.target)
    assert "would be lost for good: 2 messages" in dry.stdout
    assert "--execute does it" in dry.stdout
    assert world.target in world.rig.snapshot().spills
    world.command("tables", "discard", world.target, "--execute")
    world.discarded()
    world.command("tables", "discard", world.target, "--execute", status=2)
    world.check(None)


def a_spill_whose_route_is_gone_is_discarded_by_the_daemon(
    world: World,
    log: Log,  # noqa: F811
) -> None:
    """Each refusal on the way names the command; the daemon goes on."""
    world.quarantined()
    world.without_route()
    live = Live(world, log)
    assert "quarantined, no route" in world.command("tables", "list", "--json").stdout
    retried = world.command("tables", "retry", world.target, status=2)
    assert f"binlogd tables discard {world.target}" in retried.stderr
    reset = world.command("offsets", "reset", "--to", "earliest", status=2)
    assert f"binlogd tables discard {world.target}" in reset.stderr
    world.command("tables", "discard", world.target, "--execute")
    log.of("p", "assigned")  # it runs again
    live.stop()
    world.discarded()
    world.check(None)


def a_spill_whose_route_is_gone_is_routed_again(world: World, log: Log) -> None:  # noqa: F811
    world.quarantined()
    world.without_route()
    world.run()
    assert world.rig.events("spill_without_route")
    world.put_right()
    world.configure()
    live = Live(world, log)
    world.command("tables", "retry", world.target)
    log.of("p", "released")
    live.stop()
    world.check(1, 2, 3)


def a_full_spill_is_released(world: World, log: Log) -> None:  # noqa: F811
    """What waits in memory for room follows it."""
    world.quarantined()
    world.configure(quarantine_bytes=1 << 20)
    live = Live(world, log)
    for key in (4, 5):
        row = {"id": key, "name": "x" * 700_000, "qty": key}
        world.rig.produce(canal(f"{world.rig.db}.t", "INSERT", [row]))
    log.of("p", "quarantine_full")
    world.put_right()
    world.command("tables", "retry", world.target)
    log.of("p", "released")
    live.stop()
    world.check(1, 2, 3, 4, 5)


def a_rebuild_is_given_up(world: World, log: Log) -> None:  # noqa: F811
    world.insert(1)
    world.run()
    world.command("tables", "rebuild", world.target)
    assert "rebuilding" in world.command("tables", "list", "--json").stdout
    world.command("tables", "rebuild", world.target, "--cancel")
    world.check(1)
    assert not world.rig.snapshot().rebuilds


def a_rebuild_whose_route_is_gone_is_given_up(world: World, log: Log) -> None:  # noqa: F811
    """What is read again would not come to its table, which must not take the name."""
    world.insert(1, 2)
    world.run()
    world.command("tables", "rebuild", world.target)
    with pytest.MonkeyPatch.context() as patched:  # it is filled, and has not its name yet
        patched.setattr(iceberg_swap, "_remember", _away)
        assert world.rig.run(world.path) is Exit.PIPELINE_FAILED
    world.insert(3)
    world.without_route()
    world.run()  # the others go on, and the job ends by itself
    (failed,) = world.rig.events("job_failed")
    assert "no route leads to it any more" in failed["reason"]
    world.check(1, 2)
    assert not world.rig.snapshot().rebuilds


def _away(*given: object) -> None:
    raise RuntimeError("gone")


def a_pipeline_that_stopped_goes_on_behind_the_record(world: World, log: Log) -> None:  # noqa: F811
    """Of its own accord it stops there again; a reset goes on behind it, when forced."""
    world.insert(1)
    world.run()
    world.rig.produce(b"not a Canal message")
    assert world.rig.run(world.path) is Exit.PIPELINE_FAILED
    end = world.rig.log_ends(world.rig.topic)[f"{world.rig.topic}:0"]
    words = ("offsets", "reset", "--to", "offset", "--at", str(end), "--force", "--execute")
    world.command(*words)
    world.insert(2)
    world.check(1, 2)


def dead_letters_are_replayed(world: World, log: Log) -> None:  # noqa: F811
    """Once the cause is mended: here a date that is none, which the configuration then allows."""
    world.configure(on_bad_record="dead-letter", zero_dates="error")
    row = {"id": 1, "day": "0000-00-00"}
    types = {"id": "int(11)", "day": "date"}
    world.rig.produce(canal(f"{world.rig.db}.t", "INSERT", [row], mysqlType=types))
    world.run()
    assert "unfit" in world.command("dead-letters", "list", "--json").stdout
    world.configure(on_bad_record="dead-letter")
    world.command("dead-letters", "replay", "--all", "--execute")
    world.check(1)


def a_reset_that_can_not_be_carried_out_is_given_up(world: World, log: Log) -> None:  # noqa: F811
    """Its target is not to be had any more as ours: the marks stay, the others are read again."""
    world.insert(1)
    world.run()
    world.command("offsets", "reset", "--to", "earliest", "--execute")
    world.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('binlogd.mode')")
    with pytest.raises(Unusable, match=f"binlogd tables discard {world.target}"):
        world.rig.run(world.path)
    world.sql("ALTER TABLE {t} SET TBLPROPERTIES ('binlogd.mode' = 'upsert')")
    assert "a reset of its marks" in world.command("tables", "discard", world.target).stdout
    world.command("tables", "discard", world.target, "--execute")
    assert world.rig.snapshot().targets[world.target].moves is None
    world.check(1)
    moved = {event["target"] for event in world.rig.events("marks_moved")}
    assert moved == {f"lake.{world.rig.db}.good"}


def a_spill_that_is_missing_is_read_again(world: World, log: Log) -> None:  # noqa: F811
    """The message says what to do: a forced start before it; the marks drop what is there."""
    world.quarantined()
    (spill,) = (world.rig.folder / "state" / "p.spill").glob("*.spill")
    spill.unlink()
    with pytest.raises(Unusable, match=r"is missing.*start\.force"):
        world.rig.run(world.path)
    world.put_right()
    world.configure(start={"at": "earliest", "force": "the spill is lost"})
    world.check(1, 2, 3)


def a_group_that_was_moved_goes_on_where_the_file_is(world: World, log: Log) -> None:  # noqa: F811
    world.configure(kafka={"group.instance.id": ""})
    world.insert(1)
    world.run()
    settings = {
        "bootstrap.servers": world.rig.broker.bootstrap, "group.id": f"g-{world.rig.db}",
    }  # fmt: skip
    consumer = Consumer(settings)
    place = KafkaPartition(world.rig.topic, 0, 0)
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()
    assert world.rig.run(world.path) is Exit.PIPELINE_FAILED
    assert "--to frontier" in world.rig.stderr
    world.command("offsets", "reset", "--to", "frontier", "--execute")
    world.check(1)


WAYS: tuple[Callable[[World, Log], None], ...] = (
    a_quarantined_target_is_released,
    a_quarantined_target_is_read_again,
    a_quarantined_target_is_given_up,
    a_spill_whose_route_is_gone_is_discarded_by_the_daemon,
    a_spill_whose_route_is_gone_is_routed_again,
    a_full_spill_is_released,
    a_rebuild_is_given_up,
    a_rebuild_whose_route_is_gone_is_given_up,
    a_pipeline_that_stopped_goes_on_behind_the_record,
    dead_letters_are_replayed,
    a_reset_that_can_not_be_carried_out_is_given_up,
    a_spill_that_is_missing_is_read_again,
    a_group_that_was_moved_goes_on_where_the_file_is,
)

BY_ITSELF = "goes on by itself"

STATES: dict[object, object] = {
    Phase.OPENING: BY_ITSELF,
    Phase.READY: BY_ITSELF,
    Phase.WRITING: BY_ITSELF,
    Phase.STAGING: BY_ITSELF,
    Phase.QUARANTINED: a_quarantined_target_is_released,
    Phase.STOPPED: a_pipeline_that_stopped_goes_on_behind_the_record,
    Stage.RUNNING: BY_ITSELF,
    Stage.DRAINING: BY_ITSELF,
    Stage.CLOSING: BY_ITSELF,
    Stage.HELD: BY_ITSELF,
    Stage.ENDED: a_pipeline_that_stopped_goes_on_behind_the_record,
    "pipeline": BY_ITSELF,
    "group": BY_ITSELF,
    "topic_ids": "another group and other targets: the topic was recreated",
    "partitions": a_group_that_was_moved_goes_on_where_the_file_is,
    "targets": a_reset_that_can_not_be_carried_out_is_given_up,
    "forced": BY_ITSELF,
    "spills": a_spill_whose_route_is_gone_is_discarded_by_the_daemon,
    "rebuilds": a_rebuild_whose_route_is_gone_is_given_up,
    "formats": "`offsets export`, without the topic, and `offsets import`",
}
"""What the code knows of states: of a target, of a pipeline, and what is recorded between runs."""


def test_no_state_is_without_a_way_out() -> None:
    """A state that is added needs one."""
    known = {*Phase, *Stage, *(field.name for field in fields(Snapshot))}
    assert known == STATES.keys()
    assert {way for way in STATES.values() if callable(way)} <= set(WAYS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_there_is_a_way_out(
    rig: Rig,
    log: Log,  # noqa: F811
    way: Callable[[World, Log], None],
) -> None:
    """By the commands that the state's own messages name."""
    way(World(rig), log)
