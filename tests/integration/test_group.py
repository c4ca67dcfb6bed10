"""Members of one group share partitions and targets: joining and leaving in mid-stream."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from actors.contract.ports import ResettableSink
from actors.contract.writes import StagedBatch, TargetState
from daemon.admin.logs import set_up_logs
from daemon.app.progress import Quiet
from daemon.app.service import Service
from daemon.config.file import load
from settings.exit import Exit
from sparkwriter.iceberg.sink import IcebergWriter
from tests.integration.rig import Rig, SharedSpark, canal
from tests.integration.test_process import Follower, daemon, ended

pytestmark = pytest.mark.long

WAVE = 600
"""Messages that a partition gets at a time."""

PROTOCOLS: dict[str, dict[str, str]] = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "new": {"group.protocol": "consumer"},
}


class Shared:
    """A topic of two partitions with a keyed table in each, and a changelog that takes in both."""

    def __init__(self, rig: Rig, kafka: Mapping[str, str]) -> None:
        self.rig = rig
        self.topic = f"{rig.topic}-two"
        self.kafka = dict(kafka)
        self.sent = 0
        rig.create_topic(self.topic, partitions=2)
        self._producer = Producer({"bootstrap.servers": rig.broker.bootstrap})

    def wave(self) -> None:
        """Inserts into both tables, and an update of every third row."""
        for number in range(self.sent, self.sent + WAVE):
            for partition in (0, 1):
                row = {"id": number - number % 3, "name": f"n{number}", "qty": number}
                message = canal(f"{self.rig.db}.t{partition}", "INSERT", [row])
                self._producer.produce(self.topic, message, partition=partition)
        assert self._producer.flush(30) == 0
        self.sent += WAVE

    def config(self, member: str, changelog: bool = True) -> Path:
        """Of one member: the common group, a state directory of its own."""
        db = self.rig.db
        routes = [
            {"target": "lake.{database}.{table}"},
            {"target": f"lake.{db}.changes", "mode": "append"},
        ]
        routes = routes if changelog else routes[:1]
        # Members here come and go for good: nobody is to wait for one.
        kafka = {"group.instance.id": ""}
        kafka |= {"heartbeat.interval.ms": "500"} if "group.protocol" not in self.kafka else {}
        section = self.rig.pipeline(
            topics=[self.topic], target=None, route=routes, kafka={**kafka, **self.kafka}
        )
        text = self.rig.write_config(**{member: section}).read_text()
        path = self.rig.folder / f"{member}.toml"
        for folder in ("state", "staging"):
            text = text.replace(
                f"{self.rig.folder}/{folder}", f"{self.rig.folder}/{member}/{folder}"
            )
        path.write_text(text)
        return path

    def check(self) -> None:
        """After a last run to the end: the rows are right, each offset is in the log once."""
        assert self.rig.run(self.config("last")) is Exit.OK, self.rig.stderr
        expected = [(key, f"n{key + 2}", key + 2) for key in range(0, self.sent, 3)]
        for table in ("t0", "t1"):
            assert self.rig.rows(table) == expected
        places = self.rig.spark.sql(
            f"SELECT _partition, _offset FROM lake.`{self.rig.db}`.changes ORDER BY 1, 2"
        ).collect()
        wanted = [(partition, offset) for partition in (0, 1) for offset in range(self.sent)]
        assert [tuple(place) for place in places] == wanted


class Member:
    """A daemon in this process, on a thread of its own, with the test run's Spark."""

    def __init__(self, rig: Rig, config: Path, tier: SharedSpark | None = None) -> None:
        tier = tier or SharedSpark(rig.spark)
        self._service = Service(load(config), False, Quiet(), tier)
        self._status: Exit | BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=config.stem, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._status = self._service.run()
        except BaseException as error:
            self._status = error

    def stop(self) -> Exit | BaseException | None:
        """Ask it to end as a signal would, and wait."""
        self._service.stop("test")
        return self.ended()

    def ended(self) -> Exit | BaseException | None:
        """Wait for its end, and say how it ended."""
        self._thread.join(90)
        return self._status


class Gated(SharedSpark):
    """Writes begin, and end when the gate is open."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.spark)
        self.begun, self.gate = threading.Semaphore(0), threading.Event()

    def sinks(self) -> Mapping[str, ResettableSink]:
        begun, gate = self.begun, self.gate

        class GatedWriter(IcebergWriter):
            def write(self, batch: StagedBatch) -> TargetState:
                begun.release()
                assert gate.wait(400)
                return super().write(batch)

        return {"lake": GatedWriter(self._spark)}


class Log(Follower):
    """The log's events of one member."""

    def written(self, target: str) -> None:
        """Read on until the target was written; its writer belongs to no pipeline."""
        self.of(None, "written", target=target)

    def of(self, member: str | None, event: str, **fields: Any) -> dict[str, Any]:
        """Read on until the member has said it."""
        watchdog = threading.Timer(200, self._tail.kill)
        watchdog.start()
        try:
            for line in self._lines:
                said: dict[str, Any] = json.loads(line)
                if (said.get("pipeline"), said["event"]) == (member, event) and (
                    fields.items() <= said.items()
                ):
                    return said
        finally:
            watchdog.cancel()
        raise AssertionError(f"{member}: {event} {fields} did not come")


