"""``binlogd reload`` while something else is going on in the pipeline."""

from __future__ import annotations

import subprocess
import threading

import pytest
from confluent_kafka import Consumer

from tests.integration.rig import canal
from tests.integration.test_process import daemon
from tests.integration.test_reload import Running, quarantine, running

__all__ = ["running"]

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]


def test_a_target_in_quarantine_stays_there_with_all_that_is_kept(running: Running) -> None:
    """Its pipeline starts again with other settings; a release then writes what was kept."""
    target = quarantine(running)
    kept = next(t for t in running.status()["targets"] if t["target"] == target)["quarantine"]
    running.write('on_refused_target = "quarantine"\nquarantine_bytes = 9000000', include="[abc]")
    assert running.reload()[0] == 0
    running.insert("c")
    running.applied("c", 1)
    again = next(t for t in running.status()["targets"] if t["target"] == target)["quarantine"]
    assert (again["messages"], again["lanes"]) == (kept["messages"], kept["lanes"])


class Stranger:
    """Another member of the group, which makes it rebalance by coming and by going."""

    def __init__(self, running: Running) -> None:
        settings = {
            "bootstrap.servers": running.rig.broker.bootstrap,
            "group.id": f"g-{running.rig.db}",
            "enable.auto.commit": False,
        }
        self._consumer = Consumer(settings)
        self._joined, self._leave = threading.Event(), threading.Event()
        self._consumer.subscribe([running.rig.topic], on_assign=lambda *_: self._joined.set())
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._leave.is_set():
            self._consumer.poll(0.1)
        self._consumer.close()

    def joined(self) -> bool:
        return self._joined.wait(30)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join()


def test_a_group_that_rebalances_meanwhile(running: Running) -> None:
    """A member comes and goes while the pipeline is held: taken or refused, each row once."""
    for _ in range(50):
        running.insert("a")
    running.write(include="[ab]")
    stranger = Stranger(running)
    begun: subprocess.Popen[str] = daemon("reload", "--config", str(running.config))
    assert stranger.joined()
    for _ in range(50):
        running.insert("a")
    stranger.leave()
    out, said = begun.communicate(timeout=200)
    assert (begun.returncode, said) == (0, ""), out
    running.insert("b")
    running.applied("b", 1)
    running.applied("a", 100)
    assert running.status()["stage"] == "running"


def test_a_table_that_is_being_read_again_meanwhile(running: Running) -> None:
    """The rebuild goes on in the next life, and the table is whole."""
    for _ in range(2000):
        running.insert("a")
    running.applied("a", 2000)
    target = f"copy.{running.rig.db}.a"
    status, out, said = running.command("tables", "rebuild", target)
    assert (status, said) == (0, ""), out
    running.write(include="[ab]")
    assert running.reload()[0] == 0
    running.rig.produce(canal(f"{running.rig.db}.a", "DELETE", [{"id": 1, "name": "", "qty": 1}]))
    running.insert("b")
    running.applied("b", 1)
    running.follower.wait_for("job_notification")
    running.applied("a", 1999)
