"""A sink that only one daemon may write, and a group that gets a second member."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from daemon.admin.logs import set_up_logs
from daemon.config.file import load
from settings.exit import Exit
from tests.integration.rig import Rig, canal
from tests.integration.test_group import PROTOCOLS, Log, Member, Shared


@pytest.fixture(autouse=True)
def _hadoop(rig: Rig) -> None:
    """By the configuration; the tables are in the test run's own catalog."""
    rig.lake = {"type": "hadoop", "warehouse": rig.lake["warehouse"]}


@pytest.fixture
def log(rig: Rig) -> Iterator[Log]:
    made = Log(rig.log_file)
    yield made
    made.close()


def check_reason(failure: str) -> None:
    """One line: who, which sink, why, and what to do."""
    assert failure.startswith("group ")
    assert "\n" not in failure
    for part in (
        "other members",
        "sink lake",
        "renames a file",
        "rest, jdbc or hive",
        "one daemon",
    ):
        assert part in failure


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "protocol",
    ["cooperative", *(pytest.param(each, marks=pytest.mark.long) for each in ("eager", "new"))],
)
def test_a_second_daemon_stops_and_the_first_goes_on(
    rig: Rig, log: Log, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second says why. The first hears nothing of it, and has every row."""
    monkeypatch.setattr("sources.kafka.logs.LONGEST_WAIT_S", 1.0)
    shared = Shared(rig, PROTOCOLS[protocol])
    shared.wave()
    set_up_logs(load(shared.config("first")).log)
    first = Member(rig, shared.config("first"))
    log.of("first", "assigned", source=f"{shared.topic}:1")
    assert Member(rig, shared.config("second")).ended() is Exit.PIPELINE_FAILED
    (failed,) = rig.events("pipeline_ended")
    assert failed["pipeline"] == "second"
    check_reason(failed["failure"])
    shared.wave()
    assert rig.events("revoked") == []
    assert {event["pipeline"] for event in rig.events("assigned")} == {"first"}
    assert first.stop() is Exit.OK
    shared.check()


def moved(rig: Rig, config: Path) -> Path:
    """The same daemon with another state directory, so with another id."""
    other = config.with_name("other.toml")
    other.write_text(config.read_text().replace(f"{rig.folder}/st", f"{rig.folder}/other-st"))
    return other


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_daemon_that_moved_waits_for_its_former_session(rig: Rig, log: Log) -> None:
    """The group counts the static member that has ended; then the other daemon goes on."""
    config = rig.write_config(p=rig.pipeline(kafka={"session.timeout.ms": "6000"}))
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    assert rig.run(config) is Exit.OK
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 2, "name": "b", "qty": 2}]))
    assert rig.run(moved(rig, config)) is Exit.OK
    assert len(rig.events("other_members")) == 1
    assert rig.rows("t") == [(1, "a", 1), (2, "b", 2)]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_two_that_start_at_the_same_time_do_not_both_write(
    rig: Rig, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each found the group empty. Static members stay in it, so both stop."""
    monkeypatch.setattr("sources.kafka.logs.OnlyMember.may_join", lambda only: None)
    config = rig.write_config()
    set_up_logs(load(config).log)
    first = Member(rig, config)
    log.of("p", "assigned")
    second = Member(rig, moved(rig, config))
    assert [first.ended(), second.ended()] == [Exit.PIPELINE_FAILED] * 2
    for failed in rig.events("pipeline_ended"):
        check_reason(failed["failure"])
    assert len(rig.events("assigned")) == 1


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_member_that_knows_nothing_of_the_rule_stops_the_daemon(rig: Rig, log: Log) -> None:
    """It takes a share of the partitions, and may write."""
    config = rig.write_config()
    set_up_logs(load(config).log)
    first = Member(rig, config)
    log.of("p", "assigned")
    settings = {"bootstrap.servers": rig.broker.bootstrap, "group.id": f"g-{rig.db}"}
    stranger = Consumer({**settings, **PROTOCOLS["cooperative"]})
    stranger.subscribe([rig.topic])
    for _ in itertools.takewhile(lambda _: not rig.events("pipeline_ended"), range(900)):
        stranger.poll(0.1)
    (failed,) = rig.events("pipeline_ended")
    check_reason(failed["failure"])
    assert first.ended() is Exit.PIPELINE_FAILED
    stranger.close()
