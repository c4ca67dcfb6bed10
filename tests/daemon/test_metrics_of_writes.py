"""What ``/metrics`` shows of a daemon's writes and of its process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sources import opening
from tests.daemon.flow import Log, pipeline
from tests.daemon.web_flow import WebFlow


@pytest.fixture
def metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Of a daemon that has written into two tables; without labels but ``le``."""
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    flow = WebFlow(tmp_path, log, pipeline("p", "t", "[ab]"))
    flow.start()
    flow.insert("t", "a", 3)
    flow.insert("t", "b", 2)
    flow.applied("a", 3)
    flow.applied("b", 2)
    flow.until(lambda: "binlogd_pipeline_write_seconds_count{pipeline=\"p\"} 2.0" in
               flow.get("/metrics")[1])  # fmt: skip
    families = text_string_to_metric_families(flow.get("/metrics")[1])
    flow.stop()
    samples = [sample for family in families for sample in family.samples]
    return {sample.name + sample.labels.get("le", ""): sample.value for sample in samples}


def test_each_write_is_in_the_histograms_of_its_pipeline(metrics: dict[str, float]) -> None:
    """Cumulative, and all of them within the largest bound."""
    for name in ("write_seconds", "write_freshness_seconds"):
        known = {
            float(key.removeprefix(f"binlogd_pipeline_{name}_bucket")): value
            for key, value in metrics.items()
            if key.startswith(f"binlogd_pipeline_{name}_bucket")
        }
        assert [known[bound] for bound in sorted(known)] == sorted(known.values())
        assert known[float("inf")] == metrics[f"binlogd_pipeline_{name}_count"] == 2
        assert 0 < metrics[f"binlogd_pipeline_{name}_sum"] < 60


def test_the_process_has_the_metrics_that_every_client_has(metrics: dict[str, float]) -> None:
    assert metrics["process_cpu_seconds_total"] > 0
    assert metrics["process_resident_memory_bytes"] > 1 << 20
    assert 0 < metrics["process_open_fds"] < metrics["process_max_fds"]
    begun = os.stat(f"/proc/{os.getpid()}").st_ctime
    assert abs(metrics["process_start_time_seconds"] - begun) < 60
    assert metrics["process_start_time_seconds"] < time.time()
