"""Topics by patterns: they come, go and come back while nobody looks; nothing is skipped silently.

A file of SQLite is the sink, so a run takes a second.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from daemon.state import control
from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, ended
from tests.integration.test_sqlite_sink import read, start, write_config
from tests.sparkwriter.sql.waiting import until

SOON = {"topic.metadata.refresh.interval.ms": 500}
"""Half a minute is the default."""


class World:
    """Topics of one prefix, a pipeline with a pattern over them, and the daemons that run it."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.prefix = f"{rig.topic}."
        self._admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
        self.kafka: dict[str, Any] = {**SOON}

    def topic(self, name: str) -> str:
        return self.prefix + name

    def make(self, name: str, *keys: int, partitions: int = 1) -> None:
        """A topic with rows of the table of its name."""
        self.rig.create_topic(self.topic(name), partitions)
        if keys:
            self.insert(name, *keys)

    def insert(self, name: str, *keys: int, partition: int = 0, table: str | None = None) -> None:
        rows = ({"id": key, "name": f"n{key}", "qty": key} for key in keys)
        table = f"{self.rig.db}.{table or name}"
        messages = (canal(table, "INSERT", [row]) for row in rows)
        self.rig.produce(*messages, topic=self.topic(name), partition=partition)

    def delete(self, name: str) -> None:
        self._admin.delete_topics([self.topic(name)])[self.topic(name)].result(20)

    def add_partition(self, name: str) -> None:
        topic = self.topic(name)
        self._admin.create_partitions([NewPartitions(topic, 2)])[topic].result(20)

    def config(self, **pipeline: Any) -> Path:
        """Everything below the prefix, beginning where the log ends."""
        pattern = "^" + self.prefix.replace(".", r"\.")
        section = {"topics": [pattern], "start": "latest"} | pipeline
        path = write_config(self.rig, **section)
        text = path.read_text()
        settings = "".join(f'"{key}" = {value}\n' for key, value in self.kafka.items())
        text = text.replace('start = "forced"', 'start = {at = "latest", force = "once"}')
        path.write_text(text.replace("[kafka]\n", f"[kafka]\n{settings}"))
        return path

    def catch_up(self, **pipeline: Any) -> None:
        status = ended(start(self.config(**pipeline), "--until-caught-up"))
        assert status == (0, "")

    @contextmanager
    def running(self, **pipeline: Any) -> Iterator[Follower]:
        """A daemon that reads."""
        before = len(self.rig.events("running")) if self.rig.log_file.exists() else 0
        process = start(self.config(**pipeline))
        follower = Follower(self.rig.log_file)
        try:
            follower.wait_for("running", times=before + 1)
            yield follower
        finally:
            follower.close()
            stop(process)

    def keys(self, table: str) -> list[object]:
        return [row[0] for row in read(self.rig, table)]

    def status(self) -> dict[str, Any]:
        return control.ask(self.rig.folder / "state", {"ask": "status"})

    def frontiers(self) -> dict[str, int | None]:
        """By name, of topics with one partition."""
        (pipeline,) = self.status()["pipelines"]
        found = {each["source"]: each["frontier"] for each in pipeline["partitions"]}
        return {source.removeprefix(self.prefix)[:-2]: found[source] for source in found}


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    ended(process)


@pytest.fixture
def world(rig: Rig) -> World:
    return World(rig)


def test_a_topic_that_comes_while_it_runs_is_read_from_its_first_message(world: World) -> None:
    """Where the pipeline began at the logs' ends: what is written before the topic is noticed must
    not count as old. The other topics are not disturbed."""
    world.make("old", 1)
    with world.running() as follower:
        follower.wait_for("assigned")
        world.insert("old", 2)
        follower.wait_for("written", times=2)
        world.make("new", 10, 11)
        follower.wait_for("topics_found")
        follower.wait_for("written", times=2)
        world.insert("new", 12)
        world.insert("old", 3)
        follower.wait_for("written", times=4)
    assert (world.keys("old"), world.keys("new")) == ([2, 3], [10, 11, 12])


def test_a_topic_that_comes_while_nothing_runs_is_read_from_its_first_message(
    world: World,
) -> None:
    world.make("old", 1)
    world.catch_up()
    world.make("new", 10)
    world.insert("old", 2)
    world.catch_up()
    assert (world.keys("old"), world.keys("new")) == ([2], [10])
    (begun,) = [e for e in world.rig.events("start_position") if e["origin"] == "new topic"]
    assert begun["source"] == f"{world.topic('new')}:0"


