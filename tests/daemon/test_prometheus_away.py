"""Nobody scrapes for hours: nothing piles up, nothing is missing when somebody does again."""

from __future__ import annotations

import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from actors.runtime.programs import free_port
from daemon.admin.page import document as desk
from daemon.admin.page.history import POINTS, History
from sources import opening
from tests.daemon.flow import Flow, Log, pipeline
from tests.daemon.test_survives import CHECKOUT
from tests.deploy.prometheus_server import Prometheus

RULES = CHECKOUT / "deploy/prometheus/binlogd.rules.yml"
CALM_S = 5.0
"""Of a row; a few tenths are usual."""

MOST_GROWN = 256 << 10
"""Bytes of the page and of the status, over two hours of samples."""


class Samples:
    """Counts the points of the history, which come a thousand times as fast as they do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(desk, "INTERVAL_S", 0.01)
        self._taken, self._more, take = 0, threading.Condition(), History.sample

        def sample(history: History, status: object) -> None:
            take(history, status)  # type: ignore[arg-type]
            with self._more:
                self._taken += 1
                self._more.notify_all()

        monkeypatch.setattr(History, "sample", sample)

    def wait(self, count: int) -> None:
        """Until there are so many more."""
        with self._more:
            wanted = self._taken + count
            assert self._more.wait_for(lambda: self._taken >= wanted, 120)


def held() -> int:
    """Bytes that the page and the status have allocated and keep."""
    of = [tracemalloc.Filter(True, str(CHECKOUT / "daemon" / name / "*")) for name in PARTS]
    found = tracemalloc.take_snapshot().filter_traces(of).statistics("filename")
    return sum(each.size for each in found)


PARTS = ("admin",)


def has_read(prometheus: Prometheus, messages: int) -> bool:
    """Whether the last scrape showed so many."""
    found = prometheus.series('binlogd_messages_read_total{pipeline="p"}')
    return [float(each["value"][1]) for each in found] == [messages]


@pytest.mark.long
def test_prometheus_is_away_for_two_hours_of_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are as fresh as before, memory is what it was, and its counters lack nothing after."""
    log, port = Log(), free_port()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    samples = Samples(monkeypatch)
    listen = f'[metrics]\nlisten = "127.0.0.1:{port}"\n'
    flow = Flow(tmp_path, log, pipeline("p", "t", "a") + listen)
    prometheus = Prometheus(tmp_path, RULES, port)
    flow.start()
    prometheus.start()
    try:
        flow.insert("t", "a")
        prometheus.until(lambda: has_read(prometheus, 1))
        prometheus.stop()
        samples.wait(POINTS)
        tracemalloc.start()
        samples.wait(20)
        before = held()
        for number in range(2, 42):
            begun = time.monotonic()
            flow.insert("t", "a")
            flow.applied("a", number)
            assert time.monotonic() - begun < CALM_S
            samples.wait(2 * POINTS // 40)
        grown = held() - before
        tracemalloc.stop()
        assert grown < MOST_GROWN
        prometheus.start()
        prometheus.until(lambda: has_read(prometheus, 41))
        # Of a log in memory nobody knows the end.
        assert prometheus.firing() <= {"BinlogdLagUnknown"}
    finally:
        prometheus.stop()
        flow.stop()
