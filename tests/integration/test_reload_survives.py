"""``binlogd reload`` while something else is going on in the pipeline."""

from __future__ import annotations

import subprocess
import threading

import pytest
from confluent_kafka import Consumer

from tests.integration.test_process import daemon
from tests.integration.test_reload import Running, running

__all__ = ["running"]

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]


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