@pytest.mark.long
def test_so_is_the_first_of_all_topics(world: World) -> None:
    """A pipeline that has run over no topic has run."""
    world.catch_up()
    assert world.rig.events("no_topic_matches")
    world.make("new", 10)
    world.catch_up()
    assert world.keys("new") == [10]


@pytest.mark.long
def test_so_is_one_that_comes_after_the_positions_were_lost(world: World) -> None:
    """The group's commits say that the pipeline has run."""
    world.make("old", 1)
    world.catch_up()
    for path in (world.rig.folder / "state").glob("p.offsets*.json"):
        path.unlink()
    world.make("new", 10)
    world.insert("old", 2)
    world.catch_up()
    assert (world.keys("old"), world.keys("new")) == ([2], [10])


@pytest.mark.long
def test_a_start_that_is_forced_is_for_what_was_there(world: World) -> None:
    """Neither a topic nor a partition that comes later in the same run is skipped to its end."""
    world.make("old", 1)
    world.catch_up()
    world.insert("old", 2)
    with world.running(start="forced") as follower:
        follower.wait_for("assigned")
        world.make("new", 10)
        follower.wait_for("written", times=2)
        world.add_partition("old")
        world.insert("old", 5, partition=1, table="five")
        follower.wait_for("written", times=2)
    assert (world.keys("new"), world.keys("five")) == ([10], [5])
    with pytest.raises(Exception, match="no such table"):
        world.keys("old")


@pytest.mark.long
def test_what_is_excluded_and_what_is_binlogds_own_is_not_read(world: World) -> None:
    """The dead letters of a pipeline would become its messages, and then letters again."""
    letters = world.topic("letters")
    more = {
        "exclude_topics": [f"^{world.topic('tmp')}", world.topic("not-this")],
        "on_bad_record": "dead-letter", "dead_letters": f"topic:{letters}",
        "offset_topic": world.topic("offsets"),
        "offset_stores": ["file", "kafka-topic", "kafka-commit"], "start": "earliest",
    }  # fmt: skip
    world.make("a", 1)
    world.insert("a", 2)
    world.rig.produce(b"no json", topic=world.topic("a"))
    for name in ("tmp.1", "not-this"):
        world.make(name, 7)
    world.catch_up(**more)
    world.catch_up(**more)
    assert world.keys("a") == [1, 2]
    read_ = {event["source"] for event in world.rig.events("assigned")}
    assert read_ == {f"{world.topic('a')}:0"}
    topics = AdminClient({"bootstrap.servers": world.rig.broker.bootstrap}).list_topics(timeout=20)
    assert {letters, world.topic("offsets")} <= topics.topics.keys()


@pytest.mark.long
def test_a_topic_that_went_is_said_and_stops_nobody(world: World) -> None:
    """Its condition names the way out; one that is made again stops the pipeline."""
    world.make("a", 1)
    world.make("b", 2)
    with world.running(start="earliest") as follower:
        until(lambda: world.frontiers() == {"a": 1, "b": 1})
        world.delete("b")
        follower.wait_for("topic_gone")
        world.insert("a", 3)
        until(lambda: world.frontiers()["a"] == 2)
        (gone,) = [c for c in world.status()["conditions"] if c["kind"] == "topics_gone"]
        assert world.topic("b") in gone["line"]
        assert "exclude_topics" in gone["line"]
    assert world.keys("a") == [1, 3]
    (event,) = world.rig.events("topic_gone")
    place = f"{world.topic('b')}:0"
    assert (event["applied_below"], event["read_not_applied"]) == ({place: 1}, 0)
    world.catch_up(start="earliest")
    assert len(world.rig.events("topic_gone")) == 2
    world.make("b", 4, 5)
    status, said = ended(start(world.config(start="earliest"), "--until-caught-up"))
    assert status != 0
    assert f"topic '{world.topic('b')}' was deleted and recreated since the last run" in said
    assert "name it in `exclude_topics`" in said
    world.catch_up(start="earliest", exclude_topics=[world.topic("b")])
    (unread,) = world.rig.events("topics_not_read_any_more")
    assert unread["topics"] == [world.topic("b")]


@pytest.mark.long
def test_a_topic_that_is_made_again_while_it_runs_stops_the_pipeline(world: World) -> None:
    """Its first messages are below the old one's marks."""
    world.make("a", 1, 2, 3)
    with world.running(start="earliest") as follower:
        follower.wait_for("written")
        world.rig.make_again(world.topic("a"))
        world.insert("a", 4)
        follower.wait_for("pipeline_failed")
    (failed,) = world.rig.events("pipeline_failed")
    said = "was deleted and recreated", "the position is outside the log"
    assert any(each in failed["reason"] for each in said), failed["reason"]