@pytest.fixture
def log(rig: Rig) -> Iterator[Log]:
    made = Log(rig.log_file)
    yield made
    made.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_joins_and_leaves_in_mid_stream(rig: Rig, log: Log, protocol: str) -> None:
    """The rows are right, the shared changelog holds each offset once, nobody stops."""
    shared = Shared(rig, PROTOCOLS[protocol])
    shared.wave()
    set_up_logs(load(shared.config("first")).log)
    first = Member(rig, shared.config("first"))
    log.of("first", "assigned", source=f"{shared.topic}:1")
    shared.wave()
    second = Member(rig, shared.config("second"))
    shared.wave()
    theirs = log.of("second", "assigned")["source"]
    shared.wave()
    assert second.stop() is Exit.OK
    shared.wave()
    log.of("first", "assigned", source=theirs)
    shared.wave()
    assert first.stop() is Exit.OK
    assert rig.events("pipeline_ended") == [] or all(
        event.get("failure") is None for event in rig.events("pipeline_ended")
    )
    shared.check()


@pytest.mark.timeout(300)
def test_a_copied_state_directory_puts_the_older_daemon_out(rig: Rig, log: Log) -> None:
    """Two members of one id: the group goes on with one, the other ends with a line, status 1."""
    kafka = {"heartbeat.interval.ms": "500"}
    config = rig.write_config(p=rig.pipeline(kafka=kafka))
    set_up_logs(load(config).log)
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    older = Member(rig, config)
    log.wait_for("written")
    shutil.copytree(rig.folder / "state", rig.folder / "copy", ignore=left_out)
    text = config.read_text().replace(f"{rig.folder}/state", f"{rig.folder}/copy")
    copied = config.with_name("copied.toml")
    copied.write_text(text)
    younger = Member(rig, copied)
    reason = log.of("p", "pipeline_ended")["failure"]
    assert older.ended() is Exit.PIPELINE_FAILED
    for part in (
        "with this id, and this one was put out",
        "copy of the state directory",
        "binlogd run",
    ):
        assert part in reason
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 2, "name": "b", "qty": 2}]))
    log.wait_for("written")
    assert younger.stop() is Exit.OK
    assert rig.rows("t") == [(1, "a", 1), (2, "b", 2)]


def left_out(folder: str, names: list[str]) -> set[str]:
    """Sockets can't be copied, and some files are there for a moment only, while one is saved."""
    gone = (".sock", ".new.json", ".previous.json")
    return {name for name in names if name.endswith(gone)}


@pytest.mark.timeout(300)
def test_a_revoke_waits_for_the_write_and_commits_it(rig: Rig, log: Log) -> None:
    """The write ends after the revoke has begun; the next owner starts behind what it held."""
    # A write on a JVM that has just started may take longer than the 17 s of the default.
    shared = Shared(rig, {**PROTOCOLS["eager"], "session.timeout.ms": "240000"})
    shared.wave()
    assert rig.run(shared.config("before", changelog=False)) is Exit.OK
    shared.wave()
    set_up_logs(load(shared.config("first")).log)
    tier = Gated(rig)
    first = Member(rig, shared.config("first", changelog=False), tier)
    assert tier.begun.acquire(timeout=60)
    assert tier.begun.acquire(timeout=60)  # the writes of both partitions
    second = Member(rig, shared.config("second", changelog=False))
    log.of("first", "revoked")
    tier.gate.set()
    theirs = log.of("second", "assigned")
    assert theirs["start"] > WAVE
    assert rig.events("revoked_while_writing") == []
    assert [second.stop(), first.stop()] == [Exit.OK, Exit.OK]


@pytest.mark.timeout(400)
def test_two_processes_share_a_target_and_one_is_killed(rig: Rig) -> None:
    """Both write the changelog; after kill -9 the other takes over, with each change once."""
    shared = Shared(rig, {"session.timeout.ms": "6000"})
    members, logs = {}, {}

    def start(name: str) -> Log:
        config = shared.config(name)
        log_file = rig.log_file.with_name(f"{name}.log")
        config.write_text(config.read_text().replace("binlogd.log", log_file.name))
        members[name] = daemon("run", "--config", str(config), start_new_session=True)
        logs[name] = Log(log_file)
        return logs[name]

    try:
        first = start("first")
        first.of("first", "assigned", source=f"{shared.topic}:1")  # the last: it has both
        shared.wave()
        second = start("second")
        theirs = second.of("second", "assigned")["source"]
        shared.wave()
        second.wait_for("written")
        shared.wave()
        members["second"].kill()
        ended(members["second"])
        shared.wave()
        first.of("first", "assigned", source=theirs)
        shared.wave()
        members["first"].send_signal(signal.SIGTERM)
        assert ended(members["first"]) == (0, "")
    finally:
        for process in members.values():
            process.kill()
        for log in logs.values():
            log.close()
    shared.check()
