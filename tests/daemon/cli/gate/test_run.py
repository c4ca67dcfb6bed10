"""``binlogd gate run`` on a real broker: what closes, in which order, and what is kept of it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from demo.broker import DevBroker
from offsets.gate_record import iso
from tests.daemon.cli.counts.test_broker import TARGET
from tests.daemon.cli.counts.test_held import daemon
from tests.daemon.cli.gate.gate_world import GateWorld, at

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def world(tmp_path: Path, store_broker: DevBroker) -> GateWorld:
    return GateWorld(tmp_path, store_broker)


def test_what_is_complete_closes_in_order_and_the_next_says_why_not(world: GateWorld) -> None:
    """All the missed ones, oldest first; each leaves a mark that others may read."""
    world.gate(success=str(world.marks))
    world.written(3)
    status, said = world.once()
    assert status == 75
    assert said.splitlines()[:2] == [
        f"binlogd: gate g: {at(0)} to {at(1)}: closed, version 1",
        f"binlogd: gate g: {at(1)} to {at(2)}: closed, version 1",
    ]
    assert f"gate g: {at(2)}: {TARGET}: waits for a change of after " in said
    assert world.closed() == [(at(0), 1), (at(1), 1)]
    mark = world.marks / "g" / at(0) / "_SUCCESS"
    assert mark.stat().st_mode & 0o044 == 0o044
    text = json.loads(mark.read_text())
    closed = text.pop("closed")
    assert closed.endswith("Z")
    assert text == {
        "gate": "g", "from": at(0), "through": at(1), "version": 1, "tables": {TARGET: None},
    }  # fmt: skip
    again, said = world.once()
    assert (again, "closed" in said) == (75, False)


def test_two_of_one_state_directory_refuse_by_name(world: GateWorld) -> None:
    """SIGTERM ends the first one with status 0, at once."""
    world.gate(success=str(world.marks))
    world.written(2)
    first = world.start()
    first.says(f"{at(1)}: {TARGET}: waits for a change")
    status, said = world.once()
    assert status == 2
    assert f"is used by another `binlogd gate run` (process {first.process.pid})" in said
    assert "is used by another" in world.command("forget", "g").stderr
    assert first.end() == 0
    assert world.command("forget", "g").exit_code == 0
    assert world.once()[0] == 75


def test_a_new_gate_begins_with_the_present(world: GateWorld) -> None:
    """Nothing old is told. What was recorded then counts, also days later."""
    world.gate(every="1d", success=str(world.marks))
    text = world.config.read_text()
    world.config.write_text(text.replace(f'from = "{at(0)}"', ""))
    world.written(3)
    assert world.once()[0] == 0
    assert world.closed() == []
    begins = world.recorded().next_ms
    assert 0 <= time.time() * 1000 - begins < 2 * 86_400_000
    (row,) = json.loads(world.command("list", "--json").stdout)
    assert (row["last"], row["shut"], row["next"][0]) == (None, {}, iso(begins))


def test_a_partition_is_reopened_by_hand_and_closes_under_the_next_version(
    world: GateWorld,
) -> None:
    world.gate(success=str(world.marks), topic="")
    world.written(3)
    world.once()
    done = world.command("reopen", "g", at(0))
    assert done.exit_code == 0, done.stderr
    status, said = world.once()
    assert (status, world.closed()) == (75, [(at(0), 2), (at(1), 1)])
    assert f"{at(0)}: reopened: by hand" in said
    assert f"{at(0)} to {at(1)}: closed, version 2" in said
    for begin, why in (
        (at(2), "has not closed yet"), (at(-1), "never closed"),
        (at(0).replace("00Z", "30Z"), "no partition begins at"), ("soon", "is required"),
    ):  # fmt: skip
        done = world.command("reopen", "g", begin)
        assert done.exit_code == 2
        assert why in done.stderr


def test_another_length_is_refused_until_the_gate_is_forgotten(world: GateWorld) -> None:
    """The other gate goes on. What is not configured any more is named."""
    world.gate("a", success=str(world.marks))
    world.gate("b", success=str(world.marks))
    world.written(2)
    world.once()
    text = world.config.read_text()
    at_a = text.index("[gates.a]")
    text = text[:at_a] + text[at_a:].replace('every = "1m"', 'every = "2m"', 1)
    world.config.write_text(text)
    world.log.at(1, 40).transaction("more", "I")
    world.log.at(2, 40).transaction("still", "I")
    world.record(world.grow())
    status, said = world.once()
    assert status == 75
    assert "every was 60 s when its partitions closed" in said
    assert world.closed("b") == [(at(0), 1), (at(1), 1)]
    assert world.command("forget", "a").exit_code == 0
    world.once()
    world.config.write_text(text[:at_a] + text[text.index("[gates.b]") :])
    listed = world.command("list").stdout
    assert "a: is not configured any more: binlogd gate forget a" in listed


def test_a_damaged_record_is_that_gates_reason(world: GateWorld) -> None:
    """Named, with the way out; the others go on."""
    world.gate("a", success=str(world.marks))
    world.gate("b", success=str(world.marks))
    world.written(2)
    world.once("b")
    (world.state / "gates" / "a.json").write_text("{")
    status, said = world.once()
    assert status == 75
    assert "a.json: damaged" in said
    assert "binlogd gate forget a" in said
    assert "a.json: damaged" in world.command("list").stdout
    assert world.closed("b") == [(at(0), 1)]


def test_what_is_wrong_with_the_call_is_refused(world: GateWorld) -> None:
    assert "no gate is configured" in world.once()[1]
    world.gate()
    status, said = world.once("other")
    assert status == 2
    assert "there is no gate 'other'; have: g" in said


def test_what_was_missed_closes_oldest_first(world: GateWorld) -> None:
    """Also while it runs; each with its margin behind it."""
    world.gate(success=str(world.marks), margin="2m")
    world.written(4)
    process = world.start()
    process.says(f"{at(1)}: {TARGET}: waits for a change of after ")
    assert sum("closed, version" in line for line in process.lines) == 1
    for minute in (4, 5):
        world.log.at(minute, 5).transaction(f"more{minute}", "I")
    world.record(world.grow())
    process.says(f"{at(2)} to {at(3)}: closed, version 1")
    assert process.end() == 0
    closed = [line for line in process.lines if "closed, version" in line]
    assert closed == [
        f"binlogd: gate g: {at(n)} to {at(n + 1)}: closed, version 1\n" for n in range(3)
    ]


def test_each_table_of_several_pipelines_must_be_complete(world: GateWorld) -> None:
    """The other one has read nothing: it is named, and the gate beside it closes."""
    with world.config.open("a") as file:
        file.write(
            f'[pipeline.q]\ntopics = ["{world.topic}"]\nformat = "debezium-json"\n'
            'target = "lake.{database}.{table}"\ninclude = ["more.*"]\n'
        )
    world.gate("both", tables=[TARGET, "lake.more.t"], empty=True, success=str(world.marks))
    world.gate("one", success=str(world.marks))
    world.written(2)
    status, said = world.once()
    assert status == 75
    assert f"gate both: {at(0)}: lake.more.t: nothing of {world.topic}:0 is read yet" in said
    assert (world.closed("both"), world.closed("one")) == ([], [(at(0), 1)])


def test_a_running_daemon_shows_gates(world: GateWorld) -> None:
    """By their files alone; `status --json` and the table."""
    world.gate(success=str(world.marks), empty=True)
    world.written(2)
    world.once()
    process = daemon(world)
    pause, deadline = Event(), monotonic() + 60
    words = ("status", "-c", str(world.config))
    while not (done := CliRunner().invoke(app, [*words, "--json"])).stdout:
        assert process.poll() is None, process.communicate()[0]
        assert monotonic() < deadline
        pause.wait(0.2)
    (gate,) = json.loads(done.stdout)["gates"]
    assert gate["last"]["through"] == at(1)
    assert "waits for a change of after" in gate["shut"][TARGET]
    shown = CliRunner().invoke(app, words).stdout
    assert f"g: {at(1)}: {TARGET}: waits for a change of after" in shown
    process.terminate()
    assert process.wait(60) == 0


def test_a_changed_configuration_is_taken_by_a_signal(world: GateWorld) -> None:
    """The same process goes on with it. One that can't be used is named, and the old one stays."""
    world.gate()
    world.written(4)
    running = world.start()
    running.says("gate g: ")
    text = world.config.read_text()
    world.config.write_text(text + '[gates.g]\nevery = "7h"\n')
    running.process.send_signal(signal.SIGHUP)
    running.says("the configuration is not taken: ")
    world.config.write_text(text)
    world.gate("other")
    running.process.send_signal(signal.SIGHUP)
    running.says("reads the configuration again")
    running.says("gate other: ")
    assert running.process.poll() is None
    assert world.closed("other") == world.closed("g")
    assert running.end() == 0


def test_an_end_right_behind_a_changed_configuration_is_not_lost(world: GateWorld) -> None:
    """Whichever comes first: the process that reads it again ends, be it while it starts."""
    world.gate()
    world.written(2)
    for pause in (0.0, 0.001, 0.01, 0.1, 0.5):
        running = world.start()
        running.says("waits for a change")
        running.process.send_signal(signal.SIGHUP)
        Event().wait(pause)
        assert running.end() in (0, -signal.SIGTERM)
